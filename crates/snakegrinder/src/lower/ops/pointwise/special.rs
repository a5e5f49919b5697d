//! Functions that have names: of Bessel, of Euler, of Riemann, of statistics.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::super::prelude::*;
use super::computed_pair;
use super::unary::{digamma, float_unary_of};

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.i0.default", |cx, args| function(cx, args, |cx, x| grown(cx, x, i0e))),
    op("aten.mvlgamma.default", mvlgamma),
    op("aten.polygamma.default", polygamma),
    op("aten.special_entr.default", |cx, args| function(cx, args, entropy)),
    op("aten.special_i0e.default", |cx, args| function(cx, args, i0e)),
    op("aten.special_i1.default", |cx, args| function(cx, args, |cx, x| grown(cx, x, i1e))),
    op("aten.special_i1e.default", |cx, args| function(cx, args, i1e)),
    op("aten.special_ndtr.default", |cx, args| function(cx, args, normal_share)),
    op("aten.special_zeta.default", zeta)
        .also(&["aten.special_zeta.other_scalar", "aten.special_zeta.self_scalar"]),
];

type Function = fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>;

fn function(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    one(float_unary_of(cx, &args.tensor("self")?, function)?)
}

/// The share of the normal distribution that is below a number.
fn normal_share(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let scaled = cx.with_number(OpKind::Multiply, x, -FRAC_1_SQRT_2)?;
    let twice = cx.unary(OpKind::ChloErfc, &scaled)?;
    cx.with_number(OpKind::Multiply, &twice, 0.5)
}

/// `-x * log(x)`, nothing at zero, without bound below.
fn entropy(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let (zero, none) = (cx.splat_like(x, 0.0)?, cx.splat_like(x, f64::NEG_INFINITY)?);
    let log = cx.unary(OpKind::Log, x)?;
    let product = cx.mul(x, &log)?;
    let value = cx.neg(&product)?;
    let at_zero = cx.compare(Cmp::Eq, x, &zero)?;
    let value = cx.select(&at_zero, &zero, &value)?;
    let below = cx.compare(Cmp::Lt, x, &zero)?;
    cx.select(&below, &none, &value)
}

fn polygamma(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let order = args.int("n")?;
    one(float_unary_of(cx, &args.tensor("self")?, |cx, x| {
        if order == 0 {
            return digamma(cx, x);
        }
        let order = cx.splat_like(x, order as f64)?;
        cx.binary(OpKind::ChloPolygamma, &order, x)
    })?)
}

fn zeta(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (s, q) = (args.operand("self")?, args.operand("other")?);
    let dtype = to_inexact(result_type(&[s.clone(), q.clone()])?);
    one(computed_pair(cx, s, q, dtype, |cx, s, q| cx.binary(OpKind::ChloZeta, s, q))?)
}

/// The logarithm of the gamma function of `p` variables.
fn mvlgamma(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // More variables than this no model has: each is an operation.
    const MOST: i64 = 1 << 10;
    let variables = args.int("p")?;
    if !(1..=MOST).contains(&variables) {
        return refuse(format!("a gamma function of {variables} variables"));
    }
    one(float_unary_of(cx, &args.tensor("self")?, |cx, x| {
        let mut total = cx.splat_like(x, (variables * (variables - 1)) as f64 / 4.0 * PI.ln())?;
        for at in 0..variables {
            let shifted = cx.with_number(OpKind::Subtract, x, at as f64 / 2.0)?;
            let part = cx.unary(OpKind::ChloLgamma, &shifted)?;
            total = cx.add(&total, &part)?;
        }
        Ok(total)
    })?)
}

/// A Bessel function from the one that is scaled by `exp(-|x|)`.
fn grown(cx: &mut Cx<'_>, x: &Tensor, scaled: Function) -> Lowered<Tensor> {
    let size = cx.unary(OpKind::Abs, x)?;
    let growth = cx.unary(OpKind::Exponential, &size)?;
    let scaled = scaled(cx, x)?;
    cx.mul(&scaled, &growth)
}

fn i0e(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let size = cx.unary(OpKind::Abs, x)?;
    bessel(cx, &size, 0)
}

fn i1e(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let size = cx.unary(OpKind::Abs, x)?;
    let value = bessel(cx, &size, 1)?;
    let opposite = cx.neg(&value)?;
    let negative = cx.compare_number(Cmp::Lt, x, 0.0)?;
    cx.select(&negative, &opposite, &value)
}

/// `exp(-x) * I(x)` of order 0 or 1, for `x` that is not negative: its power series up to [`FAR`], where all terms are
/// positive, its asymptotic series from there on, whose error is below `exp(-2 * FAR)`.
fn bessel(cx: &mut Cx<'_>, x: &Tensor, order: i64) -> Lowered<Tensor> {
    const FAR: f64 = 20.0;
    const NEAR_TERMS: i64 = 40;
    const FAR_TERMS: i64 = 24;
    // Each series is computed only where it is used: elsewhere it may overflow.
    let near = cx.with_number(OpKind::Minimum, x, FAR)?;
    let half = cx.with_number(OpKind::Multiply, &near, 0.5)?;
    let square = cx.mul(&half, &half)?;
    let mut sum = cx.splat_like(x, 1.0)?;
    for term in (1..=NEAR_TERMS).rev() {
        let part = cx.mul(&sum, &square)?;
        let part = cx.with_number(OpKind::Divide, &part, (term * (term + order)) as f64)?;
        sum = cx.with_number(OpKind::Add, &part, 1.0)?;
    }
    if order == 1 {
        sum = cx.mul(&sum, &half)?;
    }
    let shrunk = cx.neg(&near)?;
    let shrunk = cx.unary(OpKind::Exponential, &shrunk)?;
    let close = cx.mul(&sum, &shrunk)?;

    let far = cx.with_number(OpKind::Maximum, x, FAR)?;
    let mut sum = cx.splat_like(x, 1.0)?;
    for term in (1..=FAR_TERMS).rev() {
        // The ratio of a term to the one before, times x.
        let ratio = ((2 * term - 1).pow(2) - 4 * order) as f64 / (8 * term) as f64;
        let part = cx.div(&sum, &far)?;
        let part = cx.with_number(OpKind::Multiply, &part, ratio)?;
        sum = cx.with_number(OpKind::Add, &part, 1.0)?;
    }
    let round = cx.with_number(OpKind::Multiply, &far, 2.0 * PI)?;
    let root = cx.unary(OpKind::Sqrt, &round)?;
    let distant = cx.div(&sum, &root)?;
    let is_near = cx.compare_number(Cmp::Le, x, FAR)?;
    cx.select(&is_near, &close, &distant)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    fn near(target: &str, arguments: Vec<(&str, super::super::super::testing::Given)>, expected: &[f64]) {
        let found = evaluated(target, arguments, &[(F32, &[3])]);
        for (got, want) in found[0].iter().zip(expected) {
            assert!((got - want).abs() <= 1e-6 * want.abs().max(1e-3), "{target}: {found:?}");
        }
    }

    #[test]
    fn bessel_functions_are_right_near_and_far() {
        let numbers = || vec![("self", Floats(&[3], vec![1.5, -12.0, 30.0]))];
        near("aten.special_i0e.default", numbers(), &[0.367_433_609_05, 0.116_426_221_21, 0.073_145_946_48]);
        near("aten.special_i1e.default", numbers(), &[0.219_039_387_42, -0.111_464_299_29, 0.071_916_330_60]);
    }

    #[test]
    fn shares_and_entropies() {
        let numbers = || vec![("self", Floats(&[3], vec![0.0, 1.0, -3.0]))];
        near("aten.special_ndtr.default", numbers(), &[0.5, 0.841_344_746, 0.001_349_898]);
        let found = evaluated("aten.special_entr.default", numbers(), &[(F32, &[3])]);
        assert_eq!(found, [[0.0, 0.0, f64::NEG_INFINITY]]);
    }

    #[test]
    fn derivatives_of_digamma() {
        let mut arguments = vec![("self", Floats(&[3], vec![1.0, 2.0, 0.5]))];
        arguments.push(("n", Plain(json!({"as_int": 1}))));
        near("aten.polygamma.default", arguments, &[1.644_934_067, 0.644_934_067, 4.934_802_2]);
    }
}
