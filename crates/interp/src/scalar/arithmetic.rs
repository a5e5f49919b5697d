//! Arithmetic, logic and rounding of single elements.

use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType, IntType, Scalar};

use super::compare::partial_order;
use super::functions;
use crate::math::{complex, real};

type Unary = Box<dyn Fn(Scalar) -> Scalar + Send + Sync>;
type Binary = Box<dyn Fn(Scalar, Scalar) -> Scalar + Send + Sync>;

/// The computation of an operation on one element of a type, not yet rounded.
pub(crate) fn unary(kind: OpKind, element: ElementType) -> Option<Unary> {
    let real = |f: fn(f64) -> f64| -> Unary { Box::new(move |x| Scalar::Float(f(x.to_f64()))) };
    let test = |f: fn(f64) -> bool| -> Unary { Box::new(move |x| Scalar::Bool(f(x.to_f64()))) };
    Some(match kind {
        OpKind::Abs => Box::new(|x| match x {
            Scalar::Complex(re, im) => Scalar::Float(complex::abs((re, im))),
            Scalar::Float(x) => Scalar::Float(x.abs()),
            other => Scalar::Int(other.to_i128().abs()),
        }),
        OpKind::Negate => Box::new(|x| match x {
            Scalar::Complex(re, im) => Scalar::Complex(-re, -im),
            Scalar::Float(x) => Scalar::Float(-x),
            other => Scalar::Int(-other.to_i128()),
        }),
        OpKind::Sign => Box::new(|x| match x {
            Scalar::Complex(re, im) => pair(complex::sign((re, im))),
            Scalar::Float(x) => Scalar::Float(if x == 0.0 || x.is_nan() { x } else { x.signum() }),
            other => Scalar::Int(other.to_i128().signum()),
        }),
        OpKind::Not => Box::new(|x| match x {
            Scalar::Bool(x) => Scalar::Bool(!x),
            other => Scalar::Int(!other.to_i128()),
        }),
        OpKind::Popcnt => bits_of(element, |bits, _| bits.count_ones())?,
        OpKind::CountLeadingZeros => bits_of(element, |bits, width| bits.leading_zeros() - (64 - width))?,
        OpKind::Ceil => real(f64::ceil),
        OpKind::Floor => real(f64::floor),
        OpKind::RoundNearestAfz => real(f64::round),
        OpKind::RoundNearestEven => real(f64::round_ties_even),
        OpKind::IsFinite => test(f64::is_finite),
        OpKind::ChloIsInf => test(f64::is_infinite),
        OpKind::ChloIsPosInf => test(|x| x == f64::INFINITY),
        OpKind::ChloIsNegInf => test(|x| x == f64::NEG_INFINITY),
        OpKind::Real => Box::new(|x| Scalar::Float(x.to_complex().0)),
        OpKind::Imag => Box::new(|x| Scalar::Float(x.to_complex().1)),
        OpKind::ChloConj => Box::new(|x| match x {
            Scalar::Complex(re, im) => Scalar::Complex(re, -im),
            other => other,
        }),
        OpKind::ChloSquare => {
            let multiply = binary(OpKind::Multiply, element)?;
            Box::new(move |x| match x {
                Scalar::Complex(re, im) => pair(complex::square((re, im))),
                x => multiply(x, x),
            })
        }
        _ => return functions::unary(kind, element),
    })
}

/// A count of bits of an integer.
fn bits_of(element: ElementType, count: fn(u64, u32) -> u32) -> Option<Unary> {
    let ElementType::Int(int) = element else { return None };
    let mask = u64::MAX >> (64 - int.bits());
    Some(Box::new(move |x| Scalar::Int(i128::from(count(x.to_i128() as u64 & mask, int.bits())))))
}

fn pair((re, im): complex::Complex) -> Scalar {
    Scalar::Complex(re, im)
}

/// The computation of an operation on two elements of a type, not yet rounded.
pub(crate) fn binary(kind: OpKind, element: ElementType) -> Option<Binary> {
    Some(match kind {
        OpKind::Add | OpKind::ChloBroadcastAdd => {
            numbers(|a, b| a + b, |a, b| a + b, |a, b| (a.0 + b.0, a.1 + b.1), |a, b| a | b)
        }
        OpKind::Subtract | OpKind::ChloBroadcastSubtract => {
            numbers(|a, b| a - b, |a, b| a - b, |a, b| (a.0 - b.0, a.1 - b.1), |a, b| a ^ b)
        }
        OpKind::Multiply | OpKind::ChloBroadcastMultiply => multiply(element),
        OpKind::Divide | OpKind::ChloBroadcastDivide => {
            let int = int_of(element);
            numbers(move |a, b| divide_ints(int, a, b), |a, b| a / b, complex::div, |a, b| a & b)
        }
        OpKind::Remainder | OpKind::ChloBroadcastRemainder => {
            numbers(|a, b| if b == 0 { a } else { a % b }, real::rem, |_, _| (f64::NAN, f64::NAN), |a, _| a)
        }
        OpKind::Power | OpKind::ChloBroadcastPower => {
            let int = int_of(element);
            numbers(move |a, b| power_of_ints(int, a, b), real::pow, complex::pow, |a, b| a | !b)
        }
        OpKind::Maximum | OpKind::ChloBroadcastMaximum => Box::new(maximum),
        OpKind::Minimum | OpKind::ChloBroadcastMinimum => Box::new(minimum),
        OpKind::And | OpKind::ChloBroadcastAnd => logical(|a, b| a & b, |a, b| a & b),
        OpKind::Or | OpKind::ChloBroadcastOr => logical(|a, b| a | b, |a, b| a | b),
        OpKind::Xor | OpKind::ChloBroadcastXor => logical(|a, b| a ^ b, |a, b| a ^ b),
        OpKind::ShiftLeft | OpKind::ChloBroadcastShiftLeft => {
            shift(element, |bits, by, _| bits << by, |_| 0)?
        }
        OpKind::ShiftRightLogical | OpKind::ChloBroadcastShiftRightLogical => {
            shift(element, |bits, by, mask| (bits & mask) >> by, |_| 0)?
        }
        OpKind::ShiftRightArithmetic | OpKind::ChloBroadcastShiftRightArithmetic => {
            // The sign is that of the top bit, for unsigned types too.
            shift(element, |bits, by, mask| extend(bits, mask) >> by, |extended| extended >> 127)?
        }
        OpKind::ChloMulhi => {
            let bits = int_of(element)?.bits();
            Box::new(move |a, b| Scalar::Int(high_half(a.to_i128(), b.to_i128(), bits)))
        }
        OpKind::Complex | OpKind::ChloBroadcastComplex => {
            Box::new(|a, b| Scalar::Complex(a.to_f64(), b.to_f64()))
        }
        _ => return functions::binary(kind, element),
    })
}

fn int_of(element: ElementType) -> Option<IntType> {
    match element {
        ElementType::Int(int) => Some(int),
        _ => None,
    }
}

/// One computation per kind of number.
fn numbers(
    int: impl Fn(i128, i128) -> i128 + Send + Sync + 'static,
    float: fn(f64, f64) -> f64,
    complex: impl Fn(complex::Complex, complex::Complex) -> complex::Complex + Send + Sync + 'static,
    truth: fn(bool, bool) -> bool,
) -> Binary {
    Box::new(move |a, b| match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => Scalar::Float(float(a, b)),
        (Scalar::Complex(..), _) | (_, Scalar::Complex(..)) => pair(complex(a.to_complex(), b.to_complex())),
        (Scalar::Bool(a), Scalar::Bool(b)) => Scalar::Bool(truth(a, b)),
        (a, b) => Scalar::Int(int(a.to_i128(), b.to_i128())),
    })
}

fn multiply(element: ElementType) -> Binary {
    let format = element.float_part().unwrap_or(FloatType::F64).format();
    numbers(
        i128::wrapping_mul,
        |a, b| a * b,
        move |a, b| complex::mul(a, b, |x| format.round(x)),
        |a, b| a & b,
    )
}

fn logical(int: fn(i128, i128) -> i128, truth: fn(bool, bool) -> bool) -> Binary {
    Box::new(move |a, b| match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Scalar::Bool(truth(a, b)),
        (a, b) => Scalar::Int(int(a.to_i128(), b.to_i128())),
    })
}

/// The bits of a product above the lowest `bits`.
fn high_half(a: i128, b: i128, bits: u32) -> i128 {
    // Products of two unsigned numbers may need the 128th bit.
    if a >= 0 && b >= 0 { ((a as u128 * b as u128) >> bits) as i128 } else { (a * b) >> bits }
}

/// A quotient cut towards zero; by zero, all bits are set.
fn divide_ints(int: Option<IntType>, a: i128, b: i128) -> i128 {
    match b {
        0 => int.map_or(-1, |int| int.wrap(-1)),
        _ => a / b,
    }
}

/// A power that wraps around; with a negative exponent the truncated reciprocal.
fn power_of_ints(int: Option<IntType>, base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let wrap = |x: i128| int.map_or(x, |int| int.wrap(x));
    let (mut result, mut square, mut left) = (1i128, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = wrap(result.wrapping_mul(square));
        }
        square = wrap(square.wrapping_mul(square));
        left >>= 1;
    }
    result
}

/// A shift of an integer's bits; `beyond` says what a distance of the width or more gives.
fn shift(
    element: ElementType,
    within: fn(i128, u32, i128) -> i128,
    beyond: fn(i128) -> i128,
) -> Option<Binary> {
    let int = int_of(element)?;
    let (width, mask) = (int.bits(), (1i128 << int.bits()) - 1);
    Some(Box::new(move |a, b| {
        // A negative distance is a huge one.
        let distance = b.to_i128() & mask;
        Scalar::Int(match u32::try_from(distance) {
            Ok(distance) if distance < width => within(a.to_i128(), distance, mask),
            _ => beyond(extend(a.to_i128(), mask)),
        })
    }))
}

/// The bits under `mask` as a signed number.
fn extend(bits: i128, mask: i128) -> i128 {
    let unused = mask.leading_zeros();
    (bits & mask) << unused >> unused
}

/// The larger of two; NaN wins, and zeros are ordered by sign.
pub(crate) fn maximum(a: Scalar, b: Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Float(x), Scalar::Float(y)) if x == 0.0 && y == 0.0 => {
            if x.is_sign_positive() {
                a
            } else {
                b
            }
        }
        _ => extreme(a, b, std::cmp::Ordering::Greater),
    }
}

/// The smaller of two; NaN wins, and zeros are ordered by sign.
pub(crate) fn minimum(a: Scalar, b: Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Float(x), Scalar::Float(y)) if x == 0.0 && y == 0.0 => {
            if x.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => extreme(a, b, std::cmp::Ordering::Less),
    }
}

fn extreme(a: Scalar, b: Scalar, wanted: std::cmp::Ordering) -> Scalar {
    match partial_order(a, b) {
        _ if a.is_nan() => a,
        _ if b.is_nan() => b,
        Some(order) if order == wanted => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(kind: OpKind, element: ElementType, a: i128, b: i128) -> Scalar {
        binary(kind, element).expect("a binary operation")(Scalar::Int(a), Scalar::Int(b)).rounded_to(element)
    }

    #[test]
    fn integers_wrap_and_divide_towards_zero() {
        let i8 = ElementType::I8;
        assert_eq!(int(OpKind::Add, i8, 127, 1), Scalar::Int(-128));
        assert_eq!(int(OpKind::Divide, i8, -7, 2), Scalar::Int(-3));
        assert_eq!(int(OpKind::Divide, i8, -128, -1), Scalar::Int(-128));
        assert_eq!(int(OpKind::Divide, ElementType::U8, 5, 0), Scalar::Int(255));
        assert_eq!(int(OpKind::Remainder, i8, -7, 2), Scalar::Int(-1));
        assert_eq!(int(OpKind::Power, i8, 3, 5), Scalar::Int(-13));
        assert_eq!(int(OpKind::Power, i8, -1, -3), Scalar::Int(-1));
        assert_eq!(int(OpKind::ChloMulhi, ElementType::I32, 1 << 30, 8), Scalar::Int(2));
    }

    #[test]
    fn shifts_beyond_the_width_are_defined() {
        let i8 = ElementType::I8;
        assert_eq!(int(OpKind::ShiftLeft, i8, 1, 8), Scalar::Int(0));
        assert_eq!(int(OpKind::ShiftRightLogical, i8, -1, 4), Scalar::Int(15));
        assert_eq!(int(OpKind::ShiftRightArithmetic, i8, -16, 2), Scalar::Int(-4));
        assert_eq!(int(OpKind::ShiftRightArithmetic, i8, -16, 100), Scalar::Int(-1));
        assert_eq!(int(OpKind::ShiftRightArithmetic, ElementType::U8, 0x80, 1), Scalar::Int(0xc0));
        assert_eq!(int(OpKind::ShiftRightLogical, i8, 64, -1), Scalar::Int(0));
    }

    #[test]
    fn extremes_prefer_nan_and_order_zeros() {
        let float = Scalar::Float;
        assert!(maximum(float(1.0), float(f64::NAN)).is_nan());
        assert!(minimum(float(f64::NAN), float(1.0)).is_nan());
        assert_eq!(maximum(float(-0.0), float(0.0)).to_f64().to_bits(), 0);
        assert_eq!(minimum(float(0.0), float(-0.0)).to_f64().to_bits(), 1 << 63);
        assert_eq!(maximum(Scalar::Bool(false), Scalar::Bool(true)), Scalar::Bool(true));
    }

    #[test]
    fn bits_are_those_of_the_type() {
        let count = |kind, x: i128| unary(kind, ElementType::I8).expect("a bit count")(Scalar::Int(x));
        assert_eq!(count(OpKind::Popcnt, -1), Scalar::Int(8));
        assert_eq!(count(OpKind::CountLeadingZeros, 1), Scalar::Int(7));
        assert_eq!(count(OpKind::CountLeadingZeros, 0), Scalar::Int(8));
    }
}
