//! Losses: what they compute; their gradients are operations of their own.

use super::prelude::*;
use super::reduction::{Softmax, mean_of, softmax_of};

pub(super) const TABLE: &[Op] = &[
    op("aten.binary_cross_entropy.default", binary_cross_entropy),
    op("aten.binary_cross_entropy_with_logits.default", with_logits),
    op("aten.cosine_embedding_loss.default", cosine_embedding),
    op("aten.cross_entropy_loss.default", cross_entropy),
    op("aten.hinge_embedding_loss.default", hinge_embedding),
    op("aten.huber_loss.default", huber),
    op("aten.kl_div.default", kl_div),
    op("aten.l1_loss.default", |cx, args| {
        elementwise(cx, args, "self", |cx, difference| cx.unary(OpKind::Abs, difference))
    }),
    op("aten.margin_ranking_loss.default", margin_ranking),
    op("aten.mse_loss.default", |cx, args| {
        elementwise(cx, args, "self", |cx, difference| cx.mul(difference, difference))
    }),
    op("aten.nll_loss.default", |cx, args| Ok(vec![nll(cx, args)?.0.into()])),
    op("aten.nll_loss_nd.default", |cx, args| Ok(vec![nll(cx, args)?.0.into()])),
    op("aten.nll_loss2d.default", |cx, args| Ok(vec![nll(cx, args)?.0.into()])),
    op("aten.nll_loss_forward.default", |cx, args| {
        nll(cx, args).map(|(loss, total)| vec![loss.into(), total.into()])
    }),
    op("aten.nll_loss2d_forward.default", |cx, args| {
        nll(cx, args).map(|(loss, total)| vec![loss.into(), total.into()])
    }),
    op("aten.poisson_nll_loss.default", poisson),
    op("aten.smooth_l1_loss.default", smooth_l1),
    op("aten.soft_margin_loss.default", soft_margin),
    op("aten.triplet_margin_loss.default", triplet_margin),
];

/// How the losses of elements become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduction {
    None,
    Mean,
    Sum,
}

fn reduction(args: &Args<'_>) -> Lowered<Reduction> {
    match args.int_or("reduction", 1)? {
        0 => Ok(Reduction::None),
        1 => Ok(Reduction::Mean),
        2 => Ok(Reduction::Sum),
        other => refuse(format!("the reduction {other} of a loss")),
    }
}

fn reduced(cx: &mut Cx<'_>, losses: &Tensor, reduction: Reduction, dtype: ElementType) -> Lowered<Outcome> {
    let axes: Vec<usize> = (0..losses.rank()).collect();
    let result = match reduction {
        Reduction::None => losses.clone(),
        Reduction::Mean => mean_of(cx, losses, &axes)?,
        Reduction::Sum => cx.sum(losses, &axes)?,
    };
    one(cx.convert(&result, dtype)?)
}

/// Several tensors in the type that PyTorch computes in, in one shape; and the type of the result.
fn wide(cx: &mut Cx<'_>, tensors: &[&Tensor]) -> Lowered<(Vec<Tensor>, ElementType)> {
    let operands: Vec<Operand> = tensors.iter().map(|&tensor| tensor.into()).collect();
    let dtype = to_inexact(result_type(&operands)?);
    Ok((cx.unify(&operands, opmath(dtype))?, dtype))
}

/// A loss of the difference between input and target.
fn elementwise(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    name: &str,
    loss: impl FnOnce(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let (input, target) = (args.tensor(name)?, args.tensor("target")?);
    let reduction = reduction(args)?;
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let difference = cx.sub(&both[0], &both[1])?;
    let losses = loss(cx, &difference)?;
    reduced(cx, &losses, reduction, dtype)
}

fn smooth_l1(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let beta = args.float_or("beta", 1.0)?;
    elementwise(cx, args, "self", |cx, difference| {
        let size = cx.unary(OpKind::Abs, difference)?;
        if beta == 0.0 {
            return Ok(size);
        }
        let square = cx.mul(&size, &size)?;
        let inner = cx.with_number(OpKind::Multiply, &square, 0.5 / beta)?;
        let outer = cx.with_number(OpKind::Subtract, &size, 0.5 * beta)?;
        let near = cx.compare_number(Cmp::Lt, &size, beta)?;
        cx.select(&near, &inner, &outer)
    })
}

fn huber(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let delta = args.float_or("delta", 1.0)?;
    elementwise(cx, args, "self", |cx, difference| {
        let size = cx.unary(OpKind::Abs, difference)?;
        let square = cx.mul(&size, &size)?;
        let inner = cx.with_number(OpKind::Multiply, &square, 0.5)?;
        let outer = cx.with_number(OpKind::Subtract, &size, 0.5 * delta)?;
        let outer = cx.with_number(OpKind::Multiply, &outer, delta)?;
        let near = cx.compare_number(Cmp::Le, &size, delta)?;
        cx.select(&near, &inner, &outer)
    })
}

fn weighted(cx: &mut Cx<'_>, losses: &Tensor, weight: Option<&Tensor>) -> Lowered<Tensor> {
    match weight {
        None => Ok(losses.clone()),
        Some(weight) => {
            let weight = cx.convert(weight, losses.dtype)?;
            let weight = cx.expand_to(&weight, &losses.dims)?;
            cx.mul(losses, &weight)
        }
    }
}

/// `-(t log(p) + (1 - t) log(1 - p))` with logarithms of -100 at least.
fn binary_cross_entropy(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target, weight) = (args.tensor("self")?, args.tensor("target")?, args.opt_tensor("weight")?);
    let reduction = reduction(args)?;
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let (p, t) = (&both[0], &both[1]);
    let ones = cx.splat_like(p, 1.0)?;
    let rest = cx.sub(&ones, p)?;
    let [log_p, log_rest] = [p, &rest].map(|x| {
        let log = cx.unary(OpKind::Log, x)?;
        cx.with_number(OpKind::Maximum, &log, -100.0)
    });
    let (log_p, log_rest) = (log_p?, log_rest?);
    // (t - 1) log(1 - p) - t log(p)
    let opposite = cx.sub(t, &ones)?;
    let (first, second) = (cx.mul(&opposite, &log_rest)?, cx.mul(t, &log_p)?);
    let losses = cx.sub(&first, &second)?;
    let losses = weighted(cx, &losses, weight.as_ref())?;
    reduced(cx, &losses, reduction, dtype)
}

fn with_logits(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target, weight) = (args.tensor("self")?, args.tensor("target")?, args.opt_tensor("weight")?);
    let positive = args.opt_tensor("pos_weight")?;
    let reduction = reduction(args)?;
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let (x, t) = (&both[0], &both[1]);
    // log(1 + exp(-x)) without overflow.
    let size = cx.unary(OpKind::Abs, x)?;
    let negative = cx.neg(&size)?;
    let part = cx.unary(OpKind::Exponential, &negative)?;
    let log = cx.unary(OpKind::LogPlusOne, &part)?;
    let opposite = cx.neg(x)?;
    let high = cx.with_number(OpKind::Maximum, &opposite, 0.0)?;
    let soft = cx.add(&log, &high)?;
    let ones = cx.splat_like(x, 1.0)?;
    let rest = cx.sub(&ones, t)?;
    let line = cx.mul(&rest, x)?;
    let factor = match positive {
        None => ones,
        Some(positive) => {
            let positive = cx.convert(&positive, x.dtype)?;
            let positive = cx.expand_to(&positive, &x.dims)?;
            let more = cx.sub(&positive, &ones)?;
            let more = cx.mul(&more, t)?;
            cx.add(&more, &ones)?
        }
    };
    let soft = cx.mul(&factor, &soft)?;
    let losses = cx.add(&line, &soft)?;
    let losses = weighted(cx, &losses, weight.as_ref())?;
    reduced(cx, &losses, reduction, dtype)
}

fn kl_div(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target) = (args.tensor("self")?, args.tensor("target")?);
    let (reduction, log_target) = (reduction(args)?, args.bool_or("log_target", false)?);
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let (x, t) = (&both[0], &both[1]);
    let losses = if log_target {
        let (share, difference) = (cx.unary(OpKind::Exponential, t)?, cx.sub(t, x)?);
        cx.mul(&share, &difference)?
    } else {
        let log = cx.unary(OpKind::Log, t)?;
        let own = cx.mul(t, &log)?;
        let zero = cx.splat_like(t, 0.0)?;
        let nothing = cx.compare(Cmp::Eq, t, &zero)?;
        let own = cx.select(&nothing, &zero, &own)?;
        let cross = cx.mul(t, x)?;
        cx.sub(&own, &cross)?
    };
    reduced(cx, &losses, reduction, dtype)
}

fn poisson(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let (log_input, full) = (args.bool_or("log_input", true)?, args.bool_or("full", false)?);
    let (eps, reduction) = (args.float_or("eps", 1e-8)?, reduction(args)?);
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let (x, t) = (&both[0], &both[1]);
    let mut losses = if log_input {
        let (rate, cross) = (cx.unary(OpKind::Exponential, x)?, cx.mul(t, x)?);
        cx.sub(&rate, &cross)?
    } else {
        let shifted = cx.with_number(OpKind::Add, x, eps)?;
        let log = cx.unary(OpKind::Log, &shifted)?;
        let cross = cx.mul(t, &log)?;
        cx.sub(x, &cross)?
    };
    if full {
        // Stirling's approximation of the logarithm of the factorial.
        let log = cx.unary(OpKind::Log, t)?;
        let first = cx.mul(t, &log)?;
        let circle = cx.with_number(OpKind::Multiply, t, std::f64::consts::TAU)?;
        let last = cx.unary(OpKind::Log, &circle)?;
        let last = cx.with_number(OpKind::Multiply, &last, 0.5)?;
        let sum = cx.sub(&first, t)?;
        let sum = cx.add(&sum, &last)?;
        let small = cx.compare_number(Cmp::Le, t, 1.0)?;
        let zero = cx.splat_like(t, 0.0)?;
        let extra = cx.select(&small, &zero, &sum)?;
        losses = cx.add(&losses, &extra)?;
    }
    reduced(cx, &losses, reduction, dtype)
}

fn soft_margin(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target) = (args.tensor("self")?, args.tensor("target")?);
    let reduction = reduction(args)?;
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let product = cx.mul(&both[0], &both[1])?;
    let negative = cx.neg(&product)?;
    let part = cx.unary(OpKind::Exponential, &negative)?;
    let losses = cx.unary(OpKind::LogPlusOne, &part)?;
    reduced(cx, &losses, reduction, dtype)
}

fn hinge_embedding(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (input, target) = (args.tensor("self")?, args.tensor("target")?);
    let (margin, reduction) = (args.float_or("margin", 1.0)?, reduction(args)?);
    let (both, dtype) = wide(cx, &[&input, &target])?;
    let (x, t) = (&both[0], &both[1]);
    let zero = cx.splat_like(x, 0.0)?;
    let edge = cx.splat_like(x, margin)?;
    let below = cx.sub(&edge, x)?;
    let below = cx.max(&below, &zero)?;
    let (same, other) = (cx.compare_number(Cmp::Eq, t, 1.0)?, cx.compare_number(Cmp::Eq, t, -1.0)?);
    let (near, far) = (cx.select(&same, x, &zero)?, cx.select(&other, &below, &zero)?);
    let losses = cx.add(&near, &far)?;
    reduced(cx, &losses, reduction, dtype)
}

fn margin_ranking(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b, target) = (args.tensor("input1")?, args.tensor("input2")?, args.tensor("target")?);
    let (margin, reduction) = (args.float_or("margin", 0.0)?, reduction(args)?);
    let (all, dtype) = wide(cx, &[&a, &b, &target])?;
    let difference = cx.sub(&all[0], &all[1])?;
    let product = cx.mul(&all[2], &difference)?;
    let negative = cx.neg(&product)?;
    let shifted = cx.with_number(OpKind::Add, &negative, margin)?;
    let losses = cx.with_number(OpKind::Maximum, &shifted, 0.0)?;
    reduced(cx, &losses, reduction, dtype)
}

fn cosine_embedding(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    const EPSILON: f64 = 1e-12;
    let (a, b, target) = (args.tensor("input1")?, args.tensor("input2")?, args.tensor("target")?);
    let (margin, reduction) = (args.float_or("margin", 0.0)?, reduction(args)?);
    let (both, dtype) = wide(cx, &[&a, &b])?;
    let Some(axis) = both[0].rank().checked_sub(1) else { return refuse("cosines of scalars") };
    let sums = [(0, 1), (0, 0), (1, 1)].map(|(left, right)| {
        let product = cx.mul(&both[left], &both[right])?;
        cx.sum(&product, &[axis])
    });
    let [cross, first, second] = sums;
    let (first, second) =
        (cx.with_number(OpKind::Add, &first?, EPSILON)?, cx.with_number(OpKind::Add, &second?, EPSILON)?);
    let square = cx.mul(&first, &second)?;
    let length = cx.unary(OpKind::Sqrt, &square)?;
    let cosine = cx.div(&cross?, &length)?;
    let t = cx.convert(&target, cosine.dtype)?;
    let t = cx.expand_to(&t, &cosine.dims)?;
    let zero = cx.splat_like(&cosine, 0.0)?;
    let ones = cx.splat_like(&cosine, 1.0)?;
    let apart = cx.sub(&ones, &cosine)?;
    let close = cx.with_number(OpKind::Subtract, &cosine, margin)?;
    let close = cx.max(&close, &zero)?;
    let (same, other) = (cx.compare_number(Cmp::Eq, &t, 1.0)?, cx.compare_number(Cmp::Eq, &t, -1.0)?);
    let (near, far) = (cx.select(&same, &apart, &zero)?, cx.select(&other, &close, &zero)?);
    let losses = cx.add(&near, &far)?;
    reduced(cx, &losses, reduction, dtype)
}

fn triplet_margin(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (anchor, near, far) = (args.tensor("anchor")?, args.tensor("positive")?, args.tensor("negative")?);
    let (margin, order) = (args.float_or("margin", 1.0)?, args.float_or("p", 2.0)?);
    let (eps, swap) = (args.float_or("eps", 1e-6)?, args.bool_or("swap", false)?);
    let reduction = reduction(args)?;
    let (all, dtype) = wide(cx, &[&anchor, &near, &far])?;
    let close = super::distance::pairwise(cx, &all[0], &all[1], order, eps)?;
    let mut apart = super::distance::pairwise(cx, &all[0], &all[2], order, eps)?;
    if swap {
        let other = super::distance::pairwise(cx, &all[1], &all[2], order, eps)?;
        apart = cx.min(&apart, &other)?;
    }
    let difference = cx.sub(&close, &apart)?;
    let shifted = cx.with_number(OpKind::Add, &difference, margin)?;
    let losses = cx.with_number(OpKind::Maximum, &shifted, 0.0)?;
    reduced(cx, &losses, reduction, dtype)
}

/// The class of each element as a mask along the class dimension, with what is ignored left out, and the weight of each.
struct Classes {
    /// Where a class is that of the element.
    chosen: Tensor,
    /// The weight of each element; zero where it is ignored.
    weight: Tensor,
}

/// `x` is `[n, classes, …]` or `[classes]`, the target without the classes.
fn classes(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor, target: &Tensor) -> Lowered<Classes> {
    let axis = usize::from(x.rank() > 1);
    let map: Vec<usize> = (0..x.rank()).filter(|at| *at != axis).collect();
    let target = cx.convert(target, ElementType::I64)?;
    let each = cx.broadcast(&target, &x.dims.clone(), &map)?;
    let class = cx.iota(ElementType::I64, &x.dims, axis)?;
    let chosen = cx.compare(Cmp::Eq, &each, &class)?;
    let ignored = cx.compare_number(Cmp::Eq, &target, args.int_or("ignore_index", -100)?)?;
    let counted = cx.not(&ignored)?;
    let mut weight = cx.convert(&counted, x.dtype)?;
    if let Some(weights) = args.opt_tensor("weight")? {
        let weights = cx.convert(&weights, x.dtype)?;
        let weights = cx.broadcast(&weights, &x.dims.clone(), &[axis])?;
        let zero = cx.splat_like(x, 0.0)?;
        let own = cx.select(&chosen, &weights, &zero)?;
        let own = cx.sum(&own, &[axis])?;
        weight = cx.mul(&weight, &own)?;
    }
    Ok(Classes { chosen, weight })
}

/// The loss, and the sum of the weights that a mean divides by.
fn nll(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<(Tensor, Tensor)> {
    let (x, target) = (args.tensor("self")?, args.tensor("target")?);
    let reduction = reduction(args)?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let found = classes(cx, args, &wide, &target)?;
    let (losses, total) = chosen_losses(cx, &wide, &found)?;
    let loss = match reduction {
        Reduction::None => losses,
        Reduction::Sum => sum_all(cx, &losses)?,
        Reduction::Mean => {
            let sum = sum_all(cx, &losses)?;
            cx.div(&sum, &total)?
        }
    };
    let total = if reduction == Reduction::None { cx.splat_like(&total, 0.0)? } else { total };
    Ok((cx.convert(&loss, x.dtype)?, cx.convert(&total, x.dtype)?))
}

fn sum_all(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let axes: Vec<usize> = (0..x.rank()).collect();
    cx.sum(x, &axes)
}

/// `-weight * x[class]` for each element, and the sum of the weights.
fn chosen_losses(cx: &mut Cx<'_>, x: &Tensor, found: &Classes) -> Lowered<(Tensor, Tensor)> {
    let axis = usize::from(x.rank() > 1);
    let zero = cx.splat_like(x, 0.0)?;
    let own = cx.select(&found.chosen, x, &zero)?;
    let own = cx.sum(&own, &[axis])?;
    let product = cx.mul(&own, &found.weight)?;
    // What is ignored must not let an infinity through.
    let none = cx.splat_like(&product, 0.0)?;
    let counted = cx.compare(Cmp::Ne, &found.weight, &none)?;
    let product = cx.select(&counted, &product, &none)?;
    Ok((cx.neg(&product)?, sum_all(cx, &found.weight)?))
}

fn cross_entropy(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, target) = (args.tensor("self")?, args.tensor("target")?);
    let smoothing = args.float_or("label_smoothing", 0.0)?;
    let reduction = reduction(args)?;
    let axis = usize::from(x.rank() > 1);
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let logs = softmax_of(cx, &wide, &[axis], Softmax::Log)?;
    if target.dtype.is_float() {
        return by_shares(cx, args, &x, &logs, &target, smoothing, reduction);
    }
    let found = classes(cx, args, &logs, &target)?;
    let (losses, total) = chosen_losses(cx, &logs, &found)?;
    let mut losses = losses;
    if smoothing > 0.0 {
        // A share of the loss goes to all classes alike, each by its weight.
        let smooth = smooth_losses(cx, args, &logs, axis)?;
        let none = cx.splat_like(&smooth, 0.0)?;
        let classes = cx.convert(&target, ElementType::I64)?;
        let ignored = cx.compare_number(Cmp::Eq, &classes, args.int_or("ignore_index", -100)?)?;
        let smooth = cx.select(&ignored, &none, &smooth)?;
        let count = cx.known(&[logs.dim(axis)])?[0] as f64;
        let kept = cx.with_number(OpKind::Multiply, &losses, 1.0 - smoothing)?;
        let spread = cx.with_number(OpKind::Multiply, &smooth, smoothing / count)?;
        losses = cx.add(&kept, &spread)?;
    }
    let loss = match reduction {
        Reduction::None => losses,
        Reduction::Sum => sum_all(cx, &losses)?,
        Reduction::Mean => {
            let sum = sum_all(cx, &losses)?;
            cx.div(&sum, &total)?
        }
    };
    one(cx.convert(&loss, x.dtype)?)
}

/// The weighted sum of the negative logarithms of all classes.
fn smooth_losses(cx: &mut Cx<'_>, args: &Args<'_>, logs: &Tensor, axis: usize) -> Lowered<Tensor> {
    let mut each = cx.neg(logs)?;
    if let Some(weights) = args.opt_tensor("weight")? {
        let weights = cx.convert(&weights, logs.dtype)?;
        let weights = cx.broadcast(&weights, &logs.dims.clone(), &[axis])?;
        each = cx.mul(&each, &weights)?;
    }
    cx.sum(&each, &[axis])
}

/// The loss against shares of all classes.
fn by_shares(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    x: &Tensor,
    logs: &Tensor,
    target: &Tensor,
    smoothing: f64,
    reduction: Reduction,
) -> Lowered<Outcome> {
    args.ignore(&["ignore_index"]);
    let axis = usize::from(x.rank() > 1);
    let mut shares = cx.convert(target, logs.dtype)?;
    if smoothing > 0.0 {
        let count = cx.known(&[logs.dim(axis)])?[0] as f64;
        shares = cx.with_number(OpKind::Multiply, &shares, 1.0 - smoothing)?;
        shares = cx.with_number(OpKind::Add, &shares, smoothing / count)?;
    }
    let mut each = cx.mul(logs, &shares)?;
    if let Some(weights) = args.opt_tensor("weight")? {
        let weights = cx.convert(&weights, logs.dtype)?;
        let weights = cx.broadcast(&weights, &logs.dims.clone(), &[axis])?;
        each = cx.mul(&each, &weights)?;
    }
    let sums = cx.sum(&each, &[axis])?;
    let losses = cx.neg(&sums)?;
    let loss = match reduction {
        Reduction::None => losses,
        Reduction::Sum => sum_all(cx, &losses)?,
        Reduction::Mean => {
            let count = losses.numel();
            let sum = sum_all(cx, &losses)?;
            let count = cx.fill(sum.dtype, &[], &Number::Int(count))?;
            cx.div(&sum, &count)?
        }
    };
    one(cx.convert(&loss, x.dtype)?)
}
