//! A graph seen through what does not matter to an idiom: layouts, and conversions between floats.

use warpforge_ir::OpKind;
use warpforge_tensor::Scalar;

use crate::graph::{Fold, Graph, Id, Op};
use crate::view::Step;

/// Looks at nodes by what they compute.
#[derive(Clone, Copy)]
pub(super) struct See<'g> {
    pub(super) graph: &'g Graph,
}

impl See<'_> {
    /// What a value is before it was repeated, turned or converted to another float.
    pub(super) fn through(self, mut id: Id) -> Id {
        loop {
            let node = self.graph.node(id);
            let passes = match &node.op {
                Op::Layout(Step::Transpose(_) | Step::Reshape(_) | Step::Broadcast { .. }) => true,
                Op::Elementwise(OpKind::Convert) => {
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

    /// The operands of an operation of a kind, seen through.
    pub(super) fn apart<const N: usize>(self, id: Id, kind: OpKind) -> Option<[Id; N]> {
        let node = self.graph.node(self.through(id));
        if !matches!(node.op, Op::Elementwise(of) if of == kind) {
            return None;
        }
        let operands: Vec<Id> = node.inputs.iter().map(|&input| self.through(input)).collect();
        operands.try_into().ok()
    }

    /// The two operands of an operation for which their order does not matter, in both orders.
    pub(super) fn both_orders(self, id: Id, kind: OpKind) -> Option<[[Id; 2]; 2]> {
        self.apart(id, kind).map(|[one, other]| [[one, other], [other, one]])
    }

    /// The operand of an operation whose other operand is the same number everywhere, and the number.
    pub(super) fn with_number(self, id: Id, kind: OpKind) -> Option<(Id, f64)> {
        let orders = self.both_orders(id, kind)?;
        orders.into_iter().find_map(|[value, number]| Some((value, self.number(number)?)))
    }

    /// The number that a constant is everywhere.
    fn number(self, id: Id) -> Option<f64> {
        let constant = self.graph.constant(self.through(id))?;
        let mut values = constant.iter();
        let Some(Scalar::Float(first)) = values.next() else { return None };
        values.all(|value| value == Scalar::Float(first)).then_some(first)
    }

    /// What a fold folds, and whether over the last dimension among others.
    pub(super) fn fold_of(self, id: Id, fold: Fold) -> Option<(Id, bool)> {
        let node = self.graph.node(self.through(id));
        let Op::Reduce(of, dims) = &node.op else { return None };
        let input = node.inputs[0];
        let last = self.graph.node(input).dims.len().checked_sub(1)?;
        (*of == fold).then(|| (self.through(input), dims.contains(&last)))
    }

    /// What a sum sums.
    pub(super) fn sum_of(self, id: Id) -> Option<Id> {
        self.fold_of(id, Fold::Add).map(|(summed, _)| summed)
    }

    /// What a mean is of, and whether over the last dimension among others.
    pub(super) fn mean_of(self, id: Id) -> Option<(Id, bool)> {
        let divided = self.apart(id, OpKind::Divide).filter(|&[_, count]| self.number(count).is_some());
        let sum = match divided {
            Some([sum, _]) => sum,
            None => self.with_number(id, OpKind::Multiply)?.0,
        };
        self.fold_of(sum, Fold::Add)
    }

    /// What a square is of.
    pub(super) fn square_of(self, id: Id) -> Option<Id> {
        if let Some([one, other]) = self.apart(id, OpKind::Multiply) {
            return (one == other).then_some(one);
        }
        let [base, exponent] = self.apart(id, OpKind::Power)?;
        (self.number(exponent) == Some(2.0)).then_some(base)
    }

    /// What is shown in the reverse order.
    pub(super) fn reversed(self, id: Id) -> Option<Id> {
        let node = self.graph.node(self.through(id));
        matches!(node.op, Op::Layout(Step::Reverse(_))).then(|| self.through(node.inputs[0]))
    }

    /// The numbers of a small constant.
    pub(super) fn numbers(self, id: Id) -> Option<Vec<f64>> {
        let constant = self.graph.constant(self.through(id)).filter(|constant| constant.len() <= 16)?;
        Some(constant.iter().map(Scalar::to_f64).collect())
    }
}
