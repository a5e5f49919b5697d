//! Batch normalisation.

use super::super::prelude::*;
use super::super::reduction::moments;
use super::{as_recorded, inverse_deviation, scaled_and_shifted};

pub(super) const TABLE: &[Op] = &[
    op("aten._native_batch_norm_legit.default", |cx, args| {
        let training = args.bool_or("training", false)?;
        legit(cx, args, training, Keep::InPlace)
    })
    .also(&["aten.native_batch_norm.default"]),
    op("aten._native_batch_norm_legit.no_stats", |cx, args| {
        args.bool_or("training", true)?;
        legit(cx, args, true, Keep::Nothing)
    }),
    op("aten._native_batch_norm_legit_functional.default", |cx, args| {
        let training = args.bool_or("training", false)?;
        legit(cx, args, training, Keep::AsResults { first: 3 })
    }),
    op("aten._native_batch_norm_legit_no_training.default", |cx, args| legit(cx, args, false, Keep::Nothing)),
    op("aten._batch_norm_no_update.default", |cx, args| {
        let mut outcome = legit(cx, args, false, Keep::Nothing)?;
        outcome.push(cx.splat(ElementType::U8, &[Size::Int(0)], 0)?.into());
        Ok(outcome)
    }),
    op("aten._batch_norm_with_update.default", |cx, args| {
        let mut outcome = legit(cx, args, true, Keep::InPlace)?;
        outcome.push(cx.splat(ElementType::U8, &[Size::Int(0)], 0)?.into());
        Ok(outcome)
    }),
    op("aten._batch_norm_with_update_functional.default", |cx, args| {
        let mut outcome = legit(cx, args, true, Keep::AsResults { first: 4 })?;
        outcome.insert(3, cx.splat(ElementType::U8, &[Size::Int(0)], 0)?.into());
        Ok(outcome)
    }),
    op("aten.batch_norm.default", |cx, args| {
        args.ignore(&["cudnn_enabled"]);
        let training = args.bool_or("training", false)?;
        let mut outcome = legit(cx, args, training, Keep::InPlace)?;
        outcome.truncate(1);
        Ok(outcome)
    }),
];

/// What becomes of the new running statistics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// There are none, or they do not change.
    Nothing,
    /// They are written to the buffers.
    InPlace,
    /// They are results of the node, from this one on.
    AsResults { first: usize },
}

/// The result, and the statistics that a backward pass would use.
pub(super) fn legit(cx: &mut Cx<'_>, args: &Args<'_>, training: bool, keep: Keep) -> Lowered<Outcome> {
    let (x, weight, bias) = (args.tensor("input")?, args.opt_tensor("weight")?, args.opt_tensor("bias")?);
    let running = (args.opt_tensor("running_mean")?, args.opt_tensor("running_var")?);
    let (momentum, eps) = (args.float_or("momentum", 0.1)?, args.float_or("eps", 1e-5)?);
    if x.rank() < 2 {
        return refuse("channels of something that has none");
    }
    let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axis != 1).collect();
    let wide = cx.convert(&x, opmath(x.dtype))?;
    // Without running statistics those of the batch are used, trained or not.
    let (mean, variance) = match &running {
        (Some(mean), Some(variance)) if !training => {
            (cx.convert(mean, wide.dtype)?, cx.convert(variance, wide.dtype)?)
        }
        _ => moments(cx, &wide, &axes, 0.0)?,
    };
    let inverse = inverse_deviation(cx, &variance, eps)?;
    let (center, scale) = (cx.spread(&mean, &x.dims, &axes)?, cx.spread(&inverse, &x.dims, &axes)?);
    let distance = cx.sub(&wide, &center)?;
    let normal = cx.mul(&distance, &scale)?;
    let result = scaled_and_shifted(cx, &normal, weight.as_ref(), bias.as_ref(), &[1])?;
    let result = cx.convert(&result, x.dtype)?;
    let mut outcome: Outcome = vec![result.into()];
    if training || (running.0.is_none() && running.1.is_none()) {
        outcome.push(as_recorded(cx, args, 1, &mean)?.into());
        outcome.push(as_recorded(cx, args, 2, &inverse)?.into());
    } else {
        // Nothing was computed from the batch, so there is nothing to keep.
        let nothing = cx.splat(wide.dtype, &[Size::Int(0)], 0.0)?;
        outcome.push(as_recorded(cx, args, 1, &nothing)?.into());
        outcome.push(as_recorded(cx, args, 2, &nothing)?.into());
    }
    if keep == Keep::Nothing {
        return Ok(outcome);
    }
    let count = axes.iter().fold(Size::Int(1), |count, &axis| count.mul(&x.dim(axis)));
    let unbiased = unbiased(cx, &variance, &count)?;
    for (at, (buffer, new)) in [(running.0, mean), (running.1, unbiased)].into_iter().enumerate() {
        let Some(buffer) = buffer else {
            if matches!(keep, Keep::AsResults { .. }) {
                outcome.push(Value::None);
            }
            continue;
        };
        let next = if training { moved(cx, &buffer, &new, momentum)? } else { buffer.fresh() };
        match (keep, buffer.var) {
            // Rounded as the buffer is, whatever wider type the archive has for it.
            (Keep::AsResults { first }, _) => outcome.push(as_recorded(cx, args, first + at, &next)?.into()),
            (Keep::InPlace, Some(var)) if training => cx.write(var, &next)?,
            _ => {}
        }
    }
    Ok(outcome)
}

/// The variance of the samples as an estimate for all: more by `n / (n - 1)`.
pub(super) fn unbiased(cx: &mut Cx<'_>, variance: &Tensor, count: &Size) -> Lowered<Tensor> {
    let all = cx.fill(variance.dtype, &variance.dims, &Number::Int(count.clone()))?;
    let fewer = cx.with_number(OpKind::Subtract, &all, 1.0)?;
    let factor = cx.div(&all, &fewer)?;
    cx.mul(variance, &factor)
}

/// `(1 - momentum) * old + momentum * new`, in the old one's type.
pub(super) fn moved(cx: &mut Cx<'_>, old: &Tensor, new: &Tensor, momentum: f64) -> Lowered<Tensor> {
    let wide = cx.convert(old, new.dtype)?;
    let kept = cx.with_number(OpKind::Multiply, &wide, 1.0 - momentum)?;
    let added = cx.with_number(OpKind::Multiply, new, momentum)?;
    let sum = cx.add(&kept, &added)?;
    cx.convert(&sum, old.dtype)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code, Given::*, evaluated};

    #[test]
    fn running_statistics_are_rounded_as_their_buffers_are() {
        let arguments = vec![
            ("input", Bf16s(&[2, 1], vec![1.0, 2.0])),
            ("running_mean", Bf16s(&[1], vec![1.0])),
            ("running_var", Bf16s(&[1], vec![1.0])),
            ("training", Plain(json!({"as_bool": true}))),
            ("momentum", Plain(json!({"as_float": 0.001}))),
            ("eps", Plain(json!({"as_float": 0.0}))),
        ];
        let results: [(Code, &[usize]); 5] = [
            (Code::Bf16, &[2, 1]),
            (Code::F32, &[1]),
            (Code::F32, &[1]),
            (Code::F32, &[1]),
            (Code::F32, &[1]),
        ];
        let found = evaluated("aten._native_batch_norm_legit_functional.default", arguments, &results);
        // 1.0005 and 0.9995 have no place between 1 and its neighbours in bf16.
        assert_eq!(found, [vec![-1.0, 1.0], vec![1.5], vec![2.0], vec![1.0], vec![1.0]]);
    }
}
