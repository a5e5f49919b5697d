//! Convolutions and attention by the vendor's library.

use std::sync::Arc;

use warpforge_fusion::Graph;
use warpforge_tensor::ElementType;

use super::{Layout, Step};
use crate::cuda::networks::{Network, Networks as Cudnn, Place, Plan as CudnnPlan, Value};
use crate::driver::Stream;
use crate::error::{GpuError, Result};
use crate::hip::networks as miopen;
use crate::lower::{AttentionCall, ConvCall, Heads, Taken};
use crate::networks::{Networks, Plan, Pointwise};

/// A convolution or attention.
pub(crate) struct Netted {
    plan: Plan,
    name: String,
}

impl Netted {
    /// A convolution with its chain.
    pub(crate) fn convolution(
        call: &ConvCall,
        library: &Networks,
        graph: &Graph,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Self> {
        let plan = match library {
            Networks::Cudnn(library) => Plan::Cudnn(by_cudnn(call, library, graph, layout, stream)?),
            Networks::Miopen(library) => Plan::Miopen(by_miopen(call, library, graph, layout, stream)?),
        };
        let sizes = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let (inputs, windows, links) = (sizes(&call.input_dims), sizes(&call.weights_dims), call.chain.len());
        let operand = graph.node(call.input).element;
        Ok(Self {
            plan,
            name: format!("library convolution {windows} over {inputs} {operand} + {links} operations"),
        })
    }

    /// Attention; `causal` where a query sees the keys up to its own number alone.
    pub(crate) fn attention(
        call: &AttentionCall,
        causal: bool,
        library: &Arc<Cudnn>,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Self> {
        let [batch, heads, rows, width] = call.queries.dims;
        let (groups, columns, given) = (call.keys.dims[1], call.keys.dims[2], call.values.dims[3]);
        let in_one = if causal { None } else { Some(attention_in_one(call, library, layout, stream)) };
        let plan = match in_one {
            Some(Ok(plan)) => plan,
            Some(Err(error @ GpuError::Lost { .. })) => return Err(error),
            Some(Err(_)) | None => attention_in_steps(call, causal, library, layout, stream)?,
        };
        let shared = if groups == heads { String::new() } else { format!(" of {groups}") };
        let masked = if causal { ", causal" } else { "" };
        let element = call.element;
        let sizes = format!("{batch}x{heads}{shared}x{rows}x{columns}");
        let plan = Plan::Cudnn(plan);
        Ok(Self { plan, name: format!("library attention {sizes}, {width} to {given} {element}{masked}") })
    }
}

/// A convolution with its chain, as a graph of cuDNN's.
fn by_cudnn(
    call: &ConvCall,
    library: &Arc<Cudnn>,
    graph: &Graph,
    layout: &Layout,
    stream: &Stream,
) -> Result<CudnnPlan> {
    let mut network = Network::new(library);
    let in_memory = |id| Place::Memory(layout.address(id));
    let (dims, strides) = channels_last(&call.input_dims);
    let operand = graph.node(call.input).element;
    let input = network.tensor(operand, &dims, &strides, in_memory(call.input))?;
    let (dims, strides) = channels_last(&call.weights_dims);
    let weights = network.tensor(operand, &dims, &strides, in_memory(call.weights))?;
    let (dims, strides) = channels_last(&call.output_dims);
    let given = graph.node(call.output).element;
    let result = |network: &mut Network, last: bool| {
        let (element, place) =
            if last { (given, in_memory(call.output)) } else { (ElementType::F32, Place::Between) };
        network.tensor(element, &dims, &strides, place)
    };
    let first = result(&mut network, call.chain.is_empty())?;
    network.convolution(input, weights, first, &call.windows)?;
    let mut links: Vec<Value> = Vec::new();
    for (at, link) in call.chain.iter().enumerate() {
        let rank = dims.len();
        let take = |network: &mut Network, taken: Taken| match taken {
            Taken::Result => Ok(first),
            Taken::Link(at) => Ok(links[at]),
            Taken::Number(number) => network.number(number, rank),
            Taken::Like(id) => network.tensor(graph.node(id).element, &dims, &strides, in_memory(id)),
            Taken::Channels(id) => {
                let (mut one, channels) = (vec![1; rank], dims[1]);
                one[1] = channels;
                let mut steps = vec![channels; rank];
                steps[1] = 1;
                network.tensor(graph.node(id).element, &one, &steps, in_memory(id))
            }
        };
        let of = take(&mut network, link.of)?;
        let with = link.with.map(|with| take(&mut network, with)).transpose()?;
        let to = result(&mut network, at + 1 == call.chain.len())?;
        network.pointwise(link.op, of, with, to)?;
        links.push(to);
    }
    let room = (layout.workspace.address(), layout.workspace.bytes());
    network.plan(call.exact, room, stream)
}

/// A convolution by MIOpen, whose chain is a bias, a ReLU, or both.
fn by_miopen(
    call: &ConvCall,
    library: &Arc<miopen::Networks>,
    graph: &Graph,
    layout: &Layout,
    stream: &Stream,
) -> Result<miopen::Plan> {
    let shaped = |dims: &[usize]| {
        let (dims, strides) = channels_last(dims);
        miopen::Shaped { dims, strides }
    };
    let bias = call.chain.iter().find_map(|link| match link.with {
        Some(Taken::Channels(id)) => Some(id),
        _ => None,
    });
    let channels = |dims: &[usize]| dims.last().copied().unwrap_or(1);
    let problem = miopen::Problem {
        element: graph.node(call.input).element,
        input: shaped(&call.input_dims),
        weights: shaped(&call.weights_dims),
        output: shaped(&call.output_dims),
        windows: call.windows.clone(),
        groups: channels(&call.input_dims) / channels(&call.weights_dims).max(1),
        exact: call.exact,
        bias: bias.is_some(),
        relu: call.chain.iter().any(|link| link.op == Pointwise::Relu),
    };
    let places = miopen::Places {
        input: layout.address(call.input),
        weights: layout.address(call.weights),
        bias: bias.map_or(0, |id| layout.address(id)),
        output: layout.address(call.output),
        workspace: (layout.workspace.address(), layout.workspace.bytes()),
    };
    miopen::Plan::new(library, &problem, places, stream)
}

/// A network's tensor for an operand of attention.
fn heads(network: &mut Network, of: &Heads, element: ElementType, layout: &Layout) -> Result<Value> {
    let at = layout.address(of.value) + (of.offset * element.byte_width()) as u64;
    let (dims, strides) = (of.dims.map(|size| size as i64), of.strides.map(|stride| stride as i64));
    network.tensor(element, &dims, &strides, Place::Memory(at))
}

/// A network's tensor for the result of attention.
fn result(network: &mut Network, call: &AttentionCall, layout: &Layout) -> Result<Value> {
    let [batch, heads, rows, _] = call.queries.dims;
    let dims = [batch, heads, rows, call.values.dims[3]].map(|size| size as i64);
    let strides = call.output_strides.map(|stride| stride as i64);
    network.tensor(call.element, &dims, &strides, Place::Memory(layout.address(call.output)))
}

/// cuDNN's own operation, since 9.13; it has no masks.
fn attention_in_one(
    call: &AttentionCall,
    library: &Arc<Cudnn>,
    layout: &Layout,
    stream: &Stream,
) -> Result<CudnnPlan> {
    let mut network = Network::new(library);
    let query = heads(&mut network, &call.queries, call.element, layout)?;
    let key = heads(&mut network, &call.keys, call.element, layout)?;
    let value = heads(&mut network, &call.values, call.element, layout)?;
    let scale = network.number(call.scale, 4)?;
    let output = result(&mut network, call, layout)?;
    network.attention([query, key, value], scale, output)?;
    network.plan(false, (layout.workspace.address(), layout.workspace.bytes()), stream)
}

/// The operations that attention is made of.
fn attention_in_steps(
    call: &AttentionCall,
    causal: bool,
    library: &Arc<Cudnn>,
    layout: &Layout,
    stream: &Stream,
) -> Result<CudnnPlan> {
    let mut network = Network::new(library);
    let query = heads(&mut network, &call.queries, call.element, layout)?;
    let key = heads(&mut network, &call.keys.turned(), call.element, layout)?;
    let value = heads(&mut network, &call.values, call.element, layout)?;
    let output = result(&mut network, call, layout)?;
    let [batch, of, rows, _] = call.queries.dims.map(|size| size as i64);
    let scores = [batch, of, rows, call.keys.dims[2] as i64];
    network.attention_in_steps([query, key, value], (call.scale, causal), (call.element, scores), output)?;
    network.plan(false, (layout.workspace.address(), layout.workspace.bytes()), stream)
}

/// Sizes with the channels second, as cuDNN counts them, and strides with the channels side by side.
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

impl Step for Netted {
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
    fn channels_lie_side_by_side() {
        assert_eq!(channels_last(&[2, 5, 7, 3]), (vec![2, 3, 5, 7], vec![105, 1, 21, 3]));
        assert_eq!(channels_last(&[2, 7, 3]), (vec![2, 3, 1, 7], vec![21, 1, 21, 3]));
    }
}
