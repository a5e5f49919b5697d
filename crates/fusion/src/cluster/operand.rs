//! Operands in memory, seen through the layouts that lead to them.

use super::State;
use crate::graph::{Dot, Id, Op};
use crate::view::{Step, View, merged};

/// A value in memory and how it is seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The value.
    pub value: Id,
    /// Which of its elements stands where.
    pub view: View,
}

impl State<'_> {
    /// The value that layouts lead to, as deep as `accept` takes the view; it will be in memory.
    pub(super) fn operand(&mut self, id: Id, accept: &dyn Fn(&View) -> bool) -> Operand {
        let graph = self.graph;
        let mut best = Operand { value: id, view: View::dense(&graph.node(id).dims) };
        let mut steps: Vec<&Step> = Vec::new();
        let mut at = id;
        // A value that is in memory anyway, or that repeats little, is not copied for another order.
        while let Op::Layout(step) = &graph.node(at).op {
            steps.insert(0, step);
            at = graph.node(at).inputs[0];
            match View::dense(&graph.node(at).dims).after_all(steps.iter().copied()) {
                Some(view) if accept(&view) => best = Operand { value: at, view },
                Some(_) => {}
                None => break,
            }
        }
        self.needed[best.value.index()] = true;
        best
    }

    /// A value that kernels read in row-major order.
    pub(super) fn dense_operand(&mut self, id: Id) -> Operand {
        let len = self.graph.node(id).len();
        let graph = self.graph;
        let accept = |view: &View| view.is_dense() && view.len() == len;
        let mut found = self.operand_without_need(id, &accept);
        // A dense part of a longer array is not the array.
        if graph.node(found.value).len() != len {
            found = Operand { value: id, view: View::dense(&graph.node(id).dims) };
        }
        self.needed[found.value.index()] = true;
        found
    }

    fn operand_without_need(&mut self, id: Id, accept: &dyn Fn(&View) -> bool) -> Operand {
        let before = self.needed.clone();
        let found = self.operand(id, accept);
        self.needed = before;
        found
    }

    /// A value that kernels read with any strides.
    pub(super) fn any_operand(&mut self, id: Id) -> Operand {
        self.operand(id, &|_| true)
    }

    /// The operands of a product: rows and columns each with one stride.
    pub(super) fn dot_operands(&mut self, id: Id, dot: &Dot) -> [Operand; 2] {
        let inputs = self.graph.node(id).inputs.clone();
        let sides = [(&dot.lhs_batch, &dot.lhs_contract), (&dot.rhs_batch, &dot.rhs_contract)];
        [0, 1].map(|side| {
            let (batch, contract) = sides[side];
            let rank = self.graph.node(inputs[side]).dims.len();
            let free: Vec<usize> =
                (0..rank).filter(|at| !batch.contains(at) && !contract.contains(at)).collect();
            let accept = |view: &View| {
                single_stride(view, contract).is_some()
                    && single_stride(view, &free).is_some()
                    && view.strides.iter().all(|&stride| stride >= 0)
            };
            self.operand(inputs[side], &accept)
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
