//! Operands in memory, seen through the layouts that lead to them.

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

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
    /// The value that layouts lead to, as deep as `accept` takes the view.
    fn operand(&self, id: NodeId, accept: impl Fn(&Operand) -> bool) -> Operand {
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
        best
    }

    fn in_memory(&mut self, operand: Operand) -> Operand {
        self.needed[operand.value.index()] = true;
        operand
    }

    /// The operand of a contraction: before its conversion, where the contraction does that while it reads.
    fn contracted(&mut self, mut operand: Operand) -> Operand {
        if let Some(wide) = self.before_conversion(operand.value) {
            operand.value = wide;
        }
        self.in_memory(operand)
    }

    /// What a conversion to a narrower float converts, where no kernel but one of its own could do it and only one contraction
    /// reads it. Constants are converted while they are packed.
    fn before_conversion(&self, id: NodeId) -> Option<NodeId> {
        let (graph, node) = (self.graph, self.graph.node(id));
        let (Op::Elementwise(Function::Convert), &[wide]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        let from = graph.node(wide);
        let narrows =
            from.element == ElementType::F32 && matches!(node.element, ElementType::BF16 | ElementType::F16);
        if !self.converts_operands || !narrows || graph.outputs.contains(&id) {
            return None;
        }
        if matches!(from.op, Op::Constant(_)) {
            return Some(wide);
        }
        let produced = matches!(
            from.op,
            Op::Elementwise(_) | Op::Compare(..) | Op::Iota(_) | Op::Reduce(..) | Op::Dot(_) | Op::Conv(_)
        );
        let by_producer = produced && self.real_users[wide.index()] == [id];
        (!by_producer && self.real_users[id.index()].len() == 1).then_some(wide)
    }

    /// A value that kernels read whole and in row-major order.
    pub(super) fn dense_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.dense(id);
        self.in_memory(operand)
    }

    fn dense(&self, id: NodeId) -> Operand {
        let len = self.graph.node(id).len();
        self.operand(id, |seen| seen.view.is_dense() && self.graph.node(seen.value).len() == len)
    }

    /// The image of a convolution, read as [`State::dense_operand`] is.
    pub(super) fn image_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.dense(id);
        self.contracted(operand)
    }

    /// A value that kernels read with any strides.
    pub(super) fn any_operand(&mut self, id: NodeId) -> Operand {
        let operand = self.operand(id, |_| true);
        self.in_memory(operand)
    }

    /// The weights of a convolution: windows may be read backwards, channels not.
    pub(super) fn weights_operand(&mut self, id: NodeId) -> Operand {
        let channels = self.graph.node(id).dims.len() - 2..;
        let operand =
            self.operand(id, |seen| seen.view.strides[channels.clone()].iter().all(|&stride| stride >= 0));
        self.contracted(operand)
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
            let operand = self.operand(inputs[side], |seen| {
                single_stride(&seen.view, contract).is_some()
                    && single_stride(&seen.view, &free).is_some()
                    && seen.view.strides.iter().all(|&stride| stride >= 0)
            });
            self.contracted(operand)
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
