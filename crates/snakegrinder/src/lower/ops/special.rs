//! Operations of no family: parametrisations, histograms, mixtures of experts.

use super::matrix::{DotPairing, dot};
use super::prelude::*;
use super::reduction::norm_of;

pub(super) const TABLE: &[Op] = &[
    op("aten._grouped_mm.default", |cx, args| {
        let (x, weight) = (args.tensor("self")?, args.tensor("mat2")?);
        if args.opt_tensor("bias")?.is_some() {
            return refuse("a grouped product with a bias");
        }
        args.ignore(&["out_dtype"]);
        let Some(ends) = args.opt_tensor("offs")? else { return refuse("a grouped product without groups") };
        one(grouped(cx, &x, &weight, &ends)?)
    }),
    op("aten._weight_norm.default", |cx, args| {
        let (direction, length) = (args.tensor("v")?, args.tensor("g")?);
        let axis = cx.axis(args.int_or("dim", 0)?, direction.rank())?;
        Ok(vec![weight_norm(cx, &direction, &length, axis)?.0.into()])
    }),
    op("aten._weight_norm_interface.default", |cx, args| {
        let (direction, length) = (args.tensor("v")?, args.tensor("g")?);
        let axis = cx.axis(args.int_or("dim", 0)?, direction.rank())?;
        let (weight, norms) = weight_norm(cx, &direction, &length, axis)?;
        Ok(vec![weight.into(), norms.into()])
    }),
    op("aten.cross.default", cross).also(&["aten.linalg_cross.default"]),
    op("aten.diff.default", diff),
    op("aten.heaviside.default", heaviside),
    op("aten.histc.default", histc),
    op("transformers.grouped_mm_fallback.default", |cx, args| {
        let (x, weight, ends) = (args.tensor("input")?, args.tensor("weight")?, args.tensor("offs")?);
        one(grouped(cx, &x, &weight, &ends)?)
    }),
];

/// Each row times the matrix of its group; `ends` says where each group of rows ends.
fn grouped(cx: &mut Cx<'_>, x: &Tensor, weight: &Tensor, ends: &Tensor) -> Lowered<Tensor> {
    if x.rank() != 2 || weight.rank() != 3 {
        return refuse("a grouped product of other than rows and matrices");
    }
    let (rows, groups) = (x.dim(0), weight.dim(0));
    let dims = [rows.clone(), groups.clone()];
    let ends = cx.convert(ends, ElementType::I64)?;
    let row = cx.iota(ElementType::I64, &dims, 0)?;
    let end = cx.broadcast(&ends, &dims, &[1])?;
    // A row is in a group when it is before its end and not before the end of the group before.
    let before_end = cx.compare(Cmp::Lt, &row, &end)?;
    let first = cx.pad_axis(&before_end, 1, &Size::Int(1), &Size::Int(-1), 0, false)?;
    let not_before = cx.not(&first)?;
    let member = cx.and(&before_end, &not_before)?;
    let wide = [rows, groups, x.dim(1)];
    let each = cx.broadcast(x, &wide, &[0, 2])?;
    let member = cx.broadcast(&member, &wide, &[0, 1])?;
    let zero = cx.splat_like(&each, Scalar::zero(x.dtype))?;
    let each = cx.select(&member, &each, &zero)?;
    let product = dot(cx, &each, weight, &DotPairing::summing(&[1, 2], &[0, 1]))?;
    cx.convert(&product, x.dtype)
}

/// `v * g / |v|`, with a length for each index of a dimension.
fn weight_norm(
    cx: &mut Cx<'_>,
    direction: &Tensor,
    length: &Tensor,
    axis: usize,
) -> Lowered<(Tensor, Tensor)> {
    let axes: Vec<usize> = (0..direction.rank()).filter(|&at| at != axis).collect();
    let wide = cx.convert(direction, opmath(direction.dtype))?;
    let norm = norm_of(cx, &wide, &axes, 2.0)?;
    let kept = cx.keep_dims(&norm, &direction.dims, &axes)?;
    let length = cx.convert(length, wide.dtype)?;
    let factor = cx.div(&length, &kept)?;
    let factor = cx.expand_to(&factor, &direction.dims)?;
    let weight = cx.mul(&wide, &factor)?;
    Ok((cx.convert(&weight, direction.dtype)?, kept))
}

/// How many elements fall into each of equal ranges; the last one includes its end.
fn histc(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let bins = args.int_or("bins", 100)?;
    let (low, high) = (args.float_or("min", 0.0)?, args.float_or("max", 0.0)?);
    if low >= high {
        return refuse("ranges that depend on the data");
    }
    let wide = cx.convert(&x, opmath(to_inexact(x.dtype)))?;
    let count = x.numel();
    let flat = cx.reshape(&wide, std::slice::from_ref(&count))?;
    let shifted = cx.with_number(OpKind::Subtract, &flat, low)?;
    let scaled = cx.with_number(OpKind::Multiply, &shifted, bins as f64)?;
    let place = cx.with_number(OpKind::Divide, &scaled, high - low)?;
    let place = cx.unary(OpKind::Floor, &place)?;
    let place = cx.with_number(OpKind::Minimum, &place, (bins - 1) as f64)?;
    let (above, below) = (cx.compare_number(Cmp::Ge, &flat, low)?, cx.compare_number(Cmp::Le, &flat, high)?);
    let inside = cx.and(&above, &below)?;
    let dims = [count, Size::Int(bins)];
    let place = cx.convert(&place, ElementType::I64)?;
    let place = cx.broadcast(&place, &dims, &[0])?;
    let inside = cx.broadcast(&inside, &dims, &[0])?;
    let bin = cx.iota(ElementType::I64, &dims, 1)?;
    let hit = cx.compare(Cmp::Eq, &place, &bin)?;
    let hit = cx.and(&hit, &inside)?;
    let hit = cx.convert(&hit, x.dtype)?;
    one(cx.sum(&hit, &[0])?)
}

/// Differences of neighbours.
fn diff(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
    let (before, after) = (args.opt_tensor("prepend")?, args.opt_tensor("append")?);
    let times = args.int_or("n", 1)?;
    if times == 0 {
        return one(x);
    }
    let parts: Vec<Tensor> = before.into_iter().chain([x]).chain(after).collect();
    let mut result = cx.concatenate(&parts, axis)?;
    for _ in 0..times.clamp(0, 64) {
        let size = result.dim(axis);
        let later = cx.slice(&result, axis, &Size::Int(1), &size, 1)?;
        let earlier = cx.slice(&result, axis, &Size::Int(0), &size.sub(&Size::Int(1)), 1)?;
        result = if result.dtype == ElementType::Bool {
            cx.binary(OpKind::Xor, &later, &earlier)?
        } else {
            cx.sub(&later, &earlier)?
        };
    }
    one(result)
}

/// The cross product of vectors of three.
fn cross(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let operands: [Operand; 2] = [args.tensor("self")?.into(), args.tensor("other")?.into()];
    let dtype = result_type(&operands)?;
    let both = cx.unify(&operands, dtype)?;
    let axis = match args.opt_int("dim")? {
        Some(dim) => cx.axis(dim, both[0].rank())?,
        None if args.node.target.contains("linalg") => both[0].rank().saturating_sub(1),
        None => match both[0].dims.iter().position(|size| size.is(3)) {
            Some(axis) => axis,
            None => return refuse("a cross product of no vectors of three"),
        },
    };
    let rotated = |cx: &mut Cx<'_>, x: &Tensor, by: i64| {
        let last = cx.slice(x, axis, &Size::Int(by), &Size::Int(3), 1)?;
        let first = cx.slice(x, axis, &Size::Int(0), &Size::Int(by), 1)?;
        cx.concatenate(&[last, first], axis)
    };
    let (a1, a2) = (rotated(cx, &both[0], 1)?, rotated(cx, &both[0], 2)?);
    let (b1, b2) = (rotated(cx, &both[1], 1)?, rotated(cx, &both[1], 2)?);
    let (first, second) = (cx.mul(&a1, &b2)?, cx.mul(&a2, &b1)?);
    one(cx.sub(&first, &second)?)
}

/// 0 below zero, 1 above, `values` at zero.
fn heaviside(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let both = cx.broadcast_all(&[args.tensor("self")?, args.tensor("values")?])?;
    let (x, values) = (&both[0], &both[1]);
    let zero = Scalar::zero(x.dtype);
    let positive = cx.compare_number(Cmp::Gt, x, zero)?;
    let step = cx.convert(&positive, x.dtype)?;
    let at_zero = cx.compare_number(Cmp::Eq, x, zero)?;
    one(cx.select(&at_zero, values, &step)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn differences_of_no_order_are_the_tensor_itself() {
        for (times, expected) in [(0, vec![1.0, 4.0]), (2, vec![2.0])] {
            let arguments = vec![
                ("self", Floats(&[2], vec![1.0, 4.0])),
                ("n", Plain(json!({"as_int": times}))),
                ("prepend", Floats(&[1], vec![0.0])),
            ];
            assert_eq!(
                evaluated("aten.diff.default", arguments, &[(F32, &[if times == 0 { 2 } else { 1 }])]),
                [expected]
            );
        }
    }
}
