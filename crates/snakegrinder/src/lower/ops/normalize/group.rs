//! Group and instance normalisation.

use super::super::prelude::*;
use super::super::reduction::{mean_of, moments};
use super::batch::{Keep, legit, moved, unbiased};
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
        let mut outcome = legit(cx, args, false, Keep::Nothing)?;
        outcome.truncate(1);
        return Ok(outcome);
    }
    let channels = cx.known(&[args.tensor("input")?.dim(1)])?[0];
    let result = normalized(cx, args, channels)?.result;
    keep_running(cx, args)?;
    one(result)
}

/// Moves the running statistics, where there are some, towards the mean of those of the samples.
fn keep_running(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<()> {
    let x = args.tensor("input")?;
    let momentum = args.float_or("momentum", 0.1)?;
    let buffers = [args.opt_tensor("running_mean")?, args.opt_tensor("running_var")?];
    if buffers.iter().all(Option::is_none) {
        return Ok(());
    }
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let places: Vec<usize> = (2..x.rank()).collect();
    let (mean, variance) = moments(cx, &wide, &places, 0.0)?;
    let count = places.iter().fold(Size::Int(1), |count, &axis| count.mul(&x.dim(axis)));
    let variance = unbiased(cx, &variance, &count)?;
    for (buffer, own) in buffers.into_iter().zip([mean, variance]) {
        let Some(buffer) = buffer else { continue };
        let Some(var) = buffer.var else { return refuse("running statistics that are no buffers") };
        let new = mean_of(cx, &own, &[0])?;
        let next = moved(cx, &buffer, &new, momentum)?;
        cx.write(var, &next)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    /// The result, and what the buffers are afterwards where they change.
    fn normal(by_input: bool) -> Vec<Vec<f64>> {
        let arguments = vec![
            ("input", Floats(&[2, 1, 2], vec![1.0, 3.0, 5.0, 9.0])),
            ("running_mean", Floats(&[1], vec![1.0])),
            ("running_var", Floats(&[1], vec![4.0])),
            ("use_input_stats", Plain(json!({"as_bool": by_input}))),
            ("momentum", Plain(json!({"as_float": 0.5}))),
            ("eps", Plain(json!({"as_float": 0.0}))),
        ];
        evaluated("aten.instance_norm.default", arguments, &[(F32, &[2, 1, 2])])
    }

    #[test]
    fn samples_are_normalised_by_their_own_or_running_statistics() {
        assert_eq!(normal(false), [[0.0, 1.0, 2.0, 4.0]]);
        // The means are 2 and 7, the variances of the samples 2 and 8.
        assert_eq!(normal(true), [vec![-1.0, 1.0, -1.0, 1.0], vec![2.75], vec![4.5]]);
    }
}
