//! Distances of all rows of tensors.

use super::prelude::*;
use super::reduction::norm_of;

pub(super) const TABLE: &[Op] = &[
    op("aten._cdist_forward.default", |cx, args| {
        args.ignore(&["compute_mode"]);
        cdist(cx, args)
    })
    .also(&["aten.cdist.default"]),
    op("aten._pdist_forward.default", pdist).also(&["aten.pdist.default"]),
];

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
