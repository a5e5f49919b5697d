//! Variances and standard deviations.

use super::super::prelude::*;
use super::{folded_count, mean_of, reduced_axes, shaped};

pub(super) const TABLE: &[Op] = &[
    op("aten.std.correction", |cx, args| spread(cx, args, true, false))
        .also(&["aten.std.default", "aten.std.dim"]),
    op("aten.std_mean.correction", |cx, args| spread(cx, args, true, true))
        .also(&["aten.std_mean.default", "aten.std_mean.dim"]),
    op("aten.var.correction", |cx, args| spread(cx, args, false, false))
        .also(&["aten.var.default", "aten.var.dim"]),
    op("aten.var_mean.correction", |cx, args| spread(cx, args, false, true))
        .also(&["aten.var_mean.default", "aten.var_mean.dim"]),
];

/// The mean and the mean squared distance from it, over dimensions.
pub(in super::super) fn moments(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axes: &[usize],
    correction: f64,
) -> Lowered<(Tensor, Tensor)> {
    let mean = mean_of(cx, x, axes)?;
    let spread = cx.spread(&mean, &x.dims, axes)?;
    let distance = cx.sub(x, &spread)?;
    let square = cx.mul(&distance, &distance)?;
    let total = cx.sum(&square, axes)?;
    let count = cx.fill(total.dtype, &total.dims, &Number::Int(folded_count(x, axes)))?;
    let count = if correction == 0.0 {
        count
    } else {
        let fewer = cx.with_number(OpKind::Subtract, &count, correction)?;
        cx.with_number(OpKind::Maximum, &fewer, 0.0)?
    };
    Ok((mean, cx.div(&total, &count)?))
}

fn spread(cx: &mut Cx<'_>, args: &Args<'_>, root: bool, with_mean: bool) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if !x.dtype.is_float() {
        return refuse(format!("a variance of {}", x.dtype));
    }
    let unbiased = args.bool_or("unbiased", true)?;
    let correction = args.float_or("correction", if unbiased { 1.0 } else { 0.0 })?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let (mean, variance) = moments(cx, &wide, &axes, correction)?;
    let measure = if root { cx.unary(OpKind::Sqrt, &variance)? } else { variance };
    let mut results = vec![measure];
    results.extend(with_mean.then_some(mean));
    let results = results.into_iter().map(|result| {
        let result = shaped(cx, args, &x, &result, &axes)?;
        cx.convert(&result, x.dtype).map(Value::from)
    });
    results.collect()
}
