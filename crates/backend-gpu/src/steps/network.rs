//! Convolutions and attention by cuDNN.

use std::sync::Arc;

use warpforge_fusion::Graph;
use warpforge_tensor::ElementType;

use super::{Layout, Step};
use crate::cuda::networks::{Network, Networks, Place, Plan, Value};
use crate::driver::Stream;
use crate::error::Result;
use crate::lower::{AttentionCall, ConvCall, Heads, Taken};

/// A graph of cuDNN's operations.
pub(crate) struct Netted {
    plan: Plan,
    name: String,
}

impl Netted {
    /// A convolution with its chain.
    pub(crate) fn convolution(
        call: &ConvCall,
        library: &Arc<Networks>,
        graph: &Graph,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Self> {
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
        let plan = network.plan(call.exact, room, stream)?;
        let sizes = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let (inputs, windows, links) = (sizes(&call.input_dims), sizes(&call.weights_dims), call.chain.len());
        Ok(Self {
            plan,
            name: format!("library convolution {windows} over {inputs} {operand} + {links} operations"),
        })
    }

    /// Attention.
    pub(crate) fn attention(
        call: &AttentionCall,
        library: &Arc<Networks>,
        layout: &Layout,
        stream: &Stream,
    ) -> Result<Self> {
        let mut network = Network::new(library);
        let AttentionCall { queries, keys, values, element, .. } = call;
        let element = *element;
        let [batch, heads, rows, width] = queries.dims.map(|size| size as i64);
        let (columns, given) = (keys.dims[2] as i64, values.dims[3] as i64);
        let operand = |network: &mut Network, of: &Heads| {
            let at = layout.address(of.value) + (of.offset * element.byte_width()) as u64;
            let (dims, strides) = (of.dims.map(|size| size as i64), of.strides.map(|stride| stride as i64));
            network.tensor(element, &dims, &strides, Place::Memory(at))
        };
        let query = operand(&mut network, queries)?;
        let key = operand(&mut network, keys)?;
        let value = operand(&mut network, values)?;
        let scale = network.number(call.scale, 4)?;
        let dims = [batch, heads, rows, given];
        let strides = [heads * rows * given, rows * given, given, 1];
        let output = network.tensor(element, &dims, &strides, Place::Memory(layout.address(call.output)))?;
        network.attention([query, key, value], scale, output)?;
        let plan = network.plan(false, (layout.workspace.address(), layout.workspace.bytes()), stream)?;
        let name =
            format!("library attention {batch}x{heads}x{rows}x{columns}, {width} to {given} {element}");
        Ok(Self { plan, name })
    }
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
