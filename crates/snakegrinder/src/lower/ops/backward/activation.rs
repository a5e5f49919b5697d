//! Gradients of activation functions.

use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._prelu_kernel_backward.default", prelu),
    op("aten.elu_backward.default", elu),
    op("aten.gelu_backward.default", |cx, args| match args.str_or("approximate", "none")? {
        "none" => pointwise(cx, args, "self", gelu),
        "tanh" => pointwise(cx, args, "self", gelu_by_tanh),
        other => refuse(format!("the approximation `{other}` of gelu")),
    }),
    op("aten.glu_backward.default", glu),
    op("aten.hardshrink_backward.default", |cx, args| {
        let limit = args.float_or("lambd", 0.5)?;
        let (g, x) = (args.tensor("grad_out")?, args.tensor("self")?);
        one(outside(cx, &g, &x, -limit, limit)?)
    }),
    op("aten.hardsigmoid_backward.default", |cx, args| {
        pointwise(cx, args, "self", |cx, g, x| {
            let slope = cx.with_number(OpKind::Multiply, g, 1.0 / 6.0)?;
            inside(cx, &slope, x, -3.0, 3.0)
        })
    }),
    op("aten.hardswish_backward.default", |cx, args| pointwise(cx, args, "self", hardswish)),
    op("aten.hardtanh_backward.default", |cx, args| {
        let (low, high) = (args.float_or("min_val", -1.0)?, args.float_or("max_val", 1.0)?);
        pointwise(cx, args, "self", |cx, g, x| inside(cx, g, x, low, high))
    }),
    op("aten.leaky_relu_backward.default", |cx, args| {
        let slope = args.float_or("negative_slope", 0.01)?;
        // The sign of the result is that of the argument.
        args.ignore(&["self_is_result"]);
        pointwise(cx, args, "self", |cx, g, x| {
            let below = cx.with_number(OpKind::Multiply, g, slope)?;
            let positive = cx.compare_number(Cmp::Gt, x, 0.0)?;
            cx.select(&positive, g, &below)
        })
    }),
    op("aten.log_sigmoid_backward.default", |cx, args| {
        args.ignore(&["buffer"]);
        pointwise(cx, args, "self", |cx, g, x| {
            let negative = cx.neg(x)?;
            let rest = cx.unary(OpKind::Logistic, &negative)?;
            cx.mul(g, &rest)
        })
    }),
    op("aten.logit_backward.default", logit),
    op("aten.mish_backward.default", |cx, args| pointwise(cx, args, "self", mish)),
    op("aten.native_dropout_backward.default", dropout),
    op("aten.sigmoid_backward.default", |cx, args| {
        pointwise(cx, args, "output", |cx, g, y| {
            let rest = one_minus(cx, y)?;
            let slope = cx.mul(&rest, y)?;
            cx.mul(g, &slope)
        })
    }),
    op("aten.silu_backward.default", |cx, args| pointwise(cx, args, "self", silu)),
    op("aten.softplus_backward.default", |cx, args| {
        let (beta, threshold) = (args.float_or("beta", 1.0)?, args.float_or("threshold", 20.0)?);
        pointwise(cx, args, "self", |cx, g, x| {
            let scaled = cx.with_number(OpKind::Multiply, x, beta)?;
            let slope = cx.unary(OpKind::Logistic, &scaled)?;
            let curved = cx.mul(g, &slope)?;
            let straight = cx.compare_number(Cmp::Gt, &scaled, threshold)?;
            cx.select(&straight, g, &curved)
        })
    }),
    op("aten.softshrink_backward.default", |cx, args| {
        let limit = args.float_or("lambd", 0.5)?;
        let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
        one(outside(cx, &g, &x, -limit, limit)?)
    }),
    op("aten.tanh_backward.default", |cx, args| {
        pointwise(cx, args, "output", |cx, g, y| {
            let square = cx.mul(y, y)?;
            let slope = one_minus(cx, &square)?;
            cx.mul(g, &slope)
        })
    }),
    op("aten.threshold_backward.default", |cx, args| {
        let threshold = args.number("threshold")?;
        let (g, x) = same_shape(cx, &args.tensor("grad_output")?, &args.tensor("self")?)?;
        let limit = cx.fill(x.dtype, &x.dims, &threshold)?;
        let below = cx.compare(Cmp::Le, &x, &limit)?;
        let zero = cx.splat_like(&g, Scalar::zero(g.dtype))?;
        one(cx.select(&below, &zero, &g)?)
    }),
];

/// A gradient from that of the result and one tensor of the forward pass, computed in `f32` for narrower types.
fn pointwise(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    saved: &str,
    compute: impl FnOnce(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor(saved)?);
    let dtype = promote(g.dtype, x.dtype)?;
    let (g, x) = same_shape(cx, &g, &x)?;
    let (g, x) = (cx.convert(&g, opmath(dtype))?, cx.convert(&x, opmath(dtype))?);
    let gradient = compute(cx, &g, &x)?;
    one(cx.convert(&gradient, dtype)?)
}

/// A gradient may come expanded from a smaller one.
fn same_shape(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<(Tensor, Tensor)> {
    let dims = cx.broadcast_shape(&[&g.dims, &x.dims])?;
    Ok((cx.expand_to(g, &dims)?, cx.expand_to(x, &dims)?))
}

fn one_minus(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let ones = cx.splat_like(x, 1.0)?;
    cx.sub(&ones, x)
}

/// A gradient where `low < x < high`, zero elsewhere.
fn inside(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor, low: f64, high: f64) -> Lowered<Tensor> {
    let (above, below) = (cx.compare_number(Cmp::Gt, x, low)?, cx.compare_number(Cmp::Lt, x, high)?);
    let between = cx.and(&above, &below)?;
    let zero = cx.splat_like(g, 0.0)?;
    cx.select(&between, g, &zero)
}

/// A gradient except where `low <= x <= high`, zero there.
fn outside(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor, low: f64, high: f64) -> Lowered<Tensor> {
    let (above, below) = (cx.compare_number(Cmp::Ge, x, low)?, cx.compare_number(Cmp::Le, x, high)?);
    let between = cx.and(&above, &below)?;
    let zero = cx.splat_like(g, 0.0)?;
    cx.select(&between, &zero, g)
}

/// `Φ(x) + x φ(x)`.
fn gelu(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<Tensor> {
    let scaled = cx.with_number(OpKind::Multiply, x, std::f64::consts::FRAC_1_SQRT_2)?;
    let erf = cx.unary(OpKind::ChloErf, &scaled)?;
    let shifted = cx.with_number(OpKind::Add, &erf, 1.0)?;
    let cumulative = cx.with_number(OpKind::Multiply, &shifted, 0.5)?;
    let square = cx.mul(x, x)?;
    let halved = cx.with_number(OpKind::Multiply, &square, -0.5)?;
    let bell = cx.unary(OpKind::Exponential, &halved)?;
    let norm = 0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    let density = cx.with_number(OpKind::Multiply, &bell, norm)?;
    let tail = cx.mul(x, &density)?;
    let slope = cx.add(&cumulative, &tail)?;
    cx.mul(g, &slope)
}

/// The gradient of `x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
fn gelu_by_tanh(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<Tensor> {
    const CUBIC: f64 = 0.044_715;
    let beta = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;
    let square = cx.mul(x, x)?;
    let cube = cx.mul(&square, x)?;
    let bend = cx.with_number(OpKind::Multiply, &cube, CUBIC)?;
    let inner = cx.add(x, &bend)?;
    let inner = cx.with_number(OpKind::Multiply, &inner, beta)?;
    let tanh = cx.unary(OpKind::Tanh, &inner)?;
    let left = cx.with_number(OpKind::Add, &tanh, 1.0)?;
    let left = cx.with_number(OpKind::Multiply, &left, 0.5)?;
    let tanh_square = cx.mul(&tanh, &tanh)?;
    let steepness = one_minus(cx, &tanh_square)?;
    let inner_slope = cx.with_number(OpKind::Multiply, &square, 3.0 * CUBIC)?;
    let inner_slope = cx.with_number(OpKind::Add, &inner_slope, 1.0)?;
    let inner_slope = cx.with_number(OpKind::Multiply, &inner_slope, beta)?;
    let half = cx.with_number(OpKind::Multiply, x, 0.5)?;
    let right = cx.mul(&half, &steepness)?;
    let right = cx.mul(&right, &inner_slope)?;
    let slope = cx.add(&left, &right)?;
    cx.mul(g, &slope)
}

fn silu(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<Tensor> {
    let gate = cx.unary(OpKind::Logistic, x)?;
    let rest = one_minus(cx, &gate)?;
    let bend = cx.mul(x, &rest)?;
    let bend = cx.with_number(OpKind::Add, &bend, 1.0)?;
    let slope = cx.mul(&gate, &bend)?;
    cx.mul(g, &slope)
}

fn hardswish(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<Tensor> {
    let slope = cx.with_number(OpKind::Divide, x, 3.0)?;
    let slope = cx.with_number(OpKind::Add, &slope, 0.5)?;
    let middle = cx.mul(g, &slope)?;
    let below = cx.compare_number(Cmp::Lt, x, 3.0)?;
    let rest = cx.select(&below, &middle, g)?;
    let flat = cx.compare_number(Cmp::Le, x, -3.0)?;
    let zero = cx.splat_like(g, 0.0)?;
    cx.select(&flat, &zero, &rest)
}

fn mish(cx: &mut Cx<'_>, g: &Tensor, x: &Tensor) -> Lowered<Tensor> {
    let zero = cx.splat_like(x, 0.0)?;
    let size = cx.unary(OpKind::Abs, x)?;
    let negative = cx.neg(&size)?;
    let small = cx.unary(OpKind::Exponential, &negative)?;
    let rest = cx.unary(OpKind::LogPlusOne, &small)?;
    let positive = cx.max(x, &zero)?;
    let softplus = cx.add(&positive, &rest)?;
    let tanh = cx.unary(OpKind::Tanh, &softplus)?;
    let gate = cx.unary(OpKind::Logistic, x)?;
    let square = cx.mul(&tanh, &tanh)?;
    let steepness = one_minus(cx, &square)?;
    let bend = cx.mul(x, &gate)?;
    let bend = cx.mul(&bend, &steepness)?;
    let slope = cx.add(&tanh, &bend)?;
    cx.mul(g, &slope)
}

fn elu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (alpha, scale) = (args.float_or("alpha", 1.0)?, args.float_or("scale", 1.0)?);
    let input_scale = args.float_or("input_scale", 1.0)?;
    let is_result = args.bool_or("is_result", false)?;
    pointwise(cx, args, "self_or_result", |cx, g, x| {
        let curved = if is_result {
            let shifted = cx.with_number(OpKind::Add, x, alpha * scale)?;
            cx.with_number(OpKind::Multiply, &shifted, input_scale)?
        } else {
            let scaled = cx.with_number(OpKind::Multiply, x, input_scale)?;
            let exponential = cx.unary(OpKind::Exponential, &scaled)?;
            cx.with_number(OpKind::Multiply, &exponential, alpha * scale * input_scale)?
        };
        let curved = cx.mul(g, &curved)?;
        let straight = cx.with_number(OpKind::Multiply, g, scale)?;
        let negative = cx.compare_number(Cmp::Le, x, 0.0)?;
        cx.select(&negative, &curved, &straight)
    })
}

fn glu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let whole = x.dim(axis);
    let Some(half) = whole.floor_div(&Size::Int(2)) else { return refuse("half of nothing") };
    let dtype = opmath(x.dtype);
    let (g, wide) = (cx.convert(&g, dtype)?, cx.convert(&x, dtype)?);
    let value = cx.slice(&wide, axis, &Size::Int(0), &half, 1)?;
    let gate = cx.slice(&wide, axis, &half, &whole, 1)?;
    let gate = cx.unary(OpKind::Logistic, &gate)?;
    let by_value = cx.mul(&gate, &g)?;
    let rest = one_minus(cx, &gate)?;
    let slope = cx.mul(&rest, &gate)?;
    let slope = cx.mul(&slope, &value)?;
    let by_gate = cx.mul(&slope, &g)?;
    let gradient = cx.concatenate(&[by_value, by_gate], axis)?;
    one(cx.convert(&gradient, x.dtype)?)
}

fn logit(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let eps = args.opt_float("eps")?;
    let (low, high, otherwise) = match eps {
        Some(eps) => (eps, 1.0 - eps, 0.0),
        None => (0.0, 1.0, f64::NAN),
    };
    pointwise(cx, args, "self", |cx, g, x| {
        let rest = one_minus(cx, x)?;
        let product = cx.mul(x, &rest)?;
        let slope = cx.div(g, &product)?;
        let (above, below) = (cx.compare_number(Cmp::Ge, x, low)?, cx.compare_number(Cmp::Le, x, high)?);
        let defined = cx.and(&above, &below)?;
        let otherwise = cx.splat_like(g, otherwise)?;
        cx.select(&defined, &slope, &otherwise)
    })
}

/// The gradients by the argument and, element by element, by the slope.
fn prelu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, x, weight) = (args.tensor("grad_output")?, args.tensor("self")?, args.tensor("weight")?);
    let weight = cx.expand_to(&weight, &x.dims)?;
    let positive = cx.compare_number(Cmp::Gt, &x, 0.0)?;
    let below = cx.mul(&weight, &g)?;
    let by_input = cx.select(&positive, &g, &below)?;
    let zero = cx.splat_like(&g, 0.0)?;
    let product = cx.mul(&x, &g)?;
    let by_weight = cx.select(&positive, &zero, &product)?;
    Ok(vec![by_input.into(), by_weight.into()])
}

fn dropout(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (g, mask) = (args.tensor("grad_output")?, args.tensor("mask")?);
    let scale = args.float_or("scale", 1.0)?;
    let mask = cx.convert(&mask, g.dtype)?;
    let kept = cx.mul(&g, &mask)?;
    one(cx.with_number(OpKind::Multiply, &kept, scale)?)
}
