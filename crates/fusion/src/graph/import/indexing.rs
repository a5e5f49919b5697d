//! Scatters, dynamic slices, sorts and reductions of several operands.

use std::sync::Arc;

use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::ElementType;

use super::contraction::window;
use super::element::storage;
use super::region::scalar_function;
use super::sizes::sizes;
use crate::graph::NodeId;
use crate::graph::build::{Builder, inverse};
use crate::graph::op::Op;
use crate::graph::scalar::{Combiner, Comparator};
use crate::view::LayoutOp;

/// A scatter of one operand.
pub(super) fn scatter(
    b: &mut Builder,
    op: OpRef<'_>,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let combiner = Combiner::new(scalar_function(op, 0)?, element)?;
    let scatter = Op::Scatter(op.scatter_dims()?.clone(), combiner);
    (given.len() == 3).then(|| b.add(scatter, given, element, dims))
}

/// A part of a tensor, from where scalars say.
pub(super) fn dynamic_slice(
    b: &mut Builder,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let whole = &b.node(*given.first()?).dims;
    fits(whole, &dims, &given[1..]).then(|| b.add(Op::DynamicSlice, given, element, dims))
}

/// A tensor with another in it, where scalars say.
pub(super) fn dynamic_update_slice(
    b: &mut Builder,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let part = &b.node(*given.get(1)?).dims;
    fits(&dims, part, &given[2..]).then(|| b.add(Op::DynamicUpdateSlice, given, element, dims))
}

fn fits(whole: &[usize], part: &[usize], starts: &[NodeId]) -> bool {
    whole.len() == part.len()
        && starts.len() == whole.len()
        && part.iter().zip(whole).all(|(part, whole)| part <= whole)
}

/// The gradient of pooling.
pub(super) fn select_and_scatter(
    b: &mut Builder,
    op: OpRef<'_>,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let select = scalar_function(op, 0)?;
    let scatter = Combiner::new(scalar_function(op, 1)?, element)?;
    let window = window(op)?;
    let rank = dims.len();
    let counted = window.dims.len() == rank && window.strides.len() == rank && window.padding.len() == rank;
    let chosen = select.arguments.len() == 2 && select.results.len() == 1;
    if given.len() != 3 || !counted || !chosen {
        return None;
    }
    let selects = |window| Op::SelectAndScatter { select: Arc::new(select), window, scatter };
    // In the order in which the operand is in memory, if elements of a window and windows come in the same order there: of equal ones the first is
    // selected.
    let in_order = |permutation: &&Vec<usize>| {
        let spanned = permutation.iter().zip(&window.dims).filter(|(_, size)| **size > 1);
        spanned.map(|(&at, _)| at).is_sorted()
    };
    let transposed = match &b.node(given[0]).op {
        Op::Layout(LayoutOp::Transpose(permutation)) => Some(permutation).filter(in_order).cloned(),
        _ => None,
    };
    let Some(permutation) = transposed else {
        return Some(b.add(selects(window), given, element, dims));
    };
    let operand = b.node(given[0]).inputs[0];
    let back = inverse(&permutation);
    let source = b.transpose(given[1], back.clone());
    let inner = back.iter().map(|&at| dims[at]).collect();
    let result = b.add(selects(window.transposed(&back)), vec![operand, source, given[2]], element, inner);
    Some(b.transpose(result, permutation))
}

/// The results of an operation that gives a tuple.
pub(super) fn tuple(b: &mut Builder, op: OpRef<'_>, given: Vec<NodeId>) -> Option<Vec<NodeId>> {
    let made = match op.kind()? {
        OpKind::Sort => sort(b, op, &given)?,
        OpKind::Reduce => variadic_reduce(b, op, &given)?,
        _ => return None,
    };
    let node = b.raw(made, given, ElementType::Bool, vec![0]);
    results(b, op, node)
}

/// The results of a tuple.
pub(super) fn results(b: &mut Builder, op: OpRef<'_>, node: NodeId) -> Option<Vec<NodeId>> {
    let result = |(at, ty)| {
        let (element, dims) = storage(ty)?;
        Some(b.raw(Op::Result(at), vec![node], element, dims))
    };
    op.result_types().enumerate().map(result).collect()
}

fn sort(b: &Builder, op: OpRef<'_>, given: &[NodeId]) -> Option<Op> {
    let function = scalar_function(op, 0)?;
    let dims = &b.node(*given.first()?).dims;
    let axis = op.attr_i64("dimension")?;
    let axis = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).ok()?;
    let pairs: Vec<ElementType> = given.iter().flat_map(|&id| [b.node(id).element; 2]).collect();
    let alike = given.iter().all(|&id| b.node(id).dims == *dims) && function.arguments == pairs;
    (alike && axis < dims.len()).then_some(Op::Sort { axis, comparator: Comparator::new(function)? })
}

/// A reduction of several operands, or of one by a function that is no [`ReduceKind`](crate::graph::ReduceKind).
fn variadic_reduce(b: &Builder, op: OpRef<'_>, given: &[NodeId]) -> Option<Op> {
    let function = scalar_function(op, 0)?;
    let axes = sizes(op.attr_i64s("dimensions")?)?;
    let (operands, initial) = given.split_at(given.len() / 2);
    let dims = &b.node(*operands.first()?).dims;
    let kept: Vec<usize> = (0..dims.len()).filter(|at| !axes.contains(at)).map(|at| dims[at]).collect();
    let starts: Vec<ElementType> = initial.iter().map(|&id| b.node(id).element).collect();
    let results = op.result_types().map(storage).collect::<Option<Vec<_>>>()?;
    let alike = operands.len() == initial.len()
        && function.arguments.len() == given.len()
        && function.results.len() == initial.len()
        && operands.iter().all(|&id| b.node(id).dims == *dims)
        && initial.iter().all(|&id| b.node(id).dims.is_empty())
        && results.iter().map(|(element, _)| *element).eq(starts)
        && results.iter().all(|(_, dims)| *dims == kept);
    (alike && axes.iter().all(|&axis| axis < dims.len())).then(|| Op::VariadicReduce(function.into(), axes))
}
