//! Layer and root-mean-square normalisation.

use super::super::prelude::*;
use super::super::reduction::{mean_of, moments};
use super::{as_recorded, inverse_deviation, scaled_and_shifted};

pub(super) const TABLE: &[Op] = &[
    op("aten._fused_rms_norm.default", |cx, args| rms_norm(cx, args, true)),
    op("aten.layer_norm.default", |cx, args| {
        args.ignore(&["cudnn_enable"]);
        layer_norm(cx, args, false)
    }),
    op("aten.native_layer_norm.default", |cx, args| layer_norm(cx, args, true)),
    op("aten.rms_norm.default", |cx, args| rms_norm(cx, args, false)),
];

/// The last dimensions, as many as `normalized_shape` has.
fn inner_axes(args: &Args<'_>, x: &Tensor) -> Lowered<Vec<usize>> {
    let count = args.sizes("normalized_shape")?.len();
    match x.rank().checked_sub(count) {
        Some(lead) => Ok((lead..x.rank()).collect()),
        None => refuse("more dimensions to normalise than there are"),
    }
}

fn layer_norm(cx: &mut Cx<'_>, args: &Args<'_>, with_statistics: bool) -> Lowered<Outcome> {
    let (x, weight, bias) = (args.tensor("input")?, args.opt_tensor("weight")?, args.opt_tensor("bias")?);
    let eps = args.float_or("eps", 1e-5)?;
    let axes = inner_axes(args, &x)?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let (mean, variance) = moments(cx, &wide, &axes, 0.0)?;
    let inverse = inverse_deviation(cx, &variance, eps)?;
    let (center, scale) = (cx.spread(&mean, &x.dims, &axes)?, cx.spread(&inverse, &x.dims, &axes)?);
    let distance = cx.sub(&wide, &center)?;
    let normal = cx.mul(&distance, &scale)?;
    let result = scaled_and_shifted(cx, &normal, weight.as_ref(), bias.as_ref(), &axes)?;
    let result = cx.convert(&result, x.dtype)?;
    if !with_statistics {
        return one(result);
    }
    let statistics = [(1, mean), (2, inverse)].map(|(position, statistic)| {
        let kept = cx.keep_dims(&statistic, &x.dims, &axes)?;
        as_recorded(cx, args, position, &kept)
    });
    let [mean, inverse] = statistics;
    Ok(vec![result.into(), mean?.into(), inverse?.into()])
}

fn rms_norm(cx: &mut Cx<'_>, args: &Args<'_>, with_statistics: bool) -> Lowered<Outcome> {
    let (x, weight) = (args.tensor("input")?, args.opt_tensor("weight")?);
    let ElementType::Float(float) = opmath(x.dtype) else { return refuse(format!("a norm of {}", x.dtype)) };
    let eps = args.opt_float("eps")?.unwrap_or(float.format().epsilon());
    let axes = inner_axes(args, &x)?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let square = cx.mul(&wide, &wide)?;
    let mean = mean_of(cx, &square, &axes)?;
    let inverse = inverse_deviation(cx, &mean, eps)?;
    let scale = cx.spread(&inverse, &x.dims, &axes)?;
    let normal = cx.mul(&wide, &scale)?;
    let result = scaled_and_shifted(cx, &normal, weight.as_ref(), None, &axes)?;
    let result = cx.convert(&result, x.dtype)?;
    if !with_statistics {
        return one(result);
    }
    let kept = cx.keep_dims(&inverse, &x.dims, &axes)?;
    let kept = as_recorded(cx, args, 1, &kept)?;
    Ok(vec![result.into(), kept.into()])
}
