//! Operands in memory, seen through the layouts that lead to them.

use super::State;
use crate::graph::{Dot, NodeId, Op};
use crate::view::{LayoutOp, View, merged};

/// A value in memory and how it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The value.
    pub value: NodeId,
    /// Which of its elements stands where.
    pub view: View,
}

impl State<'_> {
    /// The value that layouts lead to, as deep as `accept` takes the view. It will be in memory.
    fn operand(&mut self, id: NodeId, accept: impl Fn(&Operand) -> bool) -> Operand {
        let graph = self.graph;
        let mut best = Operand { value: id, view: View::dense(&graph.node(id).dims) };
        let mut steps: Vec<&LayoutOp> = Vec::new();
        let mut value = id;
        while let Op::Layout(step) = &graph.node(value).op {
            steps.insert(0, step);
            value = graph.node(value).inputs[0];
            let seen = View::dense(&graph.node(value).dims).after_all(steps.iter().copied());
            let Some(view) = seen else { break };
            let deeper = Operand { value, view };
            if accept(&deeper) {
                best = deeper;
            }
        }
        self.needed[best.value.index()] = true;
        best
    }

    /// A value that kernels read whole and in row-major order.
    pub(super) fn dense_operand(&mut self, id: NodeId) -> Operand {
        let graph = self.graph;
        let len = graph.node(id).len();
        self.operand(id, |seen| seen.view.is_dense() && graph.node(seen.value).len() == len)
    }

    /// A value that kernels read with any strides.
    pub(super) fn any_operand(&mut self, id: NodeId) -> Operand {
        self.operand(id, |_| true)
    }

    /// The weights of a convolution: windows may be read backwards, channels not.
    pub(super) fn weights_operand(&mut self, id: NodeId) -> Operand {
        let channels = self.graph.node(id).dims.len() - 2..;
        self.operand(id, |seen| seen.view.strides[channels.clone()].iter().all(|&stride| stride >= 0))
    }

    /// The operands of a product: rows and columns each with one stride.
    pub(super) fn dot_operands(&mut self, id: NodeId, dot: &Dot) -> [Operand; 2] {
        let inputs = self.graph.node(id).inputs.clone();
        let sides = [(&dot.lhs_batch, &dot.lhs_contract), (&dot.rhs_batch, &dot.rhs_contract)];
        [0, 1].map(|side| {
            let (batch, contract) = sides[side];
            let rank = self.graph.node(inputs[side]).dims.len();
            let free: Vec<usize> =
                (0..rank).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
            self.operand(inputs[side], |seen| {
                single_stride(&seen.view, contract).is_some()
                    && single_stride(&seen.view, &free).is_some()
                    && seen.view.strides.iter().all(|&stride| stride >= 0)
            })
        })
    }
}

/// The one stride that these dimensions of a view have together; 0 where they have one element.
#[must_use]
pub fn single_stride(view: &View, dims: &[usize]) -> Option<isize> {
    let all = dims.iter().map(|&at| (view.dims[at], view.strides[at])).filter(|&(dim, _)| dim != 1);
    match merged(all).as_slice() {
        [] => Some(0),
        [(_, stride)] => Some(*stride),
        _ => None,
    }
}
