//! A graph seen through what does not matter to a pattern: layouts, and conversions between floats.

use warpforge_tensor::Scalar;
use warpforge_tensor::elementwise::Function;

use super::softmax::Dataflow;
use crate::graph::{Graph, NodeId, Op, ReduceKind};
use crate::view::LayoutOp;

/// Looks at nodes by what they compute.
#[derive(Clone, Copy)]
pub(super) struct Matcher<'g> {
    pub(super) graph: &'g Graph,
}

impl Dataflow for Matcher<'_> {
    type Value = NodeId;

    fn through(&self, value: NodeId) -> NodeId {
        Matcher::through(*self, value)
    }

    fn function(&self, value: NodeId) -> Option<Function> {
        match self.graph.node(value).op {
            Op::Elementwise(function) => Some(function),
            _ => None,
        }
    }

    fn is_elementwise(&self, value: NodeId) -> bool {
        matches!(self.graph.node(value).op, Op::Elementwise(_) | Op::Compare(..))
    }

    fn reduction(&self, value: NodeId) -> Option<ReduceKind> {
        match self.graph.node(value).op {
            Op::Reduce(kind, _) => Some(kind),
            _ => None,
        }
    }

    fn is_number(&self, value: NodeId) -> bool {
        self.number(value).is_some()
    }

    fn operands(&self, value: NodeId) -> &[NodeId] {
        &self.graph.node(value).inputs
    }
}

impl Matcher<'_> {
    /// What a value is before it was repeated, turned or converted to another float.
    pub(super) fn through(self, mut id: NodeId) -> NodeId {
        loop {
            let node = self.graph.node(id);
            let passes = match &node.op {
                Op::Layout(LayoutOp::Transpose(_) | LayoutOp::Reshape(_) | LayoutOp::Broadcast { .. }) => {
                    true
                }
                Op::Elementwise(Function::Convert) => {
                    node.element.is_float() && self.graph.node(node.inputs[0]).element.is_float()
                }
                _ => false,
            };
            if !passes {
                return id;
            }
            id = node.inputs[0];
        }
    }

    /// Whether a node is a function.
    pub(super) fn is(self, id: NodeId, function: Function) -> bool {
        matches!(self.graph.node(id).op, Op::Elementwise(of) if of == function)
    }

    /// The operands of an operation of a kind, seen through.
    pub(super) fn apart<const N: usize>(self, id: NodeId, kind: Function) -> Option<[NodeId; N]> {
        let node = self.graph.node(self.through(id));
        if !matches!(node.op, Op::Elementwise(of) if of == kind) {
            return None;
        }
        let operands: Vec<NodeId> = node.inputs.iter().map(|&input| self.through(input)).collect();
        operands.try_into().ok()
    }

    /// The two operands of an operation for which their order does not matter, in both orders.
    pub(super) fn both_orders(self, id: NodeId, kind: Function) -> Option<[[NodeId; 2]; 2]> {
        self.apart(id, kind).map(|[one, other]| [[one, other], [other, one]])
    }

    /// The operand of an operation whose other operand is the same number everywhere, and the number.
    pub(super) fn with_number(self, id: NodeId, kind: Function) -> Option<(NodeId, f64)> {
        let orders = self.both_orders(id, kind)?;
        orders.into_iter().find_map(|[value, number]| Some((value, self.number(number)?)))
    }

    /// The number that a constant is everywhere.
    fn number(self, id: NodeId) -> Option<f64> {
        let constant = self.graph.constant(self.through(id))?;
        let mut values = constant.iter();
        let Some(Scalar::Float(first)) = values.next() else { return None };
        values.all(|value| value == Scalar::Float(first)).then_some(first)
    }

    /// What a reduction reduces, and whether over the last dimension among others.
    pub(super) fn reduction_of(self, id: NodeId, reduction: ReduceKind) -> Option<(NodeId, bool)> {
        let node = self.graph.node(self.through(id));
        let Op::Reduce(of, dims) = &node.op else { return None };
        let input = node.inputs[0];
        let last = self.graph.node(input).dims.len().checked_sub(1)?;
        (*of == reduction).then(|| (self.through(input), dims.contains(&last)))
    }

    /// What a sum sums.
    pub(super) fn sum_of(self, id: NodeId) -> Option<NodeId> {
        self.reduction_of(id, ReduceKind::Add).map(|(summed, _)| summed)
    }

    /// What a mean is of, and whether over the last dimension among others.
    pub(super) fn mean_of(self, id: NodeId) -> Option<(NodeId, bool)> {
        let divided = self.apart(id, Function::Divide).filter(|&[_, count]| self.number(count).is_some());
        let sum = match divided {
            Some([sum, _]) => sum,
            None => self.with_number(id, Function::Multiply)?.0,
        };
        self.reduction_of(sum, ReduceKind::Add)
    }

    /// What a square is of.
    pub(super) fn square_of(self, id: NodeId) -> Option<NodeId> {
        if let Some([one, other]) = self.apart(id, Function::Multiply) {
            return (one == other).then_some(one);
        }
        let [base, exponent] = self.apart(id, Function::Power)?;
        (self.number(exponent) == Some(2.0)).then_some(base)
    }

    /// What is shown in the reverse order.
    pub(super) fn reversed(self, id: NodeId) -> Option<NodeId> {
        let node = self.graph.node(self.through(id));
        matches!(node.op, Op::Layout(LayoutOp::Reverse(_))).then(|| self.through(node.inputs[0]))
    }

    /// The numbers of a small constant.
    pub(super) fn numbers(self, id: NodeId) -> Option<Vec<f64>> {
        let constant = self.graph.constant(self.through(id)).filter(|constant| constant.len() <= 16)?;
        Some(constant.iter().map(Scalar::to_f64).collect())
    }
}
