//! Convolutions.

use std::sync::Arc;

use warpforge_fusion::cluster::Contraction;
use warpforge_fusion::{Graph, NodeId, Op, View, graph};
use warpforge_kernels::conv::{Convolution, Dimension, Geometry, Input, PackedWeights, Weights};
use warpforge_kernels::gemm::{ComputeType, Gemm};
use warpforge_kernels::output_block::OutputBlock;
use warpforge_kernels::window::{Depthwise, WindowAxis};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::dot::compute_type;
use super::epilogue::{EpilogueLoop, store};
use super::interface::{CompileContext, Kernel, KernelError, Result, ValueBuffers};
use super::shared_weights::{Reading, Shared};

/// The kernel of a convolution.
pub(super) fn kernel(
    context: &CompileContext<'_>,
    product: &Contraction,
    output: NodeId,
) -> Result<Box<dyn Kernel>> {
    let graph = context.graph;
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else {
        return Err(KernelError::Unsupported("not a convolution".to_owned()));
    };
    let input = graph.node(node.inputs[0]).dims.clone();
    let weights = &product.operands[1];
    let geometry = geometry(conv, &input, &weights.view.dims);
    let depthwise = conv.groups > 1 && conv.groups == geometry.channels;
    if depthwise
        && node.element == ElementType::F32
        && product.operands[0].view.is_dense()
        && let Some(tensor) = graph.constant(weights.value)
    {
        let tensor = materialize(tensor, &weights.view)?;
        return Ok(Box::new(DepthwiseKernel::new(graph, product, output, &geometry, &input, &tensor)?));
    }
    Ok(Box::new(ConvKernel::new(context, product, output, geometry)?))
}

/// Whether the kernel of a convolution reads its image with any strides.
pub(super) fn reads_strided_image(graph: &Graph, product: &Contraction) -> bool {
    let node = graph.node(product.node);
    let Op::Conv(conv) = &node.op else { return false };
    let [input, weights] = &product.operands;
    // What is multiplied: an image may be read before it is rounded to it.
    let element = graph.node(node.inputs[0]).element;
    let forwards = weights.view.strides.iter().all(|&stride| stride >= 0);
    let read = graph.node(input.value).element;
    let used_once = graph.constant(weights.value).is_none();
    let geometry = geometry(conv, &graph.node(node.inputs[0]).dims, &weights.view.dims);
    let convolution = compute_type(element).map(|kind| Convolution::new(Arc::new(Gemm::new(kind)), geometry));
    let Ok(Ok(convolution)) = convolution else { return false };
    let through_lines = used_once && forwards && read == element && convolution.reads_any_strides(element);
    through_lines || convolution.copies_any_strides(read)
}

fn geometry(conv: &graph::Conv, input: &[usize], weights: &[usize]) -> Geometry {
    let dimensions = (0..conv.strides.len()).map(|at| Dimension {
        input: input[at + 1],
        window: weights[at],
        stride: conv.strides[at],
        padding: (conv.padding[at].0 as i64, conv.padding[at].1 as i64),
        window_dilation: conv.window_dilation[at],
        base_dilation: conv.base_dilation[at],
    });
    Geometry {
        batch: input[0],
        channels: input[input.len() - 1],
        outputs: weights[weights.len() - 1],
        groups: conv.groups,
        dimensions: dimensions.collect(),
    }
}

/// Copies the elements of a view into a dense tensor.
fn materialize(tensor: &Tensor, view: &View) -> Result<Tensor> {
    let start = usize::try_from(view.offset).unwrap_or(0);
    Ok(tensor.strided(Shape::new(view.dims.clone())?, start, &view.strides)?)
}

/// A convolution as an implicit GEMM.
struct ConvKernel {
    convolution: Convolution,
    element: ElementType,
    input: NodeId,
    input_view: View,
    strides: Vec<usize>,
    weights: NodeId,
    weights_view: View,
    weights_element: ElementType,
    packed: Option<Shared<PackedWeights>>,
    epilogue: Option<EpilogueLoop>,
    columns: usize,
    output: NodeId,
    name: String,
}

impl ConvKernel {
    fn new(
        context: &CompileContext<'_>,
        product: &Contraction,
        output: NodeId,
        geometry: Geometry,
    ) -> Result<Self> {
        let graph = context.graph;
        let node = graph.node(product.node);
        let gemm = Arc::new(Gemm::new(compute_type(graph.node(node.inputs[0]).element)?));
        let sum = gemm.compute_type().accumulator();
        let [input, weights] = &product.operands;
        let dims = &input.view.dims;
        let input_view = if input.view.is_dense() { View::dense(dims) } else { input.view.clone() };
        let strides = &input_view.strides[1..dims.len() - 1];
        let strides = strides.iter().map(|&stride| stride.unsigned_abs()).collect();
        let columns = geometry.outputs;
        let name = name(&geometry, gemm.compute_type());
        let convolution = Convolution::new(gemm, geometry)?;
        let epilogue = match &product.epilogue {
            Some(epilogue) => Some(EpilogueLoop::new(graph, epilogue, sum, output)?),
            None if sum != node.element => {
                Some(EpilogueLoop::new(graph, &store(graph, product.node, columns), sum, output)?)
            }
            None => None,
        };
        let mut made = Self {
            convolution,
            element: graph.node(input.value).element,
            input: input.value,
            input_view,
            strides,
            weights: weights.value,
            weights_view: weights.view.clone(),
            weights_element: graph.node(weights.value).element,
            packed: None,
            epilogue,
            columns,
            output,
            name,
        };
        // Weights that were computed while compiling may be of a convolution whose image the plan leaves strided.
        let packs = input.view.is_dense() || made.convolution.copies_any_strides(made.element);
        if let Some(tensor) = graph.constant(weights.value).filter(|_| packs) {
            let pack = || -> Result<PackedWeights> {
                let tensor = super::interface::aligned(tensor)?;
                // SAFETY: the view was made from the sizes of the tensor.
                let weights = unsafe { made.weights_at(tensor.bytes().as_ptr()) };
                // SAFETY: as above.
                Ok(unsafe { made.convolution.prepare(&weights, Some(context.pool))? })
            };
            let View { offset, dims, strides } = &made.weights_view;
            let (sizes, strides) = (dims.clone(), strides.clone());
            let reading = Reading { value: made.weights, offset: *offset, sizes, strides };
            let fits = |packed: &PackedWeights| made.convolution.prepares_as(packed);
            made.packed = Some(context.weights.convolutions.get(reading, fits, pack)?);
        }
        Ok(made)
    }

    /// # Safety
    ///
    /// The address is that of the weights' value.
    unsafe fn weights_at(&self, address: *const u8) -> Weights {
        let View { offset, strides, .. } = &self.weights_view;
        let rank = strides.len() - 2;
        // SAFETY: the view begins inside the value.
        let data = unsafe { address.offset(offset * self.weights_element.byte_width() as isize) };
        Weights {
            data,
            element: self.weights_element,
            window_strides: strides[..rank].to_vec(),
            input_stride: strides[rank].unsigned_abs(),
            output_stride: strides[rank + 1].unsigned_abs(),
        }
    }
}

fn name(geometry: &Geometry, computed: ComputeType) -> String {
    let sizes = |size: &dyn Fn(&Dimension) -> usize| {
        geometry.dimensions.iter().map(|dimension| size(dimension).to_string()).collect::<Vec<_>>().join("x")
    };
    let kind = if computed == ComputeType::Bf16 { " bf16" } else { "" };
    let (window, input) = (sizes(&|dimension| dimension.window), sizes(&|dimension| dimension.input));
    format!(
        "convolution{kind} {window} over {}x{input}, {} to {}",
        geometry.batch, geometry.channels, geometry.outputs
    )
}

impl Kernel for ConvKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let View { offset, strides, .. } = &self.input_view;
        let stride = |at: usize| strides[at].unsigned_abs();
        // SAFETY: the view begins inside the value.
        let data = unsafe { buffers.read(self.input).offset(offset * self.element.byte_width() as isize) };
        let input = Input {
            data,
            element: self.element,
            channel_stride: stride(strides.len() - 1),
            batch_stride: stride(0),
            strides: &self.strides,
        };
        let sink = |block: &OutputBlock| {
            if let Some(epilogue) = &self.epilogue {
                // SAFETY: guaranteed by the caller; blocks do not overlap.
                unsafe { epilogue.run(buffers, block) };
            }
        };
        let direct = self.epilogue.is_none();
        let out = direct.then(|| buffers.write(self.output));
        let sink: Option<&warpforge_kernels::output_block::BlockSink<'_>> =
            if direct { None } else { Some(&sink) };
        // SAFETY: guaranteed by the caller; strides were made from the sizes of the values.
        unsafe {
            match &self.packed {
                Some(weights) => {
                    self.convolution.run(buffers.pool, &input, weights, out, self.columns, sink)?;
                }
                None => {
                    let weights = self.weights_at(buffers.read(self.weights));
                    self.convolution.run_unpacked(buffers.pool, &input, &weights, out, self.columns, sink)?;
                }
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |weights| weights.bytes(PackedWeights::bytes))
    }

    fn replaces(&self) -> Option<NodeId> {
        self.packed.is_some().then_some(self.weights)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// A depthwise convolution.
struct DepthwiseKernel {
    depthwise: Depthwise,
    weights: Vec<f32>,
    constant: NodeId,
    input: NodeId,
    epilogue: Option<EpilogueLoop>,
    output: NodeId,
    name: String,
}

impl DepthwiseKernel {
    fn new(
        graph: &Graph,
        product: &Contraction,
        output: NodeId,
        geometry: &Geometry,
        input: &[usize],
        weights: &Tensor,
    ) -> Result<Self> {
        let axes: Vec<WindowAxis> = geometry
            .dimensions
            .iter()
            .map(|dimension| WindowAxis {
                size: dimension.window,
                stride: dimension.stride,
                low: dimension.padding.0,
                high: dimension.padding.1,
                dilation: dimension.window_dilation,
                base_dilation: dimension.base_dilation,
            })
            .collect();
        let depthwise = Depthwise::new(input, &axes, geometry.outputs / geometry.channels)?;
        let values = weights.as_slice::<f32>()?;
        let weights = depthwise.pack(values)?;
        let epilogue = product.epilogue.as_ref();
        let epilogue = epilogue
            .map(|epilogue| EpilogueLoop::new(graph, epilogue, ElementType::F32, output))
            .transpose()?;
        let name = format!("depthwise {}", name(geometry, ComputeType::F32));
        let constant = product.operands[1].value;
        Ok(Self { depthwise, weights, constant, input: product.operands[0].value, epilogue, output, name })
    }
}

impl Kernel for DepthwiseKernel {
    unsafe fn run(&self, buffers: &ValueBuffers<'_>) -> Result<()> {
        let sink = |block: &OutputBlock| {
            if let Some(epilogue) = &self.epilogue {
                // SAFETY: guaranteed by the caller; blocks do not overlap.
                unsafe { epilogue.run(buffers, block) };
            }
        };
        let direct = self.epilogue.is_none();
        let target = direct.then(|| buffers.write(self.output).cast::<f32>());
        let sink: Option<&warpforge_kernels::output_block::BlockSink<'_>> =
            if direct { None } else { Some(&sink) };
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.depthwise.run(buffers.pool, buffers.read(self.input).cast(), &self.weights, target, sink);
        };
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.weights.len() * size_of::<f32>()
    }

    fn replaces(&self) -> Option<NodeId> {
        Some(self.constant)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
