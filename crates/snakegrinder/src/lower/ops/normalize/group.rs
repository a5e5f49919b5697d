//! Group and instance normalisation.

use super::super::prelude::*;
use super::super::reduction::moments;
use super::{as_recorded, inverse_deviation, scaled_and_shifted};

pub(super) const TABLE: &[Op] = &[
    op("aten.group_norm.default", |cx, args| {
        args.ignore(&["cudnn_enabled"]);
        let groups = args.int("num_groups")?;
        let found = normalized(cx, args, groups)?;
        one(found.result)
    }),
    op("aten.instance_norm.default", instance_norm),
    op("aten.native_group_norm.default", |cx, args| {
        // The sizes repeat what the input's shape says.
        args.ignore(&["N", "C", "HxW"]);
        let groups = args.int("group")?;
        let found = normalized(cx, args, groups)?;
        let (mean, inverse) =
            (as_recorded(cx, args, 1, &found.mean)?, as_recorded(cx, args, 2, &found.inverse)?);
        Ok(vec![found.result.into(), mean.into(), inverse.into()])
    }),
];

struct Normalized {
    result: Tensor,
    mean: Tensor,
    inverse: Tensor,
}

/// Each group of channels of each sample normalised on its own.
fn normalized(cx: &mut Cx<'_>, args: &Args<'_>, groups: i64) -> Lowered<Normalized> {
    let (x, weight, bias) = (args.tensor("input")?, args.opt_tensor("weight")?, args.opt_tensor("bias")?);
    let eps = args.float_or("eps", 1e-5)?;
    if x.rank() < 2 {
        return refuse("channels of something that has none");
    }
    let Some(each) = x.dim(1).floor_div(&Size::Int(groups)) else { return refuse("no groups") };
    let rest = Size::product(&x.dims[2..]);
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let split = cx.reshape(&wide, &[x.dim(0), Size::Int(groups), each.mul(&rest)])?;
    let (mean, variance) = moments(cx, &split, &[2], 0.0)?;
    let inverse = inverse_deviation(cx, &variance, eps)?;
    let (center, scale) = (cx.spread(&mean, &split.dims, &[2])?, cx.spread(&inverse, &split.dims, &[2])?);
    let distance = cx.sub(&split, &center)?;
    let normal = cx.mul(&distance, &scale)?;
    let normal = cx.reshape(&normal, &x.dims)?;
    let result = scaled_and_shifted(cx, &normal, weight.as_ref(), bias.as_ref(), &[1])?;
    Ok(Normalized { result: cx.convert(&result, x.dtype)?, mean, inverse })
}

fn instance_norm(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.ignore(&["cudnn_enabled", "momentum"]);
    if !args.bool_or("use_input_stats", true)? {
        return refuse("instance normalisation by running statistics");
    }
    if args.opt_tensor("running_mean")?.is_some() || args.opt_tensor("running_var")?.is_some() {
        return refuse("instance normalisation that keeps running statistics");
    }
    let channels = cx.known(&[args.tensor("input")?.dim(1)])?[0];
    one(normalized(cx, args, channels)?.result)
}
