//! What the operations of a program mean for Rust's own types: the same as `scalar` says for all.

use std::cmp::Ordering;

use half::{bf16, f16};
use warpforge_tensor::Native;

use crate::math::real;

/// A number of a type that Rust or a library has.
pub(crate) trait Number: Native + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    /// Of integers, cut towards zero; by zero, all bits are set.
    fn divide(self, other: Self) -> Self;
    /// With the sign of the dividend; of integers by zero, the dividend.
    fn remainder(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    /// The larger; NaN wins, and zeros are ordered by sign.
    fn larger(self, other: Self) -> Self;
    /// The smaller; NaN wins, and zeros are ordered by sign.
    fn smaller(self, other: Self) -> Self;
    fn negate(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    /// The order of IEEE 754's totalOrder.
    fn total_order(&self, other: &Self) -> Ordering;
}

/// A floating-point number.
pub(crate) trait Real: Number {
    fn to_f64(self) -> f64;
    /// Rounded to nearest, ties to even.
    fn from_f64(value: f64) -> Self;
}

/// An integer.
pub(crate) trait Integer: Number {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right_logical(self, by: Self) -> Self;
    fn shift_right_arithmetic(self, by: Self) -> Self;
}

macro_rules! integer {
    ($($own:ident $signed:ident $unsigned:ident $bits:literal $abs:expr, $sign:expr;)*) => {$(
        impl Number for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn divide(self, other: Self) -> Self { if other == 0 { !0 } else { self.wrapping_div(other) } }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self { if other == 0 { self } else { self.wrapping_rem(other) } }
            fn power(self, other: Self) -> Self {
                #[allow(unused_comparisons)] // Half of the types have no negative numbers.
                if other < 0 {
                    let even = other & 1 == 0;
                    return if self == 1 || (self == !0 && even) { 1 } else if self == !0 { !0 } else { 0 };
                }
                let (mut result, mut square, mut left) = (1 as $own, self, other);
                while left != 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    left >>= 1;
                }
                result
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn negate(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn abs(self) -> Self { let abs: fn($own) -> $own = $abs; abs(self) }
            #[inline(always)]
            fn sign(self) -> Self { let sign: fn($own) -> $own = $sign; sign(self) }
            #[inline(always)]
            fn total_order(&self, other: &Self) -> Ordering { self.cmp(other) }
        }

        impl Integer for $own {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn not(self) -> Self { !self }
            // A distance of the width or more moves all bits out; a negative one is huge.
            #[inline(always)]
            fn shift_left(self, by: Self) -> Self {
                if (by as $unsigned) < $bits { self << by } else { 0 }
            }
            #[inline(always)]
            fn shift_right_logical(self, by: Self) -> Self {
                if (by as $unsigned) < $bits { (self as $unsigned >> by) as $own } else { 0 }
            }
            #[inline(always)]
            fn shift_right_arithmetic(self, by: Self) -> Self {
                (self as $signed >> (by as $unsigned).min($bits - 1)) as $own
            }
        }
    )*};
}

integer! {
    i8 i8 u8 8 i8::wrapping_abs, i8::signum;
    i16 i16 u16 16 i16::wrapping_abs, i16::signum;
    i32 i32 u32 32 i32::wrapping_abs, i32::signum;
    i64 i64 u64 64 i64::wrapping_abs, i64::signum;
    u8 i8 u8 8 |x| x, |x| x.min(1);
    u16 i16 u16 16 |x| x, |x| x.min(1);
    u32 i32 u32 32 |x| x, |x| x.min(1);
    u64 i64 u64 64 |x| x, |x| x.min(1);
}

/// What is the same for all floats.
macro_rules! extremes {
    () => {
        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            // Equal numbers have equal bits, but for the zeros, of which the one without the sign is meant.
            let equal = Self::from_bits(self.to_bits() & other.to_bits());
            let beyond = if self > other { self } else { other };
            let ordered = if self == other { equal } else { beyond };
            if self != self { self } else { ordered }
        }

        #[inline(always)]
        fn smaller(self, other: Self) -> Self {
            let equal = Self::from_bits(self.to_bits() | other.to_bits());
            let beyond = if self < other { self } else { other };
            let ordered = if self == other { equal } else { beyond };
            if self != self { self } else { ordered }
        }

        #[inline(always)]
        fn total_order(&self, other: &Self) -> Ordering {
            self.total_cmp(other)
        }
    };
}

/// Floats that the processor computes with. Sums, products and quotients of binary32 are the same whether they are computed
/// in binary32 or in binary64 and rounded.
macro_rules! float {
    ($($own:ident)*) => {$(
        #[allow(clippy::eq_op)] // Only NaN differs from itself.
        impl Number for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn divide(self, other: Self) -> Self { self / other }
            fn remainder(self, other: Self) -> Self { real::rem(self as f64, other as f64) as $own }
            fn power(self, other: Self) -> Self { real::pow(self as f64, other as f64) as $own }
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { self.abs() }
            #[inline(always)]
            fn sign(self) -> Self { if self == 0.0 || self != self { self } else { self.signum() } }
            extremes!();
        }

        impl Real for $own {
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $own }
        }
    )*};
}

float!(f32 f64);

/// Narrow floats, computed in binary64 and rounded.
macro_rules! narrow {
    ($($own:ident)*) => {$(
        #[allow(clippy::eq_op)] // Only NaN differs from itself.
        impl Number for $own {
            fn add(self, other: Self) -> Self { Real::from_f64(self.to_f64() + other.to_f64()) }
            fn subtract(self, other: Self) -> Self { Real::from_f64(self.to_f64() - other.to_f64()) }
            fn multiply(self, other: Self) -> Self { Real::from_f64(self.to_f64() * other.to_f64()) }
            fn divide(self, other: Self) -> Self { Real::from_f64(self.to_f64() / other.to_f64()) }
            fn remainder(self, other: Self) -> Self { Real::from_f64(real::rem(self.to_f64(), other.to_f64())) }
            fn power(self, other: Self) -> Self { Real::from_f64(real::pow(self.to_f64(), other.to_f64())) }
            fn negate(self) -> Self { -self }
            fn abs(self) -> Self { Self::from_bits(self.to_bits() & 0x7fff) }
            fn sign(self) -> Self { Real::from_f64(self.to_f64().sign()) }
            extremes!();
        }

        impl Real for $own {
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self.to_f32()) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Self::from_f32(to_odd(value)) }
        }
    )*};
}

narrow!(f16 bf16);

/// The number in binary32, rounded to odd, so that rounding once more to a narrower type is right.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    if back == value || value.is_nan() || nearest.is_infinite() || bits & 1 == 1 {
        return nearest;
    }
    // The neighbour on the other side of the value is odd.
    f32::from_bits(if back.abs() < value.abs() { bits + 1 } else { bits - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_tensor::FloatFormat;

    #[test]
    fn narrow_floats_are_rounded_once() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200_000 {
            // Around the middle between two narrow numbers, where rounding twice goes wrong.
            let narrow = f16::from_bits(random.u16(..));
            let value = (narrow.to_f64() + f16::from_bits(narrow.to_bits() ^ 1).to_f64()) / 2.0;
            for value in [value, f64::from_bits(value.to_bits() + 1), value * (1.0 + random.f64() * 1e-9)] {
                let half = <f16 as Real>::from_f64(value);
                assert!(
                    half.is_nan() || u64::from(half.to_bits()) == FloatFormat::F16.encode(value),
                    "{value:e}"
                );
                let brain = <bf16 as Real>::from_f64(value);
                assert!(
                    brain.is_nan() || u64::from(brain.to_bits()) == FloatFormat::BF16.encode(value),
                    "{value:e}"
                );
            }
        }
        assert_eq!(<f16 as Real>::from_f64(-1e-300).to_bits(), 0x8000);
        assert_eq!(<bf16 as Real>::from_f64(1e300), bf16::INFINITY);
    }
}
