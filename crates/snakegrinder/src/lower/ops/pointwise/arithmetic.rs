//! Functions of two and three numbers.

use super::super::prelude::*;
use super::unary::trunc;
use super::{computed, computed_pair};

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.add.Scalar", |cx, args| added(cx, args, OpKind::Add)).also(&["aten.add.Tensor"]),
    op("aten.addcdiv.default", |cx, args| add_combined(cx, args, OpKind::Divide)),
    op("aten.addcmul.default", |cx, args| add_combined(cx, args, OpKind::Multiply)),
    op("aten.atan2.default", |cx, args| inexact_pair(cx, args, |cx, a, b| cx.binary(OpKind::Atan2, a, b)))
        .also(&["aten.arctan2.default"]),
    op("aten.copysign.Scalar", |cx, args| inexact_pair(cx, args, copysign)).also(&["aten.copysign.Tensor"]),
    op("aten.div.Scalar", divide).also(&[
        "aten.div.Scalar_mode",
        "aten.div.Tensor",
        "aten.div.Tensor_mode",
        "aten.divide.Scalar",
        "aten.divide.Scalar_mode",
        "aten.divide.Tensor",
        "aten.divide.Tensor_mode",
        "aten.true_divide.Scalar",
        "aten.true_divide.Tensor",
    ]),
    op("aten.float_power.Scalar", float_power)
        .also(&["aten.float_power.Tensor_Scalar", "aten.float_power.Tensor_Tensor"]),
    op("aten.floor_divide.Scalar", |cx, args| rounded_division(cx, args, floor_divide))
        .also(&["aten.floor_divide.default"]),
    op("aten.fmax.default", |cx, args| pair(cx, args, |cx, a, b| ignoring_nan(cx, a, b, OpKind::Maximum))),
    op("aten.fmin.default", |cx, args| pair(cx, args, |cx, a, b| ignoring_nan(cx, a, b, OpKind::Minimum))),
    op("aten.fmod.Scalar", |cx, args| rounded_pair(cx, args, |cx, a, b| cx.binary(OpKind::Remainder, a, b)))
        .also(&["aten.fmod.Tensor"]),
    op("aten.hypot.default", |cx, args| pair(cx, args, hypot)),
    op("aten.lerp.Scalar", lerp).also(&["aten.lerp.Tensor"]),
    op("aten.ldexp.Tensor", |cx, args| {
        inexact_pair(cx, args, |cx, x, power| {
            let two = cx.splat_like(power, 2.0)?;
            let factor = cx.binary(OpKind::Power, &two, power)?;
            cx.mul(x, &factor)
        })
    }),
    op("aten.logaddexp.default", |cx, args| inexact_pair(cx, args, logaddexp)),
    op("aten.logaddexp2.default", |cx, args| {
        inexact_pair(cx, args, |cx, a, b| {
            let [a, b] = [a, b].map(|x| cx.with_number(OpKind::Multiply, x, std::f64::consts::LN_2));
            let sum = logaddexp(cx, &a?, &b?)?;
            cx.with_number(OpKind::Divide, &sum, std::f64::consts::LN_2)
        })
    }),
    op("aten.maximum.default", |cx, args| exact_pair(cx, args, OpKind::Maximum)),
    op("aten.minimum.default", |cx, args| exact_pair(cx, args, OpKind::Minimum)),
    op("aten.mul.Scalar", product).also(&["aten.mul.Tensor", "aten.multiply.Scalar", "aten.multiply.Tensor"]),
    op("aten.nextafter.default", |cx, args| exact_pair(cx, args, OpKind::ChloNextAfter)),
    op("aten.pow.Scalar", power).also(&["aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor"]),
    op("aten.remainder.Scalar", |cx, args| rounded_pair(cx, args, |cx, a, b| cx.floor_remainder(a, b)))
        .also(&["aten.remainder.Tensor"]),
    op("aten.remainder.Scalar_Tensor", |cx, args| {
        rounded_pair(cx, args, |cx, a, b| cx.floor_remainder(a, b))
    }),
    op("aten.rsub.Scalar", reversed_subtraction).also(&["aten.rsub.Tensor"]),
    op("aten.special_xlog1py.default", |cx, args| inexact_pair(cx, args, xlog1py))
        .also(&["aten.special_xlog1py.other_scalar", "aten.special_xlog1py.self_scalar"]),
    op("aten.sub.Scalar", |cx, args| added(cx, args, OpKind::Subtract)).also(&[
        "aten.sub.Tensor",
        "aten.subtract.Scalar",
        "aten.subtract.Tensor",
    ]),
    op("aten.xlogy.Scalar_Other", |cx, args| inexact_pair(cx, args, xlogy))
        .also(&["aten.xlogy.Scalar_Self", "aten.xlogy.Tensor"]),
];

type Function = fn(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>;

fn operands(args: &Args<'_>) -> Lowered<(Operand, Operand)> {
    let second = if args.get("exponent").is_some() { "exponent" } else { "other" };
    Ok((args.operand("self")?, args.operand(second)?))
}

/// Computes in the common type of the operands.
fn pair(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = result_type(&[a.clone(), b.clone()])?;
    one(computed_pair(cx, a, b, dtype, function)?)
}

/// As [`pair`], for operations whose numbers PyTorch rounds to the common type first.
fn rounded_pair(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = result_type(&[a.clone(), b.clone()])?;
    let rounded = cx.unify(&[a, b], dtype)?;
    let operands: Vec<Operand> = rounded.iter().map(Operand::from).collect();
    one(computed(cx, &operands, dtype, |cx, all| function(cx, &all[0], &all[1]))?)
}

/// Computes in the common type of the operands, as floats.
fn inexact_pair(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = to_inexact(result_type(&[a.clone(), b.clone()])?);
    one(computed_pair(cx, a, b, dtype, function)?)
}

/// Chooses one of the operands as it is.
fn exact_pair(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = result_type(&[a.clone(), b.clone()])?;
    let unified = cx.unify(&[a, b], dtype)?;
    one(cx.binary(kind, &unified[0], &unified[1])?)
}

/// `self ± alpha * other`.
fn added(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = result_type(&[a.clone(), b.clone()])?;
    let alpha = args.opt_number("alpha")?;
    one(computed_pair(cx, a, b, dtype, |cx, a, b| {
        let b = scaled(cx, b, alpha.as_ref())?;
        plus(cx, kind, a, &b)
    })?)
}

/// `other - alpha * self`.
fn reversed_subtraction(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = operands(args)?;
    let dtype = result_type(&[a.clone(), b.clone()])?;
    let alpha = args.opt_number("alpha")?;
    one(computed_pair(cx, a, b, dtype, |cx, a, b| {
        let a = scaled(cx, a, alpha.as_ref())?;
        cx.sub(b, &a)
    })?)
}

/// A tensor times a number; the tensor itself where the number is one or absent.
pub(in super::super) fn scaled(cx: &mut Cx<'_>, x: &Tensor, factor: Option<&Number>) -> Lowered<Tensor> {
    match factor {
        None => Ok(x.clone()),
        Some(number) if number.as_f64() == Some(1.0) => Ok(x.clone()),
        Some(number) => {
            let factor = cx.fill(x.dtype, &x.dims.clone(), number)?;
            times(cx, x, &factor)
        }
    }
}

/// A sum; of truth values it is whether one of them holds.
fn plus(cx: &mut Cx<'_>, kind: OpKind, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    if a.dtype == ElementType::Bool { cx.or(a, b) } else { cx.binary(kind, a, b) }
}

/// A product; of truth values it is whether both hold.
fn times(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    if a.dtype == ElementType::Bool { cx.and(a, b) } else { cx.mul(a, b) }
}

fn product(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    pair(cx, args, times)
}

fn divide(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    match args.str_or("rounding_mode", "")? {
        "" => inexact_pair(cx, args, |cx, a, b| cx.div(a, b)),
        "trunc" => {
            // The quotient is rounded to the result's type before it is cut off.
            let outcome = pair(cx, args, |cx, a, b| cx.div(a, b))?;
            match outcome.as_slice() {
                [Value::Tensor(quotient)] if quotient.dtype.is_float() => one(trunc(cx, quotient)?),
                _ => Ok(outcome),
            }
        }
        "floor" => rounded_division(cx, args, floor_divide),
        other => refuse(format!("rounding mode `{other}`")),
    }
}

fn rounded_division(cx: &mut Cx<'_>, args: &Args<'_>, function: Function) -> Lowered<Outcome> {
    pair(cx, args, function)
}

/// The quotient rounded down, with PyTorch's care for floats: from the exact remainder, not from the rounded quotient.
fn floor_divide(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    if !a.dtype.is_float() {
        return cx.floor_divide(a, b);
    }
    let plain = cx.div(a, b)?;
    let remainder = cx.binary(OpKind::Remainder, a, b)?;
    let even = cx.sub(a, &remainder)?;
    let quotient = cx.div(&even, b)?;
    let zero = cx.splat_like(a, 0.0)?;
    let uneven = cx.compare(Cmp::Ne, &remainder, &zero)?;
    let (below, negative) = (cx.compare(Cmp::Lt, b, &zero)?, cx.compare(Cmp::Lt, &remainder, &zero)?);
    let differ = cx.compare(Cmp::Ne, &below, &negative)?;
    let adjust = cx.and(&uneven, &differ)?;
    let lower = cx.with_number(OpKind::Subtract, &quotient, 1.0)?;
    let quotient = cx.select(&adjust, &lower, &quotient)?;
    // The subtraction and division above round: the nearest whole number is what was meant.
    let floor = cx.unary(OpKind::Floor, &quotient)?;
    let above = cx.sub(&quotient, &floor)?;
    let high = cx.compare_number(Cmp::Gt, &above, 0.5)?;
    let next = cx.with_number(OpKind::Add, &floor, 1.0)?;
    let whole = cx.select(&high, &next, &floor)?;
    let nothing = cx.compare(Cmp::Eq, &quotient, &zero)?;
    let signed = copysign(cx, &zero, &plain)?;
    let whole = cx.select(&nothing, &signed, &whole)?;
    let by_zero = cx.compare(Cmp::Eq, b, &zero)?;
    cx.select(&by_zero, &plain, &whole)
}

/// The magnitude of one number with the sign of another, of zeros too.
pub(in super::super) fn copysign(cx: &mut Cx<'_>, magnitude: &Tensor, sign: &Tensor) -> Lowered<Tensor> {
    let magnitude = cx.unary(OpKind::Abs, magnitude)?;
    let negative = sign_bit(cx, sign)?;
    let opposite = cx.neg(&magnitude)?;
    cx.select(&negative, &opposite, &magnitude)
}

/// Where the sign bit of a float is set.
pub(in super::super) fn sign_bit(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    let bits = match x.dtype.bits() {
        64 => ElementType::I64,
        32 => ElementType::I32,
        16 => ElementType::I16,
        _ => return refuse(format!("the sign bit of {}", x.dtype)),
    };
    let ty = crate::lower::value::value_type(bits, &x.dims);
    let id = cx.b.op_as(OpKind::BitcastConvert, &[x.id], [], ty)?;
    let raw = cx.tensor(id, bits, x.dims.clone());
    cx.compare_number(Cmp::Lt, &raw, 0)
}

/// The larger or smaller one, and the other one where one is NaN.
fn ignoring_nan(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor, kind: OpKind) -> Lowered<Tensor> {
    let chosen = cx.binary(kind, a, b)?;
    if !a.dtype.is_float() {
        return Ok(chosen);
    }
    let (no_a, no_b) = (cx.is_nan(a)?, cx.is_nan(b)?);
    let chosen = cx.select(&no_b, a, &chosen)?;
    cx.select(&no_a, b, &chosen)
}

fn hypot(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    let (a, b) = (cx.unary(OpKind::Abs, a)?, cx.unary(OpKind::Abs, b)?);
    let (large, small) = (cx.max(&a, &b)?, cx.min(&a, &b)?);
    let ratio = cx.div(&small, &large)?;
    let square = cx.mul(&ratio, &ratio)?;
    let sum = cx.with_number(OpKind::Add, &square, 1.0)?;
    let root = cx.unary(OpKind::Sqrt, &sum)?;
    let length = cx.mul(&large, &root)?;
    // Nothing to scale by where both are zero.
    let zero = cx.compare_number(Cmp::Eq, &large, 0.0)?;
    let length = cx.select(&zero, &large, &length)?;
    // An infinite leg makes the length infinite, whatever the other is: NaN too.
    let (first, second) =
        (cx.compare_number(Cmp::Eq, &a, f64::INFINITY)?, cx.compare_number(Cmp::Eq, &b, f64::INFINITY)?);
    let (infinite, endless) = (cx.or(&first, &second)?, cx.splat_like(&length, f64::INFINITY)?);
    cx.select(&infinite, &endless, &length)
}

fn logaddexp(cx: &mut Cx<'_>, a: &Tensor, b: &Tensor) -> Lowered<Tensor> {
    let large = cx.max(a, b)?;
    let difference = cx.sub(a, b)?;
    let distance = cx.unary(OpKind::Abs, &difference)?;
    let negative = cx.neg(&distance)?;
    let part = cx.unary(OpKind::Exponential, &negative)?;
    let rest = cx.unary(OpKind::LogPlusOne, &part)?;
    let sum = cx.add(&large, &rest)?;
    // The same infinity twice has no difference.
    let (same, infinite) = (cx.compare(Cmp::Eq, a, b)?, cx.unary(OpKind::Abs, a)?);
    let infinite = cx.compare_number(Cmp::Eq, &infinite, f64::INFINITY)?;
    let plain = cx.and(&same, &infinite)?;
    cx.select(&plain, a, &sum)
}

/// `x * log(y)`, nothing where `x` is zero, NaN where `y` is.
fn xlogy(cx: &mut Cx<'_>, x: &Tensor, y: &Tensor) -> Lowered<Tensor> {
    times_logarithm(cx, x, y, OpKind::Log)
}

/// `x * log(1 + y)`, nothing where `x` is zero, NaN where `y` is.
fn xlog1py(cx: &mut Cx<'_>, x: &Tensor, y: &Tensor) -> Lowered<Tensor> {
    times_logarithm(cx, x, y, OpKind::LogPlusOne)
}

fn times_logarithm(cx: &mut Cx<'_>, x: &Tensor, y: &Tensor, kind: OpKind) -> Lowered<Tensor> {
    let log = cx.unary(kind, y)?;
    let product = cx.mul(x, &log)?;
    let zero = cx.splat_like(x, 0.0)?;
    let nothing = cx.compare(Cmp::Eq, x, &zero)?;
    let product = cx.select(&nothing, &zero, &product)?;
    let unknown = cx.is_nan(y)?;
    cx.select(&unknown, y, &product)
}

/// `self + weight * (end - self)`, from the nearer end.
fn lerp(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (start, end, weight) = (args.tensor("self")?, args.tensor("end")?, args.operand("weight")?);
    let dtype = start.dtype;
    let operands = [start.into(), end.into(), weight];
    one(computed(cx, &operands, dtype, |cx, all| {
        let [start, end, weight] = all else { return refuse("three operands are needed") };
        let difference = cx.sub(end, start)?;
        let forward = cx.mul(weight, &difference)?;
        let forward = cx.add(start, &forward)?;
        let ones = cx.splat_like(weight, 1.0)?;
        let rest = cx.sub(&ones, weight)?;
        let backward = cx.mul(&difference, &rest)?;
        let backward = cx.sub(end, &backward)?;
        let size = cx.unary(OpKind::Abs, weight)?;
        let near = cx.compare_number(Cmp::Lt, &size, 0.5)?;
        cx.select(&near, &forward, &backward)
    })?)
}

/// `self + value * (tensor1 ∘ tensor2)`.
fn add_combined(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let (x, a, b) = (args.tensor("self")?, args.tensor("tensor1")?, args.tensor("tensor2")?);
    let value = args.opt_number("value")?;
    let operands: [Operand; 3] = [x.into(), a.into(), b.into()];
    let dtype = result_type(&operands)?;
    one(computed(cx, &operands, dtype, |cx, all| {
        let [x, a, b] = all else { return refuse("three operands are needed") };
        let a = scaled(cx, a, value.as_ref())?;
        let combined = cx.binary(kind, &a, b)?;
        cx.add(x, &combined)
    })?)
}

fn power(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (base, exponent) = operands(args)?;
    let dtype = result_type(&[base.clone(), exponent.clone()])?;
    if let (Operand::Tensor(base), Operand::Number(number)) = (&base, &exponent)
        && let Some(power) = number.as_f64()
        && !dtype.is_complex()
        && let Some(special) = whole_power(power)
    {
        let wide = cx.convert(base, opmath(dtype))?;
        let result = special(cx, &wide)?;
        return one(cx.convert(&result, dtype)?);
    }
    if let (Operand::Number(number), ElementType::Int(_)) = (&exponent, dtype)
        && number.as_f64().is_none_or(|power| power < 0.0)
    {
        return refuse("integers to negative powers");
    }
    let dtype = if dtype == ElementType::Bool { ElementType::I64 } else { dtype };
    one(computed_pair(cx, base, exponent, dtype, |cx, a, b| cx.binary(OpKind::Power, a, b))?)
}

/// A power computed in doubles, whatever the operands are.
fn float_power(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (base, exponent) = operands(args)?;
    let complex = result_type(&[base.clone(), exponent.clone()])?.is_complex();
    let dtype = if complex { ElementType::C128 } else { ElementType::F64 };
    one(computed_pair(cx, base, exponent, dtype, |cx, a, b| cx.binary(OpKind::Power, a, b))?)
}

/// Powers that PyTorch computes by multiplication.
fn whole_power(power: f64) -> Option<fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>> {
    if power == 1.0 {
        return Some(|_, x| Ok(x.clone()));
    }
    if power == 2.0 {
        return Some(|cx, x| cx.mul(x, x));
    }
    if power == 3.0 {
        return Some(|cx, x| {
            let square = cx.mul(x, x)?;
            cx.mul(&square, x)
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Code::*, Given::*, evaluated};

    #[test]
    fn powers_of_two_are_taken_and_added() {
        let numbers = || Floats(&[2], vec![3.0, -1.5]);
        let powers = vec![("self", numbers()), ("other", Ints(&[2], vec![2, -1]))];
        assert_eq!(evaluated("aten.ldexp.Tensor", powers, &[(F32, &[2])]), [[12.0, -0.75]]);
        let powers = vec![("self", Ints(&[2], vec![2, 3])), ("exponent", Ints(&[2], vec![-1, 2]))];
        assert_eq!(evaluated("aten.float_power.Tensor_Tensor", powers, &[(F64, &[2])]), [[0.5, 9.0]]);
        let same = vec![("self", numbers()), ("other", numbers())];
        let sums = evaluated("aten.logaddexp2.default", same, &[(F32, &[2])]);
        assert!((sums[0][0] - 4.0).abs() < 1e-6 && (sums[0][1] + 0.5).abs() < 1e-6, "{sums:?}");
    }
}
