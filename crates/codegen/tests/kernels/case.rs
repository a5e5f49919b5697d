//! Programs, their kernels, and the results of the reference.

use warpforge_codegen::{Dialect, Emitted, Options, emit, grouped_codes, packed_codes, with_packed_codes};
use warpforge_diag::Source;
use warpforge_fusion::cluster::{Cluster, Clusters, Kind};
use warpforge_fusion::pipeline::{self, Device, Plan};
use warpforge_fusion::{Graph, Node, NodeId, Op, Precision};
use warpforge_interp::{Interpreter, Options as Reference, Value};
use warpforge_ir::Module;
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, IntType, Scalar, Shape, Tensor};

use crate::tool::{Tool, is_current};
use crate::{hip, nvrtc};

/// A program and its clusters.
pub(crate) struct Case {
    pub(crate) module: Module,
    pub(crate) graph: Graph,
    pub(crate) clusters: Clusters,
}

/// Options for an H100.
pub(crate) fn cuda() -> Options {
    Options::new(Dialect::Cuda, "sm_90")
}

/// A device with the kernels that are emitted, and no library.
#[derive(Default)]
struct EmittedKernels {
    /// Whether products read quantized weights, by kernels that are emitted for codes in words.
    quantized: bool,
}

impl Device for EmittedKernels {
    fn precision(&self) -> Precision {
        Precision::Model
    }

    fn reads_quantized_weights(&self) -> bool {
        self.quantized
    }

    fn computes_float8(&self) -> bool {
        true
    }

    fn has_kernel(&self, graph: &Graph, cluster: &Cluster) -> bool {
        matches!(&cluster.kind, Kind::Dot(product) if product.weights.is_some())
            || emit(graph, cluster, &cuda()).is_ok()
    }

    fn joins_loops(&self) -> bool {
        true
    }

    fn joins_rows(&self) -> bool {
        true
    }

    fn fuses(&self, _: &Graph, _: &Cluster) -> bool {
        true
    }
}

impl Case {
    /// A program: a module's text, or the body of its one function.
    pub(crate) fn new(text: &str) -> Self {
        let module = text::parse(&Source::new("m.mlir", text), &text::Options::default()).unwrap();
        let main = module.function("main").unwrap();
        let Plan { graph, clusters, .. } =
            pipeline::plan(main, &|_| None, &EmittedKernels::default()).unwrap();
        Self { module, graph, clusters }
    }

    /// A program whose first argument alone is given; the others are weights.
    pub(crate) fn with_weights(text: &str) -> Self {
        let module = text::parse(&Source::new("m.mlir", text), &text::Options::default()).unwrap();
        let main = module.function("main").unwrap();
        let inputs = inputs(&module);
        let weights = |at: usize| inputs.get(at).filter(|_| at > 0).cloned();
        let device = EmittedKernels { quantized: true };
        let Plan { mut graph, mut clusters, .. } = pipeline::plan(main, &weights, &device).unwrap();
        for cluster in &mut clusters.clusters {
            if let Some(words) = grouped_codes(cluster).and_then(|codes| packed_codes(graph.constant(codes)?))
            {
                let (element, dims) = (words.element_type(), words.dims().to_vec());
                *cluster = with_packed_codes(cluster, NodeId(graph.nodes.len() as u32));
                graph.nodes.push(Node {
                    op: Op::Constant(words),
                    inputs: vec![],
                    element,
                    dims,
                    origin: None,
                });
            }
        }
        Self { module, graph, clusters }
    }

    /// The kernels of every cluster.
    pub(crate) fn emitted(&self, options: &Options) -> Vec<Emitted> {
        self.clusters.clusters.iter().map(|cluster| emit(&self.graph, cluster, options).unwrap()).collect()
    }

    /// Pseudo-random inputs: floats between -2 and 2, small integers, booleans.
    pub(crate) fn inputs(&self) -> Vec<Tensor> {
        inputs(&self.module)
    }

    /// The results of the reference.
    pub(crate) fn expected(&self, inputs: &[Tensor]) -> Vec<Tensor> {
        let values = inputs.iter().cloned().map(Value::Tensor).collect();
        let results = Interpreter::new(&self.module, Reference::default()).run("main", values).unwrap();
        results.iter().map(|value| value.as_tensor().unwrap().clone()).collect()
    }
}

fn inputs(module: &Module) -> Vec<Tensor> {
    let main = module.function("main").unwrap();
    let types = main.arguments().iter().map(|&value| module.value_type(value).as_tensor().unwrap().clone());
    types
        .enumerate()
        .map(|(at, ty)| random(ty.element().storage().unwrap(), &ty.shape_usize().unwrap(), at as u64 + 1))
        .collect()
}

/// A pseudo-random tensor.
pub(crate) fn random(element: ElementType, dims: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let shape = Shape::new(dims).unwrap();
    let count = shape.num_elements();
    let values = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 40) as f64 / f64::from(1 << 22) - 2.0;
        match element {
            ElementType::Bool => Scalar::Bool(number > 0.0),
            ElementType::Int(int @ (IntType::U8 | IntType::U16 | IntType::U32 | IntType::U64)) => {
                Scalar::Int(int.clamp((number * 20.0 + 40.0) as i128))
            }
            ElementType::Int(_) => Scalar::Int((number * 20.0) as i128),
            _ => Scalar::Float(number),
        }
    });
    Tensor::from_scalars(element, shape, values.take(count)).unwrap()
}

/// Whether two tensors agree, relative to the scale of the expected one.
pub(crate) fn close(ours: &Tensor, theirs: &Tensor, tolerance: f64) -> Result<(), String> {
    if (ours.dims(), ours.element_type()) != (theirs.dims(), theirs.element_type()) {
        return Err(format!("{:?} is not {:?}", ours.dims(), theirs.dims()));
    }
    let finite = theirs.iter().map(|value| value.to_f64().abs()).filter(|value| value.is_finite());
    let scale = finite.fold(1e-30, f64::max);
    for (at, (a, b)) in ours.iter().zip(theirs.iter()).enumerate() {
        let (a, b) = (a.to_f64(), b.to_f64());
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
        if !same {
            return Err(format!("element {at} is {a}, not {b}"));
        }
    }
    Ok(())
}

/// Compares the source of a program's kernels with its snapshot; the compilers of both dialects accept it.
pub(crate) fn snapshot(name: &str, text: &str, options: &Options) {
    let case = Case::new(text);
    let emitted = case.emitted(options);
    let kernels: Vec<_> = emitted.iter().flat_map(|emitted| &emitted.kernels).collect();
    nvrtc::compiles(kernels.iter().copied());
    let texts: Vec<String> = kernels
        .iter()
        .map(|kernel| {
            let (title, grid, block) = (&kernel.title, kernel.grid[0], kernel.block[0]);
            format!("// {title}: {grid} blocks of {block}\n{}", kernel.source)
        })
        .collect();
    if is_current(Tool::Source) {
        insta::with_settings!({ prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, texts.join("\n"));
        });
    }
    let hip = Options { dialect: Dialect::Hip, architecture: "gfx942".to_owned(), ..options.clone() };
    // Attention on tensor cores has no kernel in the other dialect; everything else has.
    let emitted =
        case.clusters.clusters.iter().filter_map(|cluster| match emit(&case.graph, cluster, &hip) {
            Err(refused) if refused.what.ends_with("attention in one piece") => None,
            emitted => Some(emitted.unwrap()),
        });
    let emitted: Vec<Emitted> = emitted.collect();
    hip::compiles(emitted.iter().flat_map(|emitted| &emitted.kernels));
}
