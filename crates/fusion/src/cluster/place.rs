//! Makes the cluster of a value: a loop that grows towards its inputs, or an operation of its own.

use super::contraction::Contraction;
use super::grow::grow;
use super::kind::{Cluster, Kind};
use super::state::State;
use crate::graph::{NodeId, Op};

impl State<'_> {
    /// Makes the cluster that gives a value.
    pub(super) fn place(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let kind = match &node.op {
            Op::Argument(_) | Op::Constant(_) => return,
            Op::Elementwise(_) | Op::Compare(..) | Op::Iota(_) | Op::Layout(_) | Op::Reduce(..) => {
                let (body, nodes) = grow(self, id);
                for load in &body.loads {
                    self.needed[load.value.index()] = true;
                }
                self.clusters.push(Cluster { kind: Kind::Loop(body), output: id, nodes });
                return;
            }
            Op::Dot(dot) => {
                let weights = self.quantized_weights(id);
                let operands = self.dot_operands(id, dot, weights.as_ref());
                let kind = Kind::Dot(Contraction { node: id, operands, weights, epilogue: None });
                let cluster = Cluster { kind, output: id, nodes: vec![id] };
                if (self.kernels.compute)(&cluster) {
                    cluster.reads().into_iter().for_each(|value| self.needed[value.index()] = true);
                    self.clusters.push(cluster);
                    return;
                }
                self.unfused(id)
            }
            Op::Conv(_) => Kind::Conv(self.convolution(id)),
            Op::Concat(_) => {
                Kind::Unfused(node.inputs.iter().map(|&input| self.any_operand(input)).collect())
            }
            Op::Pad { .. } => {
                Kind::Unfused(vec![self.any_operand(node.inputs[0]), self.dense_operand(node.inputs[1])])
            }
            Op::ReduceWindow(..)
            | Op::Gather(..)
            | Op::Resample(_)
            | Op::Scatter(..)
            | Op::DynamicSlice
            | Op::DynamicUpdateSlice
            | Op::SelectAndScatter { .. }
            | Op::Sort { .. }
            | Op::VariadicReduce(..)
            | Op::Call(_)
            | Op::Opaque(_)
            | Op::Complex => self.unfused(id),
            Op::Result(_) => {
                self.needed[node.inputs[0].index()] = true;
                return;
            }
        };
        self.clusters.push(Cluster { kind, output: id, nodes: vec![id] });
    }

    /// A node alone, from operands that are read whole.
    fn unfused(&mut self, id: NodeId) -> Kind {
        Kind::Unfused(self.graph.node(id).inputs.iter().map(|&input| self.dense_operand(input)).collect())
    }
}
