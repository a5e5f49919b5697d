//! Losses of single elements.

use super::super::prelude::*;
use super::Reduction;

pub(super) const TABLE: &[Op] = &[
    op("aten.binary_cross_entropy.default", |cx, args| {
        let weight = args.opt_tensor("weight")?;
        loss(cx, args, |cx, x, t| {
            let likely = cx.unary(OpKind::Log, x)?;
            let negative = cx.neg(x)?;
            let unlikely = cx.unary(OpKind::LogPlusOne, &negative)?;
            // PyTorch keeps logarithms of nothing finite.
            let likely = cx.with_number(OpKind::Maximum, &likely, -100.0)?;
            let unlikely = cx.with_number(OpKind::Maximum, &unlikely, -100.0)?;
            let hit = cx.mul(t, &likely)?;
            let rest = one_minus(cx, t)?;
            let miss = cx.mul(&rest, &unlikely)?;
            let sum = cx.add(&hit, &miss)?;
            let sum = cx.neg(&sum)?;
            weighted(cx, &sum, weight.as_ref())
        })
    }),
    op("aten.binary_cross_entropy_with_logits.default", |cx, args| {
        let (weight, positive) = (args.opt_tensor("weight")?, args.opt_tensor("pos_weight")?);
        loss(cx, args, |cx, x, t| {
            let mut miss = minus_log_sigmoid(cx, x)?;
            if let Some(positive) = &positive {
                let positive = like(cx, positive, t)?;
                let more = cx.with_number(OpKind::Subtract, &positive, 1.0)?;
                let more = cx.mul(&more, t)?;
                let factor = cx.with_number(OpKind::Add, &more, 1.0)?;
                miss = cx.mul(&miss, &factor)?;
            }
            let rest = one_minus(cx, t)?;
            let rest = cx.mul(&rest, x)?;
            let sum = cx.add(&rest, &miss)?;
            weighted(cx, &sum, weight.as_ref())
        })
    }),
    op("aten.hinge_embedding_loss.default", |cx, args| {
        let margin = args.float_or("margin", 1.0)?;
        loss(cx, args, |cx, x, t| {
            let zero = cx.splat_like(x, 0.0)?;
            let far = cx.splat_like(x, margin)?;
            let far = cx.sub(&far, x)?;
            let far = cx.max(&far, &zero)?;
            let (unlike, alike) = (cx.compare_number(Cmp::Ne, t, 1.0)?, cx.compare_number(Cmp::Ne, t, -1.0)?);
            let far = cx.select(&unlike, &far, &zero)?;
            let near = cx.select(&alike, x, &zero)?;
            cx.add(&far, &near)
        })
    }),
    op("aten.huber_loss.default", |cx, args| {
        let delta = args.float_or("delta", 1.0)?;
        loss(cx, args, |cx, x, t| {
            let size = distance(cx, x, t)?;
            let square = cx.mul(&size, &size)?;
            let curved = cx.with_number(OpKind::Multiply, &square, 0.5)?;
            let straight = cx.with_number(OpKind::Subtract, &size, 0.5 * delta)?;
            let straight = cx.with_number(OpKind::Multiply, &straight, delta)?;
            let small = cx.compare_number(Cmp::Le, &size, delta)?;
            cx.select(&small, &curved, &straight)
        })
    }),
    op("aten.kl_div.default", kl_div),
    op("aten.l1_loss.default", |cx, args| loss(cx, args, distance)),
    op("aten.mse_loss.default", |cx, args| {
        loss(cx, args, |cx, x, t| {
            let difference = cx.sub(x, t)?;
            cx.mul(&difference, &difference)
        })
    }),
    op("aten.poisson_nll_loss.default", poisson),
    op("aten.smooth_l1_loss.default", |cx, args| {
        let beta = args.float_or("beta", 1.0)?;
        loss(cx, args, |cx, x, t| {
            let size = distance(cx, x, t)?;
            if beta == 0.0 {
                return Ok(size);
            }
            let square = cx.mul(&size, &size)?;
            let square = cx.with_number(OpKind::Multiply, &square, 0.5)?;
            let curved = cx.with_number(OpKind::Divide, &square, beta)?;
            let straight = cx.with_number(OpKind::Subtract, &size, 0.5 * beta)?;
            let small = cx.compare_number(Cmp::Lt, &size, beta)?;
            cx.select(&small, &curved, &straight)
        })
    }),
    op("aten.soft_margin_loss.default", |cx, args| {
        loss(cx, args, |cx, x, t| {
            let product = cx.mul(x, t)?;
            let negative = cx.neg(&product)?;
            let exponential = cx.unary(OpKind::Exponential, &negative)?;
            cx.unary(OpKind::LogPlusOne, &exponential)
        })
    }),
];

/// A loss of `self` and `target`, element by element in their common type, and reduced.
fn loss(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    compute: impl FnOnce(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let name = if args.get("input").is_some() { "input" } else { "self" };
    let (x, t) = (args.tensor(name)?, args.tensor("target")?);
    let reduction = Reduction::read(args)?;
    let dtype = to_inexact(result_type(&[(&x).into(), (&t).into()])?);
    let both = cx.unify(&[x.into(), t.into()], opmath(dtype))?;
    let [x, t] = both.as_slice() else { return refuse("a loss of two tensors") };
    let losses = compute(cx, x, t)?;
    one(reduction.apply(cx, &losses, dtype)?)
}

fn distance(cx: &mut Cx<'_>, x: &Tensor, t: &Tensor) -> Lowered<Tensor> {
    let difference = cx.sub(x, t)?;
    cx.unary(OpKind::Abs, &difference)
}

fn one_minus(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let ones = cx.splat_like(x, 1.0)?;
    cx.sub(&ones, x)
}

/// A tensor in the type of another, repeated to its shape.
fn like(cx: &mut Cx<'_>, x: &Tensor, other: &Tensor) -> Lowered<Tensor> {
    let x = cx.convert(x, other.dtype)?;
    cx.expand_to(&x, &other.dims)
}

fn weighted(cx: &mut Cx<'_>, losses: &Tensor, weight: Option<&Tensor>) -> Lowered<Tensor> {
    match weight {
        None => Ok(losses.clone()),
        Some(weight) => {
            let weight = like(cx, weight, losses)?;
            cx.mul(losses, &weight)
        }
    }
}

/// `max(-x, 0) + log(1 + exp(-|x|))`.
fn minus_log_sigmoid(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let negative = cx.neg(x)?;
    let above = cx.with_number(OpKind::Maximum, &negative, 0.0)?;
    let size = cx.unary(OpKind::Abs, x)?;
    let size = cx.neg(&size)?;
    let exponential = cx.unary(OpKind::Exponential, &size)?;
    let rest = cx.unary(OpKind::LogPlusOne, &exponential)?;
    cx.add(&above, &rest)
}

fn kl_div(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let log_target = args.bool_or("log_target", false)?;
    loss(cx, args, |cx, x, t| {
        if log_target {
            let difference = cx.sub(t, x)?;
            let share = cx.unary(OpKind::Exponential, t)?;
            return cx.mul(&share, &difference);
        }
        let log = cx.unary(OpKind::Log, t)?;
        let entropy = cx.mul(t, &log)?;
        let nothing = cx.compare_number(Cmp::Eq, t, 0.0)?;
        let zero = cx.splat_like(t, 0.0)?;
        let entropy = cx.select(&nothing, &zero, &entropy)?;
        let cross = cx.mul(t, x)?;
        cx.sub(&entropy, &cross)
    })
}

fn poisson(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (log_input, full) = (args.bool_or("log_input", true)?, args.bool_or("full", false)?);
    let eps = args.float_or("eps", 1e-8)?;
    loss(cx, args, |cx, x, t| {
        let (rate, log) = if log_input {
            (cx.unary(OpKind::Exponential, x)?, x.clone())
        } else {
            let shifted = cx.with_number(OpKind::Add, x, eps)?;
            (x.clone(), cx.unary(OpKind::Log, &shifted)?)
        };
        let likely = cx.mul(t, &log)?;
        let plain = cx.sub(&rate, &likely)?;
        if !full {
            return Ok(plain);
        }
        // Stirling's approximation of the logarithm of a factorial.
        let log = cx.unary(OpKind::Log, t)?;
        let main = cx.mul(t, &log)?;
        let main = cx.sub(&main, t)?;
        let circle = cx.with_number(OpKind::Multiply, t, std::f64::consts::TAU)?;
        let correction = cx.unary(OpKind::Log, &circle)?;
        let correction = cx.with_number(OpKind::Multiply, &correction, 0.5)?;
        let factorial = cx.add(&main, &correction)?;
        let small = cx.compare_number(Cmp::Le, t, 1.0)?;
        let zero = cx.splat_like(t, 0.0)?;
        let factorial = cx.select(&small, &zero, &factorial)?;
        cx.add(&plain, &factorial)
    })
}
