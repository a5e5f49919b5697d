//! Convolutions and attention by the DNN library.

use std::sync::Arc;

use warpforge_fusion::Graph;
use warpforge_tensor::ElementType;

use super::{DeviceLayout, ExecutionStep};
use crate::dnn::cudnn::{Cudnn, CudnnGraph, CudnnPlan, Storage, TensorId};
use crate::dnn::miopen;
use crate::dnn::{ConvPass, DnnLibrary, DnnPlan, Pointwise};
use crate::driver::Stream;
use crate::error::{GpuError, Result};
use crate::lower::{AttentionCall, ChainOperand, ConvCall, Heads};

/// A convolution or attention.
pub(crate) struct DnnStep {
    plan: DnnPlan,
    name: String,
}

impl DnnStep {
    /// A convolution with its pointwise chain.
    pub(crate) fn convolution(
        call: &ConvCall,
        library: &DnnLibrary,
        graph: &Graph,
        layout: &DeviceLayout,
        stream: &Stream,
    ) -> Result<Self> {
        let plan = match library {
            DnnLibrary::Cudnn(library) => DnnPlan::Cudnn(by_cudnn(call, library, graph, layout, stream)?),
            DnnLibrary::Miopen(library) => DnnPlan::Miopen(by_miopen(call, library, graph, layout, stream)?),
        };
        let sizes = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let (inputs, windows, links) = (sizes(&call.input_dims), sizes(&call.weights_dims), call.chain.len());
        let operand = graph.node(call.input).element;
        let convolution = format!("convolution {windows} over {inputs} {operand}");
        let name = match call.pass {
            ConvPass::Forward => format!("library {convolution} + {links} operations"),
            ConvPass::DataGradient => format!("library data gradient of a {convolution}"),
            ConvPass::WeightGradient => format!("library weight gradient of a {convolution}"),
        };
        Ok(Self { plan, name })
    }

    /// Attention, causal or unmasked.
    pub(crate) fn attention(
        call: &AttentionCall,
        library: &Arc<Cudnn>,
        layout: &DeviceLayout,
        stream: &Stream,
    ) -> Result<Self> {
        let [batch, heads, rows, width] = call.queries.dims;
        let (groups, columns, given) = (call.keys.dims[1], call.keys.dims[2], call.values.dims[3]);
        let planned = |describe: fn(&mut CudnnGraph, &AttentionCall, &DeviceLayout) -> Result<()>| {
            let mut cudnn = CudnnGraph::new(library);
            describe(&mut cudnn, call, layout)?;
            cudnn.plan(false, (layout.workspace.address(), layout.workspace.bytes()), stream)
        };
        let fused = if call.causal { None } else { Some(planned(fused_attention)) };
        let plan = match fused {
            Some(Ok(plan)) => plan,
            Some(Err(error @ GpuError::Lost { .. })) => return Err(error),
            Some(Err(_)) | None => planned(composed_attention)?,
        };
        let shared = if groups == heads { String::new() } else { format!(" of {groups}") };
        let masked = if call.causal { ", causal" } else { "" };
        let element = call.element;
        let sizes = format!("{batch}x{heads}{shared}x{rows}x{columns}");
        let plan = DnnPlan::Cudnn(plan);
        Ok(Self { plan, name: format!("library attention {sizes}, {width} to {given} {element}{masked}") })
    }
}

/// A convolution as a cuDNN graph.
fn by_cudnn(
    call: &ConvCall,
    library: &Arc<Cudnn>,
    graph: &Graph,
    layout: &DeviceLayout,
    stream: &Stream,
) -> Result<CudnnPlan> {
    let mut cudnn = CudnnGraph::new(library);
    let in_memory = |id| Storage::Memory(layout.address(id));
    let (dims, strides) = channels_last(&call.input_dims);
    let input = cudnn.tensor(graph.node(call.input).element, &dims, &strides, in_memory(call.input))?;
    let (dims, strides) = channels_last(&call.weights_dims);
    let weights = cudnn.tensor(graph.node(call.weights).element, &dims, &strides, in_memory(call.weights))?;
    let (dims, strides) = channels_last(&call.output_dims);
    let given = graph.node(call.output).element;
    let result = |cudnn: &mut CudnnGraph, last: bool| {
        let (element, storage) =
            if last { (given, in_memory(call.output)) } else { (ElementType::F32, Storage::Virtual) };
        cudnn.tensor(element, &dims, &strides, storage)
    };
    let first = result(&mut cudnn, call.chain.is_empty())?;
    cudnn.convolution(call.pass, input, weights, first, &call.window)?;
    let mut links: Vec<TensorId> = Vec::new();
    for (at, link) in call.chain.iter().enumerate() {
        let rank = dims.len();
        let take = |cudnn: &mut CudnnGraph, taken: ChainOperand| match taken {
            ChainOperand::Result => Ok(first),
            ChainOperand::Op(at) => Ok(links[at]),
            ChainOperand::Scalar(number) => cudnn.scalar(number, rank),
            ChainOperand::Full(id) => cudnn.tensor(graph.node(id).element, &dims, &strides, in_memory(id)),
            ChainOperand::PerChannel(id) => {
                let (mut one, channels) = (vec![1; rank], dims[1]);
                one[1] = channels;
                let mut steps = vec![channels; rank];
                steps[1] = 1;
                cudnn.tensor(graph.node(id).element, &one, &steps, in_memory(id))
            }
        };
        let of = take(&mut cudnn, link.of)?;
        let with = link.with.map(|with| take(&mut cudnn, with)).transpose()?;
        let to = result(&mut cudnn, at + 1 == call.chain.len())?;
        cudnn.pointwise(link.op, of, with, to)?;
        links.push(to);
    }
    let room = (layout.workspace.address(), layout.workspace.bytes());
    cudnn.plan(call.exact, room, stream)
}

/// A convolution by MIOpen, with bias, ReLU or both.
fn by_miopen(
    call: &ConvCall,
    library: &Arc<miopen::Miopen>,
    graph: &Graph,
    layout: &DeviceLayout,
    stream: &Stream,
) -> Result<miopen::MiopenPlan> {
    let tensor_layout = |dims: &[usize]| {
        let (dims, strides) = channels_last(dims);
        miopen::TensorLayout { dims, strides }
    };
    let bias = call.chain.iter().find_map(|link| match link.with {
        Some(ChainOperand::PerChannel(id)) => Some(id),
        _ => None,
    });
    let channels = |dims: &[usize]| dims.last().copied().unwrap_or(1);
    let problem = miopen::ConvProblem {
        element: graph.node(call.input).element,
        input: tensor_layout(&call.input_dims),
        weights: tensor_layout(&call.weights_dims),
        output: tensor_layout(&call.output_dims),
        window: call.window.clone(),
        groups: channels(&call.input_dims) / channels(&call.weights_dims).max(1),
        exact: call.exact,
        bias: bias.is_some(),
        relu: call.chain.iter().any(|link| link.op == Pointwise::Relu),
    };
    let buffers = miopen::ConvBuffers {
        input: layout.address(call.input),
        weights: layout.address(call.weights),
        bias: bias.map_or(0, |id| layout.address(id)),
        output: layout.address(call.output),
        workspace: (layout.workspace.address(), layout.workspace.bytes()),
    };
    miopen::MiopenPlan::new(library, &problem, buffers, stream)
}

/// The cuDNN tensor of an attention operand.
fn heads(
    cudnn: &mut CudnnGraph,
    of: &Heads,
    element: ElementType,
    layout: &DeviceLayout,
) -> Result<TensorId> {
    let at = layout.address(of.value) + (of.offset * element.byte_width()) as u64;
    let (dims, strides) = (of.dims.map(|size| size as i64), of.strides.map(|stride| stride as i64));
    cudnn.tensor(element, &dims, &strides, Storage::Memory(at))
}

/// The cuDNN tensors of queries, keys and values.
fn operands(
    cudnn: &mut CudnnGraph,
    call: &AttentionCall,
    keys: &Heads,
    layout: &DeviceLayout,
) -> Result<[TensorId; 3]> {
    let query = heads(cudnn, &call.queries, call.element, layout)?;
    let key = heads(cudnn, keys, call.element, layout)?;
    Ok([query, key, heads(cudnn, &call.values, call.element, layout)?])
}

/// The cuDNN tensor of the attention output.
fn result(cudnn: &mut CudnnGraph, call: &AttentionCall, layout: &DeviceLayout) -> Result<TensorId> {
    let [batch, heads, rows, _] = call.queries.dims;
    let dims = [batch, heads, rows, call.values.dims[3]].map(|size| size as i64);
    let strides = call.output_strides.map(|stride| stride as i64);
    cudnn.tensor(call.element, &dims, &strides, Storage::Memory(layout.address(call.output)))
}

/// cuDNN's fused attention operation, since 9.13; without masks.
fn fused_attention(cudnn: &mut CudnnGraph, call: &AttentionCall, layout: &DeviceLayout) -> Result<()> {
    let operands = operands(cudnn, call, &call.keys, layout)?;
    let scale = cudnn.scalar(call.scale, 4)?;
    let output = result(cudnn, call, layout)?;
    cudnn.attention(operands, scale, output)
}

/// Attention composed of operations.
fn composed_attention(cudnn: &mut CudnnGraph, call: &AttentionCall, layout: &DeviceLayout) -> Result<()> {
    let operands = operands(cudnn, call, &call.keys.transposed(), layout)?;
    let output = result(cudnn, call, layout)?;
    let [batch, of, rows, _] = call.queries.dims.map(|size| size as i64);
    let scores = [batch, of, rows, call.keys.dims[2] as i64];
    cudnn.composed_attention(operands, (call.scale, call.causal), (call.element, scores), output)
}

/// Shape in NCHW order with channels-last strides.
fn channels_last(dims: &[usize]) -> (Vec<i64>, Vec<i64>) {
    let mut spatial: Vec<i64> = dims[1..dims.len() - 1].iter().map(|&dim| dim as i64).collect();
    while spatial.len() < 2 {
        spatial.insert(0, 1);
    }
    let (batch, channels) = (dims[0] as i64, dims[dims.len() - 1] as i64);
    let mut strides = vec![0; spatial.len()];
    let mut stride = channels;
    for (at, &dim) in spatial.iter().enumerate().rev() {
        strides[at] = stride;
        stride *= dim;
    }
    let dims = [batch, channels].into_iter().chain(spatial).collect();
    (dims, [stride, 1].into_iter().chain(strides).collect())
}

impl ExecutionStep for DnnStep {
    fn start(&self, stream: &Stream) -> Result<()> {
        self.plan.run(stream)
    }

    fn launches(&self) -> u64 {
        1
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_contiguous() {
        assert_eq!(channels_last(&[2, 5, 7, 3]), (vec![2, 3, 5, 7], vec![105, 1, 21, 3]));
        assert_eq!(channels_last(&[2, 7, 3]), (vec![2, 3, 1, 7], vec![21, 1, 21, 3]));
    }
}
