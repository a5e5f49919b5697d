//! What a kernel does, as the sweep describes it: the class of the kernel and the sizes that its rate depends on.

use warpforge_fusion::cluster::{Body, BodyOp, Cluster, Contraction, Kind};
use warpforge_fusion::view::View;
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

/// A class of kernels whose rates can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Rows times packed weights.
    Matmul,
    /// Matrices that are both computed by the model.
    Batched,
    /// Convolutions.
    Conv,
    /// Convolutions of groups of channels.
    Grouped,
    /// Convolutions of each channel alone.
    Depthwise,
    Attention,
    /// Loops over elements in order.
    Elementwise,
    /// Loops with reductions over rows.
    RowWise,
    /// Loops with reductions across elements that lie next to each other.
    Across,
    /// Loops with reductions over rows and exponentials.
    Softmax,
    /// Loops that read across the order of memory.
    Transpose,
    Concatenate,
    Gather,
    Pool,
}

/// What a kernel does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Work {
    pub(crate) class: Class,
    /// What contractions multiply in.
    pub(crate) dtype: &'static str,
    /// The type that its result is stored in.
    pub(crate) stored: &'static str,
    /// What its rate depends on, in octaves.
    pub(crate) features: Vec<f64>,
    /// The operations of the contraction alone.
    pub(crate) contraction_flops: f64,
    pub(crate) flops: u64,
    pub(crate) bytes: u64,
    /// Bytes of weights among them, which are read again in every run.
    pub(crate) weight_bytes: u64,
    /// Rows that a contraction multiplies its weights by.
    pub(crate) rows: usize,
    /// Elements of the loop or epilogue.
    pub(crate) elements: f64,
    /// Cheap functions on each.
    pub(crate) cheap: f64,
    /// Approximations on each.
    pub(crate) approximate: f64,
    /// Bytes that an epilogue reads beside the contraction's operands.
    pub(crate) epilogue_bytes: f64,
}

impl Work {
    /// The features where operands lie within so many bytes: streams run at the rate of what is gone round in.
    pub(super) fn features_within(&self, reach: u64) -> Vec<f64> {
        match self.class {
            Class::Gather => self.features.clone(),
            _ => vec![(self.bytes.max(reach).max(1) as f64).log2()],
        }
    }
}

pub(super) fn octaves(values: &[usize]) -> Vec<f64> {
    values.iter().map(|&value| (value.max(1) as f64).log2()).collect()
}

/// The class of a convolution of so many input channels of each group and so many outputs, and the channels and outputs that its rate depends on.
pub(super) fn conv_class(channels: usize, outputs: usize, groups: usize) -> (Class, usize, usize) {
    match (groups, channels) {
        (..=1, _) => (Class::Conv, channels, outputs),
        (_, 1) => (Class::Depthwise, outputs, outputs),
        _ => (Class::Grouped, channels, outputs / groups),
    }
}

/// The operations of a convolution of so many input channels of each group, whose windows have so many elements in all. Outputs are computed in whole
/// vectors, those of each group by themselves but where a group is one channel.
pub(super) fn conv_flops(taps: usize, channels: usize, outputs: usize, groups: usize) -> f64 {
    let columns = match conv_class(channels, outputs, groups) {
        (Class::Grouped, _, own) => own.next_multiple_of(LANES) * groups,
        _ => outputs.next_multiple_of(LANES),
    };
    2.0 * (taps * columns * channels) as f64
}

/// The features of a convolution: what its rate depends on most counts double.
pub(super) fn conv_features(
    channels: usize,
    outputs: usize,
    pixels: usize,
    window: usize,
    stride: usize,
) -> Vec<f64> {
    let [channels, outputs, pixels, window] =
        [channels, outputs, pixels, window].map(|value| (value.max(1) as f64).log2());
    vec![channels, outputs, pixels * 0.7, window * 1.5, if stride > 1 { 3.0 } else { 0.0 }]
}

/// The features of a gather: its bytes, and those of each run that it finds in order.
pub(super) fn gather_features(bytes: u64, run: usize) -> Vec<f64> {
    [bytes as f64, run as f64].map(|value| value.max(1.0).log2()).to_vec()
}

/// Outputs of a contraction are computed in whole vectors: fewer take no less time.
const LANES: usize = 16;

/// What the kernel of a cluster does.
pub(crate) fn work(graph: &Graph, cluster: &Cluster) -> Work {
    let cost = cluster.cost(graph);
    let constants = cluster.reads().into_iter().filter(|&id| graph.constant(id).is_some());
    // Of a table only the rows that are picked are read.
    let weight_bytes = constants.map(|id| graph.node(id).bytes() as u64).sum::<u64>().min(cost.bytes);
    let mut work = Work {
        class: Class::Elementwise,
        dtype: "f32",
        stored: stored(graph.node(cluster.output).element),
        features: Vec::new(),
        contraction_flops: 0.0,
        flops: cost.flops,
        bytes: cost.bytes,
        weight_bytes,
        rows: 1,
        elements: 0.0,
        cheap: 0.0,
        approximate: 0.0,
        epilogue_bytes: 0.0,
    };
    match &cluster.kind {
        Kind::Dot(product) => {
            matmul(graph, product, &mut work);
            epilogue(graph, product, &mut work);
        }
        Kind::Conv(product) => {
            convolution(graph, product, &mut work);
            epilogue(graph, product, &mut work);
        }
        Kind::Attention(attention) => {
            let [heads, queries, keys, width] = dot_sizes(graph, attention.scores.node);
            work.class = Class::Attention;
            work.dtype = multiplied(graph, attention.scores.node);
            work.features = octaves(&[heads, queries, keys, width]);
            work.contraction_flops = 4.0 * (heads * queries * keys * width) as f64;
        }
        Kind::AttentionGradient(gradient) => {
            let [heads, queries, keys, width] = dot_sizes(graph, gradient.scores.node);
            work.class = Class::Attention;
            work.dtype = multiplied(graph, gradient.scores.node);
            work.features = octaves(&[heads, queries, keys, width]);
            // Five matmuls where the forward pass has two.
            work.contraction_flops = 10.0 * (heads * queries * keys * width) as f64;
        }
        Kind::Loop(body) => looped(body, &mut work),
        Kind::Unfused(_) | Kind::Library(..) => unfused(graph, cluster.output, &mut work),
    }
    work
}

/// The type that streams of such elements are measured in.
fn stored(element: ElementType) -> &'static str {
    match element {
        ElementType::Float(FloatType::Bf16) => "bf16",
        ElementType::Float(FloatType::F16) => "f16",
        _ => "f32",
    }
}

/// The bytes of an element of a type that contractions multiply in.
pub(super) fn width(dtype: &str) -> usize {
    match dtype {
        "int8" | "e4m3" => 1,
        "bf16" | "f16" => 2,
        "f64" => 8,
        _ => 4,
    }
}

/// The type that a contraction multiplies in.
fn multiplied(graph: &Graph, node: NodeId) -> &'static str {
    match graph.node(graph.node(node).inputs[0]).element {
        ElementType::Float(FloatType::F64) => "f64",
        ElementType::Float(FloatType::Bf16) => "bf16",
        ElementType::Float(FloatType::F16) => "f16",
        ElementType::Float(FloatType::F8E4M3Fn | FloatType::F8E5M2) => "e4m3",
        ElementType::Int(_) => "int8",
        _ => "f32",
    }
}

/// Batches, rows, columns and the summed size of a matmul.
fn dot_sizes(graph: &Graph, id: NodeId) -> [usize; 4] {
    let node = graph.node(id);
    let Op::Dot(dot) = &node.op else { return [1; 4] };
    let (lhs, rhs) = (&graph.node(node.inputs[0]).dims, &graph.node(node.inputs[1]).dims);
    let product = |dims: &[usize], at: &[usize]| at.iter().map(|&at| dims[at]).product::<usize>();
    let free = |dims: &[usize], batch: &[usize], contract: &[usize]| {
        let free = (0..dims.len()).filter(|at| !batch.contains(at) && !contract.contains(at));
        free.map(|at| dims[at]).product::<usize>()
    };
    [
        product(lhs, &dot.lhs_batch),
        free(lhs, &dot.lhs_batch, &dot.lhs_contract),
        free(rhs, &dot.rhs_batch, &dot.rhs_contract),
        product(lhs, &dot.lhs_contract),
    ]
}

fn matmul(graph: &Graph, product: &Contraction, work: &mut Work) {
    let [batch, m, n, k] = dot_sizes(graph, product.node);
    let constant = |side: usize| graph.is_known(product.operands[side].value);
    work.dtype = multiplied(graph, product.node);
    // Weights on the left are the same matmul, transposed.
    let with_weights = batch == 1 && (constant(0) || constant(1));
    let (m, n) = if with_weights && !constant(1) { (n, m) } else { (m, n) };
    work.contraction_flops = 2.0 * (batch * m * n.next_multiple_of(LANES) * k) as f64;
    if with_weights {
        work.rows = m;
        narrowed(graph, product, work);
        (work.class, work.features) = (Class::Matmul, octaves(&[m, k, n]));
    } else {
        (work.class, work.features) = (Class::Batched, octaves(&[batch, m, n, k]));
    }
}

fn convolution(graph: &Graph, product: &Contraction, work: &mut Work) {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return };
    let weights = &graph.node(node.inputs[1]).dims;
    let (rank, outputs) = (weights.len() - 2, weights[weights.len() - 1]);
    let (window, channels) = (weights[..rank].iter().product::<usize>(), weights[rank]);
    let pixels = node.dims[..node.dims.len() - 1].iter().product::<usize>();
    let stride = conv.strides.iter().copied().max().unwrap_or(1);
    work.dtype = multiplied(graph, product.node);
    work.contraction_flops = conv_flops(pixels * window, channels, outputs, conv.groups);
    work.rows = pixels;
    narrowed(graph, product, work);
    // Windows side by side are rows of a matmul.
    if window > 1 && conv.groups == 1 && weights[..rank] == conv.strides[..] {
        (work.class, work.features) = (Class::Matmul, octaves(&[pixels, channels * window, outputs]));
        return;
    }
    let (class, channels, outputs) = conv_class(channels, outputs, conv.groups);
    work.class = class;
    work.features = conv_features(channels, outputs, pixels, window, stride);
}

/// Weights are kept in the type that they are multiplied in.
fn narrowed(graph: &Graph, product: &Contraction, work: &mut Work) {
    let width = width(work.dtype);
    for operand in &product.operands {
        let node = graph.node(operand.value);
        if graph.constant(operand.value).is_some() && node.element.byte_width() > width {
            work.weight_bytes -= (node.bytes() - node.len() * width).min(work.weight_bytes as usize) as u64;
        }
    }
}

fn epilogue(graph: &Graph, product: &Contraction, work: &mut Work) {
    let Some(epilogue) = &product.epilogue else { return };
    count(&epilogue.body, work);
    let others = epilogue.body.loads.iter().enumerate().filter(|(at, _)| *at != epilogue.tile);
    work.epilogue_bytes = others.map(|(_, load)| graph.node(load.value).bytes() as f64).sum();
}

/// Counts the functions on each element of a loop.
fn count(body: &Body, work: &mut Work) {
    work.elements = body.dims.iter().product::<usize>() as f64;
    for step in &body.steps {
        match &step.op {
            BodyOp::Elementwise(Function::Gelu | Function::GeluTanh | Function::GeluTanhGradient) => {
                work.approximate += 1.0;
            }
            // A GELU is an error function and a handful of others.
            BodyOp::Elementwise(function) if function.is_approximate() => work.approximate += 0.7,
            BodyOp::Elementwise(function) if !function.is_cheap() => work.cheap += 4.0,
            BodyOp::Elementwise(_) | BodyOp::Compare(..) | BodyOp::Reduce(_) => work.cheap += 1.0,
            _ => {}
        }
    }
}

fn looped(body: &Body, work: &mut Work) {
    count(body, work);
    let strided = |view: &View| {
        let last = view.dims.iter().zip(&view.strides).rev().find(|(dim, _)| **dim > 1);
        last.is_some_and(|(_, stride)| stride.unsigned_abs() > 1)
    };
    work.class = if body.has_reductions() {
        match work.approximate > 0.0 {
            true => Class::Softmax,
            false if reduces_across(body) => Class::Across,
            false => Class::RowWise,
        }
    } else if body.loads.iter().any(|load| strided(&load.view)) || strided(&body.output) {
        Class::Transpose
    } else {
        Class::Elementwise
    };
    work.features = vec![(work.bytes.max(1) as f64).log2()];
}

/// Whether a loop keeps a dimension whose elements lie next to each other while it reduces others.
fn reduces_across(body: &Body) -> bool {
    body.loads.iter().any(|load| {
        let View { dims, strides, .. } = &load.view;
        let mut sizes = dims.iter().zip(strides).zip(&body.reduced);
        sizes.any(|((&dim, &stride), &reduced)| dim > 1 && stride == 1 && !reduced)
    })
}

/// The bytes in order of each window of a gather.
fn run(graph: &Graph, node: &Node, slice: &[usize]) -> usize {
    let operand = graph.node(node.inputs[0]);
    let mut elements = 1;
    for (taken, whole) in slice.iter().zip(&operand.dims).rev() {
        elements *= taken;
        if taken != whole {
            break;
        }
    }
    elements * operand.bytes() / operand.len().max(1)
}

fn unfused(graph: &Graph, output: NodeId, work: &mut Work) {
    let node = graph.node(output);
    match &node.op {
        Op::Gather(_, slice) => {
            work.class = Class::Gather;
            work.features = gather_features(work.bytes, run(graph, node, slice));
            return;
        }
        Op::Scatter(..) => {
            let row = node.dims.last().copied().unwrap_or(1) * node.bytes() / node.len().max(1);
            work.class = Class::Gather;
            work.features = gather_features(work.bytes, row);
            return;
        }
        _ => {}
    }
    work.class = match &node.op {
        Op::ReduceWindow(..) | Op::SelectAndScatter { .. } => Class::Pool,
        _ => Class::Concatenate,
    };
    work.features = vec![(work.bytes.max(1) as f64).log2()];
}
