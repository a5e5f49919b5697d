//! Distances and similarities of vectors.

use super::prelude::*;
use super::reduction::norm_of;

pub(super) const TABLE: &[Op] = &[
    op("aten._cdist_forward.default", |cx, args| {
        args.ignore(&["compute_mode"]);
        cdist(cx, args)
    }),
    op("aten.cdist.default", |cx, args| {
        args.ignore(&["compute_mode"]);
        cdist(cx, args)
    }),
    op("aten._pdist_forward.default", pdist),
    op("aten.pdist.default", pdist),
    op("aten.cosine_similarity.default", cosine_similarity),
    op("aten.pairwise_distance.default", |cx, args| {
        let (a, b) = (args.tensor("x1")?, args.tensor("x2")?);
        let (order, eps) = (args.float_or("p", 2.0)?, args.float_or("eps", 1e-6)?);
        let keep = args.bool_or("keepdim", false)?;
        let operands: [Operand; 2] = [a.into(), b.into()];
        let dtype = to_inexact(result_type(&operands)?);
        let both = cx.unify(&operands, opmath(dtype))?;
        let distance = pairwise(cx, &both[0], &both[1], order, eps)?;
        let distance = if keep { cx.unsqueeze(&distance, distance.rank())? } else { distance };
        one(cx.convert(&distance, dtype)?)
    }),
];

/// The norm of `a - b + eps` along the last dimension.
pub(super) fn pairwise(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor, order: f64, eps: f64) -> Lowered<Tensor> {
    let Some(axis) = a.rank().checked_sub(1) else { return refuse("a distance of scalars") };
    let difference = cx.sub(a, b)?;
    let shifted = cx.with_number(OpKind::Add, &difference, eps)?;
    norm_of(cx, &shifted, &[axis], order)
}

fn cosine_similarity(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let operands: [Operand; 2] = [args.tensor("x1")?.into(), args.tensor("x2")?.into()];
    let dtype = to_inexact(result_type(&operands)?);
    let both = cx.unify(&operands, opmath(dtype))?;
    let axis = cx.axis(args.int_or("dim", 1)?, both[0].rank())?;
    let eps = args.float_or("eps", 1e-8)?;
    let units = [&both[0], &both[1]].map(|x| {
        let norm = norm_of(cx, x, &[axis], 2.0)?;
        let norm = cx.with_number(OpKind::Maximum, &norm, eps)?;
        let norm = cx.spread(&norm, &x.dims, &[axis])?;
        cx.div(x, &norm)
    });
    let [a, b] = units;
    let product = cx.mul(&a?, &b?)?;
    let cosine = cx.sum(&product, &[axis])?;
    one(cx.convert(&cosine, dtype)?)
}

/// The distance of each row of one tensor from each row of another.
fn cdist(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b, order) = (args.tensor("x1")?, args.tensor("x2")?, args.float_or("p", 2.0)?);
    if a.rank() < 2 || b.rank() < 2 {
        return refuse("distances of something that has no rows");
    }
    let (rows_a, rows_b) = (cx.unsqueeze(&a, a.rank() - 1)?, cx.unsqueeze(&b, b.rank() - 2)?);
    let both = cx.broadcast_all(&[rows_a, rows_b])?;
    let difference = cx.sub(&both[0], &both[1])?;
    let wide = cx.convert(&difference, opmath(a.dtype))?;
    let norm = norm_of(cx, &wide, &[wide.rank() - 1], order)?;
    one(cx.convert(&norm, a.dtype)?)
}

/// The distances of all pairs of rows.
fn pdist(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, order) = (args.tensor("self")?, args.float_or("p", 2.0)?);
    if x.rank() != 2 {
        return refuse("distances of something that has no rows");
    }
    let rows = cx.known(&[x.dim(0)])?[0];
    let pairs: Vec<(i64, i64)> =
        (0..rows).flat_map(|first| (first + 1..rows).map(move |second| (first, second))).collect();
    let (first, second): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
    let [a, b] = [first, second].map(|places| {
        let places = cx.i64s(&places)?;
        super::indexing::take_rows(cx, &x, 0, &places)
    });
    let difference = cx.sub(&a?, &b?)?;
    let norm = norm_of(cx, &difference, &[1], order)?;
    one(cx.convert(&norm, x.dtype)?)
}
