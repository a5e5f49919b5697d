//! Functions of one number.

use super::super::prelude::*;

type Function = fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.abs.default", abs).also(&["aten.absolute.default"]),
    op("aten.acos.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAcos, x))),
    op("aten.acosh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAcosh, x))),
    op("aten.asin.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAsin, x))),
    op("aten.asinh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAsinh, x))),
    op("aten.atan.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAtan, x))),
    op("aten.atanh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloAtanh, x))),
    op("aten.ceil.default", |cx, args| rounding(cx, args, |cx, x| cx.unary(OpKind::Ceil, x))),
    op("aten.cos.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Cosine, x))),
    op("aten.cosh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloCosh, x))),
    op("aten.deg2rad.default", |cx, args| {
        float_unary(cx, args, |cx, x| cx.with_number(OpKind::Multiply, x, std::f64::consts::PI / 180.0))
    }),
    op("aten.digamma.default", |cx, args| float_unary(cx, args, digamma)),
    op("aten.erf.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloErf, x))),
    op("aten.erfc.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloErfc, x))),
    op("aten.erfinv.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloErfInv, x))),
    op("aten.exp.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Exponential, x))),
    op("aten.exp2.default", |cx, args| float_unary(cx, args, exp2)),
    op("aten.expm1.default", |cx, args| {
        float_unary(cx, args, |cx, x| cx.unary(OpKind::ExponentialMinusOne, x))
    }),
    op("aten.floor.default", |cx, args| rounding(cx, args, |cx, x| cx.unary(OpKind::Floor, x))),
    op("aten.frac.default", |cx, args| rounding(cx, args, frac)),
    op("aten.lgamma.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloLgamma, x))),
    op("aten.log.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Log, x))),
    op("aten.log10.default", |cx, args| {
        float_unary(cx, args, |cx, x| log_base(cx, x, std::f64::consts::LN_10))
    }),
    op("aten.log1p.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::LogPlusOne, x))),
    op("aten.log2.default", |cx, args| {
        float_unary(cx, args, |cx, x| log_base(cx, x, std::f64::consts::LN_2))
    }),
    op("aten.neg.default", |cx, args| one(cx.neg(&args.tensor("self")?)?)).also(&["aten.negative.default"]),
    op("aten.positive.default", |_, args| one(args.tensor("self")?)),
    op("aten.rad2deg.default", |cx, args| {
        float_unary(cx, args, |cx, x| cx.with_number(OpKind::Multiply, x, 180.0 / std::f64::consts::PI))
    }),
    op("aten.reciprocal.default", |cx, args| float_unary(cx, args, reciprocal)),
    op("aten.round.decimals", round_decimals),
    op("aten.round.default", |cx, args| rounding(cx, args, |cx, x| cx.unary(OpKind::RoundNearestEven, x))),
    op("aten.rsqrt.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Rsqrt, x))),
    op("aten.sgn.default", sign).also(&["aten.sign.default"]),
    op("aten.sigmoid.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Logistic, x)))
        .also(&["aten.special_expit.default"]),
    op("aten.sin.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Sine, x))),
    op("aten.sinc.default", |cx, args| float_unary(cx, args, sinc)),
    op("aten.sinh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloSinh, x))),
    op("aten.sqrt.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Sqrt, x))),
    op("aten.square.default", |cx, args| {
        let x = args.tensor("self")?;
        let x = if x.dtype == ElementType::Bool { cx.convert(&x, ElementType::I64)? } else { x };
        one(cx.mul(&x, &x)?)
    }),
    op("aten.tan.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::ChloTan, x))),
    op("aten.tanh.default", |cx, args| float_unary(cx, args, |cx, x| cx.unary(OpKind::Tanh, x))),
    op("aten.trunc.default", |cx, args| rounding(cx, args, trunc)).also(&["aten.fix.default"]),
];

/// A function whose result is a fraction: integers become floats first, narrow floats are computed in `f32`.
fn float_unary(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    one(float_unary_of(cx, &x, function)?)
}

pub(in super::super) fn float_unary_of(
    cx: &mut Cx<'_>,
    x: &Tensor,
    function: impl FnOnce(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Tensor> {
    let dtype = to_inexact(x.dtype);
    let wide = cx.convert(x, opmath(dtype))?;
    let result = function(cx, &wide)?;
    cx.convert(&result, dtype)
}

/// A function that leaves integers alone.
fn rounding(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.dtype.is_float() { one(function(cx, &x)?) } else { one(x) }
}

fn abs(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    match x.dtype {
        ElementType::Bool => one(x),
        ElementType::Int(int) if !int.is_signed() => one(x),
        ElementType::Complex(part) => one(cx.unary_to(OpKind::Abs, &x, ElementType::Float(part))?),
        _ => one(cx.unary(OpKind::Abs, &x)?),
    }
}

/// The sign; PyTorch has no sign of NaN (it gives 0), where StableHLO gives NaN.
fn sign(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    match x.dtype {
        ElementType::Bool => one(x),
        ElementType::Int(int) if !int.is_signed() => one(cx.with_number(OpKind::Minimum, &x, 1)?),
        ElementType::Float(_) => {
            let zero = cx.splat_like(&x, 0.0)?;
            let above = cx.compare(Cmp::Gt, &x, &zero)?;
            let below = cx.compare(Cmp::Lt, &x, &zero)?;
            let (above, below) = (cx.convert(&above, x.dtype)?, cx.convert(&below, x.dtype)?);
            one(cx.sub(&above, &below)?)
        }
        _ => one(cx.unary(OpKind::Sign, &x)?),
    }
}

/// The digamma function; at zero it is infinite on the side that the zero's sign says, where CHLO gives NaN.
pub(super) fn digamma(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let value = cx.unary(OpKind::ChloDigamma, x)?;
    let ones = cx.splat_like(x, -1.0)?;
    let pole = cx.div(&ones, x)?;
    let zero = cx.compare_number(Cmp::Eq, x, 0.0)?;
    cx.select(&zero, &pole, &value)
}

fn reciprocal(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let ones = cx.splat_like(x, Scalar::one(x.dtype))?;
    cx.div(&ones, x)
}

fn exp2(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let two = cx.splat_like(x, 2.0)?;
    cx.binary(OpKind::Power, &two, x)
}

fn log_base(cx: &mut Cx<'_>, x: &Tensor, log_of_base: f64) -> Lowered<Tensor> {
    let log = cx.unary(OpKind::Log, x)?;
    cx.with_number(OpKind::Divide, &log, log_of_base)
}

/// Rounds towards zero.
pub(super) fn trunc(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let (floor, ceil) = (cx.unary(OpKind::Floor, x)?, cx.unary(OpKind::Ceil, x)?);
    let negative = cx.compare_number(Cmp::Lt, x, 0.0)?;
    cx.select(&negative, &ceil, &floor)
}

fn frac(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let whole = trunc(cx, x)?;
    cx.sub(x, &whole)
}

fn sinc(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let angle = cx.with_number(OpKind::Multiply, x, std::f64::consts::PI)?;
    let sine = cx.unary(OpKind::Sine, &angle)?;
    let quotient = cx.div(&sine, &angle)?;
    let zero = cx.compare_number(Cmp::Eq, x, 0.0)?;
    let ones = cx.splat_like(x, 1.0)?;
    cx.select(&zero, &ones, &quotient)
}

fn round_decimals(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let decimals = args.int_or("decimals", 0)?;
    if !x.dtype.is_float() {
        return refuse("rounding integers to decimals");
    }
    let scale = 10f64.powi(i32::try_from(decimals.unsigned_abs().min(400)).unwrap_or(400));
    let (up, down) =
        if decimals >= 0 { (OpKind::Multiply, OpKind::Divide) } else { (OpKind::Divide, OpKind::Multiply) };
    one(float_unary_of(cx, &x, |cx, x| {
        let scaled = cx.with_number(up, x, scale)?;
        let rounded = cx.unary(OpKind::RoundNearestEven, &scaled)?;
        cx.with_number(down, &rounded, scale)
    })?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn digamma_has_a_pole_on_each_side_of_zero() {
        let found = evaluated(
            "aten.digamma.default",
            vec![("self", Floats(&[3], vec![0.0, -0.0, 1.0]))],
            &[(F32, &[3])],
        );
        assert_eq!(found[0][..2], [f64::NEG_INFINITY, f64::INFINITY]);
        assert!((found[0][2] + 0.577_215_66).abs() < 1e-6, "{found:?}");
    }
}
