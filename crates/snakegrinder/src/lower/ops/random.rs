//! Random numbers: refused, except where none are drawn.

use super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    view("aten.alpha_dropout.default", dropout).also(&[
        "aten.dropout.default",
        "aten.feature_alpha_dropout.default",
        "aten.feature_dropout.default",
    ]),
    op("aten.native_dropout.default", native_dropout),
    op("aten.bernoulli.default", unless_unused).also(&[
        "aten.bernoulli.p",
        "aten.multinomial.default",
        "aten.normal.Tensor_Tensor",
        "aten.normal.Tensor_float",
        "aten.normal.float_Tensor",
        "aten.normal_functional.default",
        "aten.rand.default",
        "aten.rand_like.default",
        "aten.randint.default",
        "aten.randint.low",
        "aten.randint_like.default",
        "aten.randint_like.low_dtype",
        "aten.randn.default",
        "aten.randn_like.default",
        "aten.randperm.default",
        "aten.uniform.default",
    ]),
    op("aten.rrelu.default", rrelu),
    op("aten.rrelu_with_noise.default", |cx, args| {
        args.ignore(&["noise"]);
        rrelu(cx, args)
    }),
    op("aten.rrelu_with_noise_functional.default", |cx, args| {
        let noise = args.tensor("noise")?;
        let mut outcome = rrelu(cx, args)?;
        outcome.push(noise.into());
        Ok(outcome)
    }),
];

/// PyTorch keeps nodes that draw random numbers even where nothing uses what they draw.
fn unless_unused(_: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    if args.any_output_used() {
        return refuse("it draws random numbers, which StableHLO would draw from another generator");
    }
    args.ignore_all();
    Ok(vec![Value::None])
}

fn draws_nothing(args: &Args<'_>) -> Lowered<bool> {
    let (train, probability) = (args.bool_or("train", true)?, args.float_or("p", 0.5)?);
    Ok(!train || probability == 0.0)
}

/// Outside training the argument itself.
fn dropout(_: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // The in-place variant calls its argument otherwise.
    let x = args.tensor(if args.get("input").is_some() { "input" } else { "self" })?;
    if draws_nothing(args)? {
        return one(x);
    }
    refuse("dropout draws random numbers; export the model in evaluation mode or with a probability of 0")
}

fn native_dropout(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("input")?;
    if draws_nothing(args)? {
        let all = cx.splat(ElementType::Bool, &x.dims.clone(), true)?;
        return Ok(vec![x.into(), all.into()]);
    }
    refuse("dropout draws random numbers; export the model in evaluation mode or with a probability of 0")
}

/// Outside training a leaky slope in the middle of the range.
fn rrelu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    args.ignore(&["generator"]);
    let (low, high) = (args.float_or("lower", 0.125)?, args.float_or("upper", 1.0 / 3.0)?);
    if args.bool_or("training", false)? {
        return refuse("a random slope");
    }
    let below = cx.with_number(OpKind::Multiply, &x, f64::midpoint(low, high))?;
    let positive = cx.compare_number(Cmp::Gt, &x, 0.0)?;
    one(cx.select(&positive, &x, &below)?)
}
