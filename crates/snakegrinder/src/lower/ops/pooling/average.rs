//! The mean of each window.

use super::super::prelude::*;
use super::Windows;

pub(super) const TABLE: &[Op] = &[
    op("aten.avg_pool1d.default", |cx, args| average(cx, args, 1)),
    op("aten.avg_pool2d.default", |cx, args| average(cx, args, 2)),
    op("aten.avg_pool3d.default", |cx, args| average(cx, args, 3)),
];

fn average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let windows = Windows::read(args, &x, spatial)?;
    let include_padding = args.bool_or("count_include_pad", true)?;
    let divisor = args.opt_int("divisor_override")?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let total = windows.reduce(cx, &wide, OpKind::Add, Scalar::zero(wide.dtype))?;
    let count = match divisor {
        Some(divisor) => cx.splat_like(&total, divisor as f64)?,
        None => counts(cx, &x, &windows, include_padding, &total)?,
    };
    let mean = cx.div(&total, &count)?;
    one(cx.convert(&mean, x.dtype)?)
}

/// How many elements each window has: the product of how many it has in each dimension.
pub(in super::super) fn counts(
    cx: &mut Cx<'_>,
    x: &Tensor,
    windows: &Windows,
    include_padding: bool,
    like: &Tensor,
) -> Lowered<Tensor> {
    let lead = x.rank() - windows.kernel.len();
    let full: f64 = windows.kernel.iter().map(|&length| length as f64).product();
    let whole =
        windows.padding == windows.after && (include_padding || windows.padding.iter().all(|&pad| pad == 0));
    if whole {
        return cx.splat_like(like, full);
    }
    let mut product: Option<Tensor> = None;
    for (at, &kernel) in windows.kernel.iter().enumerate() {
        let size = cx.known(&[x.dim(lead + at)])?[0];
        let output = cx.known(&[windows.output[at].clone()])?[0];
        let pad = windows.padding[at];
        cx.table_length(&[output])?;
        let lengths: Vec<Scalar> = (0..output)
            .map(|window| {
                let start = window * windows.strides[at] - pad;
                let end = (start + kernel).min(size + pad);
                let length = if include_padding { end - start } else { end.min(size) - start.max(0) };
                Scalar::Float(length as f64)
            })
            .collect();
        let lengths = cx.constant(like.dtype, &[lengths.len()], lengths)?;
        let lengths = cx.broadcast(&lengths, &like.dims.clone(), &[lead + at])?;
        product = Some(match product {
            None => lengths,
            Some(before) => cx.mul(&before, &lengths)?,
        });
    }
    product.map_or_else(|| refuse("an empty window"), Ok)
}
