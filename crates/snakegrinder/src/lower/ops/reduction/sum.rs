//! Sums, products, means, and truth values of many.

use super::super::prelude::*;
use super::{folded_count, reduced_axes, shaped, size_like};

pub(super) const TABLE: &[Op] = &[
    op("aten._is_all_true.default", |cx, args| truth(cx, args, OpKind::And, true)).also(&[
        "aten.all.default",
        "aten.all.dim",
        "aten.all.dims",
    ]),
    op("aten._is_any_true.default", |cx, args| truth(cx, args, OpKind::Or, false)).also(&[
        "aten.any.default",
        "aten.any.dim",
        "aten.any.dims",
    ]),
    op("aten.count_nonzero.default", count_nonzero).also(&["aten.count_nonzero.dim_IntList"]),
    op("aten.logsumexp.default", logsumexp),
    op("aten.mean.default", mean).also(&["aten.mean.dim"]),
    op("aten.nanmean.default", nanmean),
    op("aten.nansum.default", nansum),
    op("aten.prod.default", |cx, args| reduced(cx, args, OpKind::Multiply)).also(&["aten.prod.dim_int"]),
    op("aten.sum.default", |cx, args| reduced(cx, args, OpKind::Add)).also(&["aten.sum.dim_IntList"]),
    op("aten.sum_to_size.default", sum_to_size),
    op("aten.trace.default", trace),
];

/// The type of a sum: that asked for, or 64-bit integers for all integers and truth values.
fn sum_type(args: &Args<'_>, x: &Tensor) -> Lowered<ElementType> {
    let own = if x.is_inexact() { x.dtype } else { ElementType::I64 };
    Ok(args.opt_dtype("dtype")?.unwrap_or(own))
}

fn reduced(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = sum_type(args, &x)?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    // A narrow type that is asked for rounds the elements first.
    let elements = cx.convert(&x, dtype)?;
    let wide = cx.convert(&elements, opmath(dtype))?;
    let start = if kind == OpKind::Add { Scalar::zero(wide.dtype) } else { Scalar::one(wide.dtype) };
    let total = cx.reduce(kind, &wide, &axes, start)?;
    let total = shaped(cx, args, &x, &total, &axes)?;
    one(cx.convert(&total, dtype)?)
}

fn mean(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(x.dtype);
    if !dtype.is_float() && !dtype.is_complex() {
        return refuse(format!("a mean of {dtype}"));
    }
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let elements = cx.convert(&x, dtype)?;
    let wide = cx.convert(&elements, opmath(dtype))?;
    let mean = mean_of(cx, &wide, &axes)?;
    let mean = shaped(cx, args, &x, &mean, &axes)?;
    one(cx.convert(&mean, dtype)?)
}

/// The mean over dimensions, in the tensor's own type.
pub(in super::super) fn mean_of(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
    let total = cx.sum(x, axes)?;
    let count = size_like(cx, &folded_count(x, axes), &total)?;
    cx.div(&total, &count)
}

fn without_nan(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<(Tensor, Tensor)> {
    let unknown = cx.is_nan(x)?;
    let zero = cx.splat_like(x, 0.0)?;
    let known = cx.select(&unknown, &zero, x)?;
    Ok((known, cx.not(&unknown)?))
}

fn nansum(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = sum_type(args, &x)?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let wide = cx.convert(&x, opmath(dtype))?;
    let known = if wide.dtype.is_float() { without_nan(cx, &wide)?.0 } else { wide };
    let total = cx.sum(&known, &axes)?;
    let total = shaped(cx, args, &x, &total, &axes)?;
    one(cx.convert(&total, dtype)?)
}

fn nanmean(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(x.dtype);
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let wide = cx.convert(&x, opmath(dtype))?;
    let (known, counted) = without_nan(cx, &wide)?;
    let total = cx.sum(&known, &axes)?;
    let counted = cx.convert(&counted, wide.dtype)?;
    let count = cx.sum(&counted, &axes)?;
    let mean = cx.div(&total, &count)?;
    let mean = shaped(cx, args, &x, &mean, &axes)?;
    one(cx.convert(&mean, dtype)?)
}

fn truth(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind, start: bool) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let bools = cx.convert(&x, ElementType::Bool)?;
    let reduced = cx.reduce(kind, &bools, &axes, Scalar::Bool(start))?;
    let reduced = shaped(cx, args, &x, &reduced, &axes)?;
    // PyTorch keeps bytes bytes.
    let dtype = if x.dtype == ElementType::U8 { ElementType::U8 } else { ElementType::Bool };
    one(cx.convert(&reduced, dtype)?)
}

fn count_nonzero(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let bools = cx.convert(&x, ElementType::Bool)?;
    let ones = cx.convert(&bools, ElementType::I64)?;
    one(cx.sum(&ones, &axes)?)
}

fn logsumexp(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = to_inexact(x.dtype);
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let wide = cx.convert(&x, opmath(dtype))?;
    let top = cx.maximum_of(&wide, &axes)?;
    // An infinite maximum is no shift: the difference of infinities is NaN.
    let finite = cx.unary_to(OpKind::IsFinite, &top, ElementType::Bool)?;
    let zero = cx.splat_like(&top, 0.0)?;
    let shift = cx.select(&finite, &top, &zero)?;
    let spread = cx.spread(&shift, &wide.dims, &axes)?;
    let difference = cx.sub(&wide, &spread)?;
    let parts = cx.unary(OpKind::Exponential, &difference)?;
    let total = cx.sum(&parts, &axes)?;
    let log = cx.unary(OpKind::Log, &total)?;
    let result = cx.add(&log, &shift)?;
    let result = shaped(cx, args, &x, &result, &axes)?;
    one(cx.convert(&result, dtype)?)
}

fn sum_to_size(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let size = args.sizes("size")?;
    let Some(extra) = x.rank().checked_sub(size.len()) else { return refuse("a sum to more dimensions") };
    let axes: Vec<usize> = (0..x.rank())
        .filter(|&axis| axis < extra || (size[axis - extra].is(1) && !x.dim(axis).is(1)))
        .collect();
    // Where nothing is summed, the tensor keeps its type.
    let dtype = if axes.is_empty() { x.dtype } else { sum_type(args, &x)? };
    let wide = cx.convert(&x, opmath(dtype))?;
    let total = cx.sum(&wide, &axes)?;
    let total = cx.reshape(&total, &size)?;
    one(cx.convert(&total, dtype)?)
}

fn trace(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.rank() != 2 {
        return refuse("the trace of something that is no matrix");
    }
    let dtype = if x.is_inexact() { x.dtype } else { ElementType::I64 };
    let wide = cx.convert(&x, opmath(dtype))?;
    let mask = cx.index_mask(&x.dims, 0, 1, Cmp::Eq, &Size::Int(0))?;
    let zero = cx.splat_like(&wide, Scalar::zero(wide.dtype))?;
    let kept = cx.select(&mask, &wide, &zero)?;
    let total = cx.sum(&kept, &[0, 1])?;
    one(cx.convert(&total, dtype)?)
}
