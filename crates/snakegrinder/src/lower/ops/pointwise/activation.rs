//! Activation functions.

use super::super::prelude::*;
use super::unary::float_unary_of;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.celu.default", |cx, args| {
        let alpha = args.float_or("alpha", 1.0)?;
        activation(cx, args, |cx, x| exponential_below(cx, x, 1.0, alpha, 1.0 / alpha))
    }),
    op("aten.elu.default", |cx, args| {
        let (alpha, scale) = (args.float_or("alpha", 1.0)?, args.float_or("scale", 1.0)?);
        let input_scale = args.float_or("input_scale", 1.0)?;
        activation(cx, args, |cx, x| exponential_below(cx, x, scale, alpha * scale, input_scale))
    }),
    op("aten.gelu.default", |cx, args| {
        let approximate = args.str_or("approximate", "none")?;
        let x = args.tensor("self")?;
        one(gelu(cx, &x, approximate)?)
    }),
    op("aten.glu.default", glu),
    op("aten.hardshrink.default", |cx, args| {
        let lambda = args.float_or("lambd", 0.5)?;
        activation(cx, args, |cx, x| {
            let size = cx.unary(OpKind::Abs, x)?;
            let small = cx.compare_number(Cmp::Le, &size, lambda)?;
            let zero = cx.splat_like(x, 0.0)?;
            cx.select(&small, &zero, x)
        })
    }),
    op("aten.hardsigmoid.default", |cx, args| activation(cx, args, hard_sigmoid)),
    op("aten.hardswish.default", |cx, args| {
        activation(cx, args, |cx, x| {
            let shifted = cx.with_number(OpKind::Add, x, 3.0)?;
            let gate = between(cx, &shifted, 0.0, 6.0)?;
            let product = cx.mul(x, &gate)?;
            cx.with_number(OpKind::Divide, &product, 6.0)
        })
    }),
    op("aten.hardtanh.default", |cx, args| {
        let x = args.tensor("self")?;
        let (low, high) = (args.float_or("min_val", -1.0)?, args.float_or("max_val", 1.0)?);
        one(between(cx, &x, low, high)?)
    }),
    op("aten.leaky_relu.default", |cx, args| {
        let slope = args.float_or("negative_slope", 0.01)?;
        activation(cx, args, |cx, x| {
            let below = cx.with_number(OpKind::Multiply, x, slope)?;
            let positive = cx.compare_number(Cmp::Gt, x, 0.0)?;
            cx.select(&positive, x, &below)
        })
    }),
    op("aten.log_sigmoid.default", |cx, args| activation(cx, args, log_sigmoid)),
    op("aten.log_sigmoid_forward.default", |cx, args| {
        let x = args.tensor("self")?;
        let result = float_unary_of(cx, &x, log_sigmoid)?;
        let size = cx.unary(OpKind::Abs, &x)?;
        let negative = cx.neg(&size)?;
        let buffer = cx.unary(OpKind::Exponential, &negative)?;
        Ok(vec![result.into(), buffer.into()])
    }),
    op("aten.logit.default", logit).also(&["aten.special_logit.default"]),
    op("aten.mish.default", |cx, args| {
        activation(cx, args, |cx, x| {
            let soft = softplus(cx, x, 1.0, f64::INFINITY)?;
            let gate = cx.unary(OpKind::Tanh, &soft)?;
            cx.mul(x, &gate)
        })
    }),
    op("aten._prelu_kernel.default", prelu).also(&["aten.prelu.default"]),
    op("aten.relu.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.with_number(OpKind::Maximum, &x, Scalar::zero(x.dtype))?)
    }),
    op("aten.relu6.default", |cx, args| {
        let x = args.tensor("self")?;
        one(between(cx, &x, 0.0, 6.0)?)
    }),
    op("aten.selu.default", |cx, args| {
        const ALPHA: f64 = 1.673_263_242_354_377_2;
        const SCALE: f64 = 1.050_700_987_355_480_5;
        activation(cx, args, |cx, x| exponential_below(cx, x, SCALE, ALPHA * SCALE, 1.0))
    }),
    op("aten.silu.default", |cx, args| {
        let x = args.tensor("self")?;
        one(silu(cx, &x)?)
    }),
    op("aten.softplus.default", |cx, args| {
        let (beta, threshold) = (args.float_or("beta", 1.0)?, args.float_or("threshold", 20.0)?);
        activation(cx, args, |cx, x| softplus(cx, x, beta, threshold))
    }),
    op("aten.softshrink.default", |cx, args| {
        let lambda = args.float_or("lambd", 0.5)?;
        activation(cx, args, |cx, x| {
            let (lower, upper) =
                (cx.with_number(OpKind::Subtract, x, lambda)?, cx.with_number(OpKind::Add, x, lambda)?);
            let zero = cx.with_number(OpKind::Multiply, x, 0.0)?;
            let above = cx.compare_number(Cmp::Gt, x, lambda)?;
            let below = cx.compare_number(Cmp::Lt, x, -lambda)?;
            let rest = cx.select(&below, &upper, &zero)?;
            cx.select(&above, &lower, &rest)
        })
    }),
];

/// A function of one float, computed in `f32` for narrower ones.
fn activation(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    function: impl FnOnce(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    one(float_unary_of(cx, &x, function)?)
}

fn between(cx: &mut Cx<'_>, x: &Tensor, low: f64, high: f64) -> Lowered<Tensor> {
    let (low, high) = (Number::Float(low), Number::Float(high));
    let (low, high) = (cx.fill(x.dtype, &x.dims, &low)?, cx.fill(x.dtype, &x.dims, &high)?);
    let raised = cx.max(x, &low)?;
    cx.min(&raised, &high)
}

/// `above * x` for positive numbers, `below * (exp(rate * x) - 1)` for others.
fn exponential_below(cx: &mut Cx<'_>, x: &Tensor, above: f64, below: f64, rate: f64) -> Lowered<Tensor> {
    let line = cx.with_number(OpKind::Multiply, x, above)?;
    let scaled = cx.with_number(OpKind::Multiply, x, rate)?;
    let curve = cx.unary(OpKind::ExponentialMinusOne, &scaled)?;
    let curve = cx.with_number(OpKind::Multiply, &curve, below)?;
    let negative = cx.compare_number(Cmp::Le, x, 0.0)?;
    cx.select(&negative, &curve, &line)
}

/// The Gaussian error linear unit, exact or by the hyperbolic tangent.
pub(in super::super) fn gelu(cx: &mut Cx<'_>, x: &Tensor, approximate: &str) -> Lowered<Tensor> {
    match approximate {
        "none" => float_unary_of(cx, x, |cx, x| {
            let scaled = cx.with_number(OpKind::Multiply, x, std::f64::consts::FRAC_1_SQRT_2)?;
            let error = cx.unary(OpKind::ChloErf, &scaled)?;
            let gate = cx.with_number(OpKind::Add, &error, 1.0)?;
            let half = cx.with_number(OpKind::Multiply, x, 0.5)?;
            cx.mul(&half, &gate)
        }),
        "tanh" => float_unary_of(cx, x, |cx, x| {
            const BETA: f64 = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;
            let square = cx.mul(x, x)?;
            let cube = cx.mul(&square, x)?;
            let cube = cx.with_number(OpKind::Multiply, &cube, 0.044715)?;
            let inner = cx.add(x, &cube)?;
            let inner = cx.with_number(OpKind::Multiply, &inner, BETA)?;
            let tanh = cx.unary(OpKind::Tanh, &inner)?;
            let gate = cx.with_number(OpKind::Add, &tanh, 1.0)?;
            let half = cx.with_number(OpKind::Multiply, x, 0.5)?;
            cx.mul(&half, &gate)
        }),
        other => refuse(format!("the approximation `{other}` of gelu")),
    }
}

/// `x * sigmoid(x)`.
pub(in super::super) fn silu(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    float_unary_of(cx, x, |cx, x| {
        let gate = cx.unary(OpKind::Logistic, x)?;
        cx.mul(x, &gate)
    })
}

fn hard_sigmoid(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let shifted = cx.with_number(OpKind::Add, x, 3.0)?;
    let gate = between(cx, &shifted, 0.0, 6.0)?;
    cx.with_number(OpKind::Divide, &gate, 6.0)
}

/// `min(x, 0) - log1p(exp(-|x|))`.
fn log_sigmoid(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let low = cx.with_number(OpKind::Minimum, x, 0.0)?;
    let size = cx.unary(OpKind::Abs, x)?;
    let negative = cx.neg(&size)?;
    let part = cx.unary(OpKind::Exponential, &negative)?;
    let rest = cx.unary(OpKind::LogPlusOne, &part)?;
    cx.sub(&low, &rest)
}

fn softplus(cx: &mut Cx<'_>, x: &Tensor, beta: f64, threshold: f64) -> Lowered<Tensor> {
    let scaled = cx.with_number(OpKind::Multiply, x, beta)?;
    // log1p(exp(s)) without the overflow of exp.
    let size = cx.unary(OpKind::Abs, &scaled)?;
    let negative = cx.neg(&size)?;
    let part = cx.unary(OpKind::Exponential, &negative)?;
    let rest = cx.unary(OpKind::LogPlusOne, &part)?;
    let high = cx.with_number(OpKind::Maximum, &scaled, 0.0)?;
    let soft = cx.add(&high, &rest)?;
    let soft = cx.with_number(OpKind::Divide, &soft, beta)?;
    if threshold.is_infinite() {
        return Ok(soft);
    }
    let linear = cx.compare_number(Cmp::Gt, &scaled, threshold)?;
    cx.select(&linear, x, &soft)
}

fn logit(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let eps = args.opt_float("eps")?;
    activation(cx, args, |cx, x| {
        let x = match eps {
            // Below the low end counts first, also where it is above the high one.
            Some(eps) if eps >= 0.0 => {
                let [low, high] = [eps, 1.0 - eps].map(|end| cx.splat_like(x, end));
                let (low, high) = (low?, high?);
                let below = cx.compare(Cmp::Lt, x, &low)?;
                let above = cx.compare(Cmp::Gt, x, &high)?;
                let inside = cx.select(&above, &high, x)?;
                cx.select(&below, &low, &inside)?
            }
            _ => x.clone(),
        };
        let ones = cx.splat_like(&x, 1.0)?;
        let rest = cx.sub(&ones, &x)?;
        let odds = cx.div(&x, &rest)?;
        cx.unary(OpKind::Log, &odds)
    })
}

/// The first half of a dimension, gated by the sigmoid of the second.
fn glu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
    let whole = x.dim(axis);
    let Some(half) = whole.floor_div(&Size::Int(2)) else { return refuse("half of nothing") };
    let value = cx.slice(&x, axis, &Size::Int(0), &half, 1)?;
    let gate = cx.slice(&x, axis, &half, &whole, 1)?;
    let wide = [cx.convert(&value, opmath(x.dtype))?, cx.convert(&gate, opmath(x.dtype))?];
    let gate = cx.unary(OpKind::Logistic, &wide[1])?;
    let result = cx.mul(&wide[0], &gate)?;
    one(cx.convert(&result, x.dtype)?)
}

/// A slope for negative numbers: one, or one for each channel.
fn prelu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, weight) = (args.tensor("self")?, args.tensor("weight")?);
    let weight = if weight.rank() == 1 && x.rank() >= 2 && !weight.dim(0).is(1) {
        cx.broadcast(&weight, &x.dims.clone(), &[1])?
    } else if weight.rank() == 1 && weight.dim(0).is(1) {
        let scalar = cx.reshape(&weight, &[])?;
        cx.expand_to(&scalar, &x.dims)?
    } else {
        cx.expand_to(&weight, &x.dims)?
    };
    let below = cx.mul(&x, &weight)?;
    let positive = cx.compare_number(Cmp::Gt, &x, 0.0)?;
    one(cx.select(&positive, &x, &below)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn a_logit_is_of_the_low_end_first() {
        let eps = |value: f64| {
            vec![("self", Floats(&[2], vec![0.5, 0.9])), ("eps", Plain(json!({"as_float": value})))]
        };
        let found = evaluated("aten.logit.default", eps(0.75), &[(F32, &[2])]);
        let third = 3f64.ln();
        assert!((found[0][0] - third).abs() < 1e-6 && (found[0][1] + third).abs() < 1e-6, "{found:?}");
        let found = evaluated("aten.logit.default", eps(0.25), &[(F32, &[2])]);
        assert!(found[0][0].abs() < 1e-6 && (found[0][1] - third).abs() < 1e-6, "{found:?}");
    }
}
