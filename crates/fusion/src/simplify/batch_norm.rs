//! Batch normalisation and other scales of channels after a convolution: multiplied into its weights.

use std::collections::HashMap;

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Tensor};

use super::rewrite::Rewrite;
use crate::graph::{Graph, NodeId, Op};
use crate::view::LayoutOp;

/// A convolution followed by a multiplication and an addition for each channel, not made yet.
#[derive(Clone, Copy)]
struct Affine {
    /// The convolution in the old graph.
    conv: NodeId,
    /// A vector of the new graph with a factor for each channel.
    scale: Option<NodeId>,
    /// A vector of the new graph with a summand for each channel.
    shift: Option<NodeId>,
}

/// The graph with scales of channels in the weights of the convolutions before them.
pub(super) fn fold_into_weights(graph: &Graph) -> Graph {
    let mut users = graph.users();
    for output in graph.outputs.iter().chain(&graph.effects) {
        users[output.index()].push(*output);
    }
    let mut pass = Pass { rewrite: Rewrite::new(graph), pending: HashMap::new() };
    for id in graph.ids() {
        match pass.extended(id) {
            Some(affine) if users[id.index()].len() == 1 && !graph.outputs.contains(&id) => {
                pass.pending.insert(id, affine);
            }
            Some(affine) => pass.make(id, affine),
            None => {
                pass.make_inputs(id);
                pass.rewrite.copy(id);
            }
        }
    }
    pass.rewrite.finish()
}

struct Pass<'g> {
    rewrite: Rewrite<'g>,
    pending: HashMap<NodeId, Affine>,
}

impl Pass<'_> {
    /// A node as a convolution with a scale and a shift, when it is one.
    fn extended(&mut self, id: NodeId) -> Option<Affine> {
        let old = self.rewrite.old;
        let node = old.node(id);
        match &node.op {
            Op::Conv(_) if node.element == ElementType::F32 && self.weights(id).is_some() => {
                self.make_inputs(id);
                Some(Affine { conv: id, scale: None, shift: None })
            }
            Op::Elementwise(kind @ (Function::Add | Function::Subtract | Function::Multiply)) => {
                let &[a, b] = node.inputs.as_slice() else { return None };
                let (inner, vector) = match (self.pending.get(&a), self.pending.get(&b)) {
                    (Some(affine), None) => (*affine, b),
                    (None, Some(affine)) if *kind != Function::Subtract => (*affine, a),
                    _ => return None,
                };
                let vector = self.vector(vector, node.dims.len(), *node.dims.last()?)?;
                self.pending.remove(&a);
                self.pending.remove(&b);
                let b = &mut self.rewrite.builder;
                b.origin = node.origin;
                let times = |b: &mut crate::graph::Builder, value: Option<NodeId>| {
                    value.map(|value| b.map(Function::Multiply, vec![value, vector]))
                };
                Some(match kind {
                    Function::Multiply => Affine {
                        conv: inner.conv,
                        scale: Some(times(b, inner.scale).unwrap_or(vector)),
                        shift: times(b, inner.shift),
                    },
                    _ => {
                        let sum = match (kind, inner.shift) {
                            (Function::Subtract, None) => b.map(Function::Negate, vec![vector]),
                            (_, None) => vector,
                            (kind, Some(shift)) => b.map(*kind, vec![shift, vector]),
                        };
                        Affine { shift: Some(sum), ..inner }
                    }
                })
            }
            _ => None,
        }
    }

    /// A vector that an old node repeats along the channels, in the new graph, when it is a constant.
    fn vector(&mut self, id: NodeId, rank: usize, channels: usize) -> Option<NodeId> {
        let old = self.rewrite.old;
        let Op::Layout(LayoutOp::Broadcast { map, .. }) = &old.node(id).op else { return None };
        let source = old.node(id).inputs[0];
        old.constant(source)?;
        let new = *self.rewrite.made.get(&source)?;
        if map.is_empty() {
            return Some(self.rewrite.builder.broadcast(new, vec![channels], &[]));
        }
        (*map == [rank - 1]).then_some(new)
    }

    /// The constant that the weights of a convolution are, and which of its dimensions has the output channels.
    fn weights(&self, conv: NodeId) -> Option<(Tensor, usize)> {
        let old = self.rewrite.old;
        let weights = old.node(old.node(conv).inputs[1]);
        match &weights.op {
            Op::Constant(tensor) => Some((tensor.clone(), weights.dims.len() - 1)),
            Op::Layout(LayoutOp::Transpose(permutation)) => {
                Some((old.constant(weights.inputs[0])?.clone(), *permutation.last()?))
            }
            _ => None,
        }
    }

    /// Makes the inputs of a node that are not made yet.
    fn make_inputs(&mut self, id: NodeId) {
        for &input in &self.rewrite.old.node(id).inputs {
            if let Some(affine) = self.pending.remove(&input) {
                self.make(input, affine);
            }
        }
    }

    /// Makes the node that is a convolution with a scale and a shift.
    fn make(&mut self, id: NodeId, affine: Affine) {
        let new = self.made(affine);
        self.rewrite.made.insert(id, new);
    }

    /// The convolution with its scale in the weights, and its shift added.
    fn made(&mut self, affine: Affine) -> NodeId {
        let old = self.rewrite.old;
        let node = old.node(affine.conv);
        let scaled = affine.scale.and_then(|scale| self.scaled(affine.conv, scale));
        self.rewrite.builder.origin = node.origin;
        let b = &mut self.rewrite.builder;
        let input = self.rewrite.made[&node.inputs[0]];
        let weights = scaled.unwrap_or(self.rewrite.made[&node.inputs[1]]);
        let mut result = b.raw(node.op.clone(), vec![input, weights], node.element, node.dims.clone());
        let last = node.dims.len() - 1;
        if let (None, Some(scale)) = (scaled, affine.scale) {
            let scale = b.broadcast(scale, node.dims.clone(), &[last]);
            result = b.map(Function::Multiply, vec![result, scale]);
        }
        if let Some(shift) = affine.shift {
            let shift = b.broadcast(shift, node.dims.clone(), &[last]);
            result = b.map(Function::Add, vec![result, shift]);
        }
        result
    }

    /// The weights of a convolution times a vector, in the new graph.
    fn scaled(&mut self, conv: NodeId, scale: NodeId) -> Option<NodeId> {
        let (mut tensor, axis) = self.weights(conv)?;
        let factors = self.rewrite.builder.value(scale)?;
        let factors = factors.as_slice::<f32>().ok()?.to_vec();
        let inner: usize = tensor.dims()[axis + 1..].iter().product();
        let values = tensor.as_slice_mut::<f32>().ok()?;
        for (at, run) in values.chunks_exact_mut(inner.max(1)).enumerate() {
            let factor = factors[at % factors.len()];
            run.iter_mut().for_each(|value| *value *= factor);
        }
        let old = self.rewrite.old;
        let weights = old.node(old.node(conv).inputs[1]);
        let constant = self.rewrite.builder.constant(tensor);
        Some(match &weights.op {
            Op::Layout(LayoutOp::Transpose(permutation)) => {
                self.rewrite.builder.transpose(constant, permutation.clone())
            }
            _ => constant,
        })
    }
}
