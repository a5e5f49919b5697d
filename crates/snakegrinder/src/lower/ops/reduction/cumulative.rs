//! Running sums, products and extremes: by doubling the reach, so in as many steps as the length has bits.

use super::super::matrix::{DotPairing, dot};
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.cummax.default", |cx, args| running_extreme(cx, args, Cmp::Gt)),
    op("aten.cummin.default", |cx, args| running_extreme(cx, args, Cmp::Lt)),
    op("aten.cumprod.default", |cx, args| running(cx, args, OpKind::Multiply)),
    op("aten.cumsum.default", |cx, args| running(cx, args, OpKind::Add)),
    op("aten.logcumsumexp.default", logcumsumexp),
];

fn running(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let own = if x.is_inexact() { x.dtype } else { ElementType::I64 };
    let dtype = args.opt_dtype("dtype")?.unwrap_or(own);
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let elements = cx.convert(&x, dtype)?;
    let wide = cx.convert(&elements, opmath(dtype))?;
    let total = if x.rank() == 0 {
        wide
    } else if kind == OpKind::Add {
        cumulative_sum(cx, &wide, axis)?
    } else {
        let start = Scalar::one(wide.dtype);
        doubling(cx, &wide, axis, start, |cx, a, b| cx.binary(kind, a, b))?
    };
    one(cx.convert(&total, dtype)?)
}

/// The running sum along a dimension.
pub(in super::super) fn cumulative_sum(cx: &mut Cx<'_>, x: &Tensor, axis: usize) -> Lowered<Tensor> {
    if x.dim(axis).as_int().is_some() {
        return doubling(cx, x, axis, Scalar::zero(x.dtype), |cx, a, b| cx.add(a, b));
    }
    // Of an unknown length: the product with a triangle of ones.
    let size = x.dim(axis);
    let square = [size.clone(), size];
    let triangle = cx.index_mask(&square, 1, 0, Cmp::Le, &Size::Int(0))?;
    let triangle = cx.convert(&triangle, x.dtype)?;
    let summed = dot(cx, x, &triangle, &DotPairing::summing(&[axis], &[0]))?;
    let mut order: Vec<usize> = (0..x.rank() - 1).collect();
    order.insert(axis, x.rank() - 1);
    cx.transpose(&summed, &order)
}

/// Combines each element with all before it; `start` changes nothing when combined.
fn doubling(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    start: Scalar,
    combine: impl Fn(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Tensor> {
    let length = cx.known(&[x.dim(axis)])?[0];
    let mut result = x.clone();
    let mut reach = 1;
    while reach < length {
        let before = shifted(cx, &result, axis, reach, length, start)?;
        result = combine(cx, &before, &result)?;
        reach *= 2;
    }
    Ok(result)
}

/// Elements moved along a dimension, with `start` in the places that become free.
fn shifted(cx: &mut Cx<'_>, x: &Tensor, axis: usize, by: i64, length: i64, start: Scalar) -> Lowered<Tensor> {
    let kept = cx.slice(x, axis, &Size::Int(0), &Size::Int(length - by), 1)?;
    cx.pad_axis(&kept, axis, &Size::Int(by), &Size::Int(0), 0, start)
}

fn logcumsumexp(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    if x.rank() == 0 {
        return one(x);
    }
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let result = doubling(cx, &wide, axis, Scalar::Float(f64::NEG_INFINITY), |cx, a, b| {
        let top = cx.max(a, b)?;
        let low = cx.min(a, b)?;
        let distance = cx.sub(&low, &top)?;
        let part = cx.unary(OpKind::Exponential, &distance)?;
        let rest = cx.unary(OpKind::LogPlusOne, &part)?;
        let sum = cx.add(&top, &rest)?;
        // The same infinity twice has no distance.
        let finite = cx.unary_to(OpKind::IsFinite, &top, ElementType::Bool)?;
        cx.select(&finite, &sum, &top)
    })?;
    one(cx.convert(&result, x.dtype)?)
}

/// The extreme so far and the last place that it was met at; NaN counts as the extreme.
fn running_extreme(cx: &mut Cx<'_>, args: &Args<'_>, how: Cmp) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    if x.rank() == 0 {
        let zero = cx.splat(ElementType::I64, &[], 0)?;
        return Ok(vec![x.into(), zero.into()]);
    }
    let length = cx.known(&[x.dim(axis)])?[0];
    let neutral =
        if how == Cmp::Gt { crate::lower::cx::lowest(x.dtype) } else { crate::lower::cx::highest(x.dtype) };
    let mut value = x.clone();
    let mut place = cx.iota(ElementType::I64, &x.dims, axis)?;
    let mut reach = 1;
    while reach < length {
        let before = shifted(cx, &value, axis, reach, length, neutral)?;
        let before_place = shifted(cx, &place, axis, reach, length, Scalar::Int(-1))?;
        let mut earlier = cx.compare(how, &before, &value)?;
        if x.dtype.is_float() {
            let (unknown, known) = (cx.is_nan(&before)?, cx.compare(Cmp::Eq, &value, &value)?);
            let first = cx.and(&unknown, &known)?;
            earlier = cx.or(&earlier, &first)?;
        }
        // Places before the first are no places.
        let exists = cx.compare_number(Cmp::Ge, &before_place, 0)?;
        let earlier = cx.and(&earlier, &exists)?;
        value = cx.select(&earlier, &before, &value)?;
        place = cx.select(&earlier, &before_place, &place)?;
        reach *= 2;
    }
    Ok(vec![value.into(), place.into()])
}
