//! Gradients of taking parts.

use super::super::indexing::{put_rows, scatter_along, take_rows};
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.embedding_dense_backward.default", embedding),
    op("aten.index_select_backward.default", index_select),
    op("aten.select_backward.default", select),
    op("aten.slice_backward.default", slice),
    op("aten.value_selecting_reduction_backward.default", selected),
];

/// Each row of the gradient is added to the row that it was taken from.
fn embedding(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, indices) = (args.tensor("grad_output")?, args.tensor("indices")?);
    let rows = args.size("num_weights")?;
    let padding = args.int_or("padding_idx", -1)?;
    let by_frequency = args.bool_or("scale_grad_by_freq", false)?;
    if g.rank() < indices.rank() {
        return refuse("a gradient of fewer dimensions than the indices");
    }
    let count = indices.numel();
    let flat = cx.reshape(&indices, std::slice::from_ref(&count))?;
    let flat = cx.convert(&flat, ElementType::I64)?;
    let mut dims = vec![count];
    dims.extend_from_slice(&g.dims[indices.rank()..]);
    let updates = cx.reshape(&g, &dims)?;
    let mut updates = cx.convert(&updates, opmath(g.dtype))?;
    if by_frequency {
        let ones = cx.splat(updates.dtype, &dims[..1], 1.0)?;
        let none = cx.splat(updates.dtype, std::slice::from_ref(&rows), 0.0)?;
        let counts = put_rows(cx, &none, 0, &flat, &ones, OpKind::Add)?;
        let own = take_rows(cx, &counts, 0, &flat)?;
        let own = cx.broadcast(&own, &dims, &[0])?;
        updates = cx.div(&updates, &own)?;
    }
    if padding >= 0 {
        let real = cx.compare_number(Cmp::Ne, &flat, padding)?;
        let real = cx.broadcast(&real, &dims, &[0])?;
        let zero = cx.splat_like(&updates, 0.0)?;
        updates = cx.select(&real, &updates, &zero)?;
    }
    dims[0] = rows;
    let zeros = cx.splat(updates.dtype, &dims, 0.0)?;
    let total = put_rows(cx, &zeros, 0, &flat, &updates, OpKind::Add)?;
    one(cx.convert(&total, g.dtype)?)
}

fn index_select(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, index, dims) = (args.tensor("grad")?, args.tensor("index")?, args.sizes("self_sizes")?);
    let axis = cx.axis(args.int("dim")?, dims.len())?;
    let index = cx.reshape(&index, &[index.numel()])?;
    let index = cx.convert(&index, ElementType::I64)?;
    let zeros = cx.splat(g.dtype, &dims, Scalar::zero(g.dtype))?;
    one(put_rows(cx, &zeros, axis, &index, &g, OpKind::Add)?)
}

/// The dimension that something was taken from; a scalar has none.
fn axis_of(cx: &Cx<'_>, args: &Args<'_>, dims: &[Size]) -> Lowered<usize> {
    let axis = cx.axis(args.int("dim")?, dims.len())?;
    if dims.is_empty() { refuse("a part of a scalar") } else { Ok(axis) }
}

fn select(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, dims) = (args.tensor("grad_output")?, args.sizes("input_sizes")?);
    let axis = axis_of(cx, args, &dims)?;
    let mut start = args.size("index")?;
    if start.as_int().is_some_and(|start| start < 0) {
        start = start.add(&dims[axis]);
    }
    let part = cx.unsqueeze(&g, axis)?;
    let limit = start.add(&Size::Int(1));
    one(placed(cx, &part, &dims, axis, &start, &limit, 1)?)
}

fn slice(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, dims) = (args.tensor("grad_output")?, args.sizes("input_sizes")?);
    let axis = axis_of(cx, args, &dims)?;
    let step = args.int_or("step", 1)?;
    let size = &dims[axis];
    let inside = |at: Size| {
        let at = if at.as_int().is_some_and(|at| at < 0) { at.add(size) } else { at };
        at.larger(&Size::Int(0)).smaller(size)
    };
    let start = inside(args.size_or("start", 0)?);
    let limit = inside(args.size_or("end", i64::MAX)?);
    one(placed(cx, &g, &dims, axis, &start, &limit, step)?)
}

/// Zeros with a tensor at a range of one dimension.
fn placed(
    cx: &mut Cx<'_>,
    part: &Tensor,
    dims: &[Size],
    axis: usize,
    start: &Size,
    limit: &Size,
    step: i64,
) -> Lowered<Tensor> {
    let zeros = cx.splat(part.dtype, dims, Scalar::zero(part.dtype))?;
    cx.slice_scatter(&zeros, part, axis, start, limit, step)
}

/// The gradient of a reduction that chose one element of each row.
fn selected(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, indices, dims) = (args.tensor("grad")?, args.tensor("indices")?, args.sizes("sizes")?);
    let axis = cx.axis(args.int("dim")?, dims.len())?;
    let keep = args.bool_or("keepdim", false)?;
    if dims.is_empty() {
        return one(g);
    }
    let (g, indices) =
        if keep { (g, indices) } else { (cx.unsqueeze(&g, axis)?, cx.unsqueeze(&indices, axis)?) };
    let indices = cx.convert(&indices, ElementType::I64)?;
    let zeros = cx.splat(g.dtype, &dims, Scalar::zero(g.dtype))?;
    one(scatter_along(cx, &zeros, axis, &indices, &g.into(), OpKind::Return)?)
}
