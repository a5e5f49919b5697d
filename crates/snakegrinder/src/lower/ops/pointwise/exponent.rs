//! Floats taken apart into a fraction and a power of two.

use super::super::prelude::*;
use crate::lower::value::value_type;

pub(in super::super) const TABLE: &[Op] = &[op("aten.frexp.Tensor", frexp)];

/// What is in the bits of a float type.
struct Layout {
    bits: ElementType,
    /// How many bits the fraction has.
    fraction: u32,
    /// The exponent's bits, all set.
    exponent: i64,
}

/// By which power of two subnormal numbers, which have no exponent of their own, are made normal.
const LIFT: i32 = 64;

/// `x = mantissa * 2^exponent` with a mantissa from a half to one; zero, infinity and NaN are their own mantissas.
fn frexp(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let layout = match wide.dtype {
        ElementType::F32 => Layout { bits: ElementType::I32, fraction: 23, exponent: 0xff },
        ElementType::F64 => Layout { bits: ElementType::I64, fraction: 52, exponent: 0x7ff },
        other => return refuse(format!("the exponent of {other}")),
    };
    // The exponent of numbers from a half to one.
    let half = layout.exponent / 2 - 1;
    let size = cx.unary(OpKind::Abs, &wide)?;
    let smallest = 2f64.powi(1 - layout.exponent as i32 / 2);
    let subnormal = cx.compare_number(Cmp::Lt, &size, smallest)?;
    let lifted = cx.with_number(OpKind::Multiply, &wide, 2f64.powi(LIFT))?;
    let normal = cx.select(&subnormal, &lifted, &wide)?;
    let raw = bits_as(cx, &normal, layout.bits)?;
    let shift = cx.with_number(OpKind::ShiftRightLogical, &raw, i64::from(layout.fraction))?;
    let field = cx.with_number(OpKind::And, &shift, layout.exponent)?;
    let plain = cx.with_number(OpKind::Subtract, &field, half)?;
    let less = cx.with_number(OpKind::Subtract, &plain, i64::from(LIFT))?;
    let exponent = cx.select(&subnormal, &less, &plain)?;
    let rest = cx.with_number(OpKind::And, &raw, !(layout.exponent << layout.fraction))?;
    let mantissa = cx.with_number(OpKind::Or, &rest, half << layout.fraction)?;
    let mantissa = bits_as(cx, &mantissa, wide.dtype)?;

    let finite = cx.compare_number(Cmp::Lt, &size, f64::INFINITY)?;
    let nonzero = cx.compare_number(Cmp::Ne, &wide, 0.0)?;
    let usual = cx.and(&finite, &nonzero)?;
    let mantissa = cx.select(&usual, &mantissa, &wide)?;
    let nothing = cx.splat_like(&exponent, 0)?;
    let exponent = cx.select(&usual, &exponent, &nothing)?;
    Ok(vec![cx.convert(&mantissa, x.dtype)?.into(), cx.convert(&exponent, ElementType::I32)?.into()])
}

/// The same bits as another type of the same size.
fn bits_as(cx: &mut Cx<'_>, x: &Tensor, dtype: ElementType) -> Lowered<Tensor> {
    let id = cx.b.op_as(OpKind::BitcastConvert, &[x.id], [], value_type(dtype, &x.dims))?;
    Ok(cx.tensor(id, dtype, x.dims.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Code, Given::*, evaluated};

    #[test]
    fn a_mantissa_and_an_exponent_make_the_number() {
        let numbers = Floats(&[5], vec![0.0, -6.0, 1.0, 1e-40, f32::INFINITY]);
        let results: [(Code, &[usize]); 2] = [(Code::F32, &[5]), (Code::I32, &[5])];
        let found = evaluated("aten.frexp.Tensor", vec![("self", numbers)], &results);
        let subnormal = f64::from(1e-40f32);
        let power = subnormal.log2().floor() as i32 + 1;
        assert_eq!(found[0], [0.0, -0.75, 0.5, subnormal / 2f64.powi(power), f64::INFINITY]);
        assert_eq!(found[1], [0.0, 3.0, 1.0, f64::from(power), 0.0]);
    }
}
