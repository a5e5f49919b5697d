//! Distances of vectors, and losses by them.

use super::super::prelude::*;
use super::super::reduction::norm_of;
use super::Reduction;

pub(super) const TABLE: &[Op] = &[
    op("aten.cosine_embedding_loss.default", cosine_embedding_loss),
    op("aten.cosine_similarity.default", cosine_similarity),
    op("aten.margin_ranking_loss.default", margin_ranking_loss),
    op("aten.pairwise_distance.default", |cx, args| {
        let (a, b) = (args.tensor("x1")?, args.tensor("x2")?);
        let (p, eps) = (args.float_or("p", 2.0)?, args.float_or("eps", 1e-6)?);
        let keep = args.bool_or("keepdim", false)?;
        let distance = distance(cx, &a, &b, p, eps)?;
        one(if keep { cx.unsqueeze(&distance, distance.rank())? } else { distance })
    }),
    op("aten.triplet_margin_loss.default", triplet_margin_loss),
];

/// Tensors in their common type and shape.
fn together(cx: &mut Cx<'_>, tensors: &[&Tensor]) -> Lowered<Vec<Tensor>> {
    let operands: Vec<Operand> = tensors.iter().map(|&tensor| tensor.into()).collect();
    let dtype = to_inexact(result_type(&operands)?);
    cx.unify(&operands, dtype)
}

fn pair(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<(Tensor, Tensor)> {
    match together(cx, &[a, b])?.as_slice() {
        [a, b] => Ok((a.clone(), b.clone())),
        _ => refuse("a distance of two tensors"),
    }
}

/// The norm of `a - b + eps` along the last dimension.
fn distance(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor, p: f64, eps: f64) -> Lowered<Tensor> {
    let (a, b) = pair(cx, a, b)?;
    let Some(last) = a.rank().checked_sub(1) else { return refuse("a distance of numbers") };
    let difference = cx.sub(&a, &b)?;
    let difference = cx.with_number(OpKind::Add, &difference, eps)?;
    norm_of(cx, &difference, &[last], p)
}

fn cosine_similarity(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = pair(cx, &args.tensor("x1")?, &args.tensor("x2")?)?;
    let axis = cx.axis(args.int_or("dim", 1)?, a.rank())?;
    let axes: &[usize] = if a.rank() == 0 { &[] } else { &[axis] };
    let eps = args.float_or("eps", 1e-8)?;
    let [a, b] = [&a, &b].map(|x| {
        let length = norm_of(cx, x, axes, 2.0)?;
        let length = cx.with_number(OpKind::Maximum, &length, eps)?;
        let length = cx.spread(&length, &x.dims, axes)?;
        cx.div(x, &length)
    });
    let product = cx.mul(&a?, &b?)?;
    one(cx.sum(&product, axes)?)
}

fn margin_ranking_loss(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (margin, reduction) = (args.float_or("margin", 0.0)?, Reduction::read(args)?);
    let tensors = [args.tensor("input1")?, args.tensor("input2")?, args.tensor("target")?];
    let tensors = together(cx, &tensors.each_ref())?;
    let [a, b, target] = tensors.as_slice() else { return refuse("a loss of three tensors") };
    let difference = cx.sub(a, b)?;
    let product = cx.mul(target, &difference)?;
    let negative = cx.neg(&product)?;
    let shifted = cx.with_number(OpKind::Add, &negative, margin)?;
    let losses = cx.with_number(OpKind::Maximum, &shifted, 0.0)?;
    one(reduction.apply(cx, &losses, losses.dtype)?)
}

fn triplet_margin_loss(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (anchor, positive, negative) =
        (args.tensor("anchor")?, args.tensor("positive")?, args.tensor("negative")?);
    let (margin, p, eps) =
        (args.float_or("margin", 1.0)?, args.float_or("p", 2.0)?, args.float_or("eps", 1e-6)?);
    let (swap, reduction) = (args.bool_or("swap", false)?, Reduction::read(args)?);
    let near = distance(cx, &anchor, &positive, p, eps)?;
    let mut far = distance(cx, &anchor, &negative, p, eps)?;
    if swap {
        let other = distance(cx, &positive, &negative, p, eps)?;
        far = cx.min(&far, &other)?;
    }
    let near = cx.with_number(OpKind::Add, &near, margin)?;
    let difference = cx.sub(&near, &far)?;
    let losses = cx.with_number(OpKind::Maximum, &difference, 0.0)?;
    one(reduction.apply(cx, &losses, losses.dtype)?)
}

fn cosine_embedding_loss(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    const EPS: f64 = 1e-12;
    let (a, b) = pair(cx, &args.tensor("input1")?, &args.tensor("input2")?)?;
    let target = args.tensor("target")?;
    let (margin, reduction) = (args.float_or("margin", 0.0)?, Reduction::read(args)?);
    let Some(axis) = a.rank().checked_sub(1) else { return refuse("the angle of numbers") };
    let mut sums = Vec::new();
    for (x, y) in [(&a, &b), (&a, &a), (&b, &b)] {
        let product = cx.mul(x, y)?;
        sums.push(cx.sum(&product, &[axis])?);
    }
    let [both, first, second] = sums.as_slice() else { return refuse("the angle of two tensors") };
    let first = cx.with_number(OpKind::Add, first, EPS)?;
    let second = cx.with_number(OpKind::Add, second, EPS)?;
    let lengths = cx.mul(&first, &second)?;
    let lengths = cx.unary(OpKind::Sqrt, &lengths)?;
    let cosine = cx.div(both, &lengths)?;
    let ones = cx.splat_like(&cosine, 1.0)?;
    let near = cx.sub(&ones, &cosine)?;
    let far = cx.with_number(OpKind::Subtract, &cosine, margin)?;
    let far = cx.with_number(OpKind::Maximum, &far, 0.0)?;
    let target = cx.convert(&target, cosine.dtype)?;
    let target = cx.expand_to(&target, &cosine.dims)?;
    let zero = cx.splat_like(&cosine, 0.0)?;
    let (alike, unlike) =
        (cx.compare_number(Cmp::Eq, &target, 1.0)?, cx.compare_number(Cmp::Eq, &target, -1.0)?);
    let near = cx.select(&alike, &near, &zero)?;
    let far = cx.select(&unlike, &far, &zero)?;
    let losses = cx.add(&near, &far)?;
    one(reduction.apply(cx, &losses, losses.dtype)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn numbers_point_the_same_way_or_not() {
        let arguments = vec![
            ("x1", Floats(&[], vec![2.0])),
            ("x2", Floats(&[], vec![-3.0])),
            ("dim", Plain(json!({"as_int": 0}))),
        ];
        assert_eq!(evaluated("aten.cosine_similarity.default", arguments, &[(F32, &[])]), [[-1.0]]);
    }
}
