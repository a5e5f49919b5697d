//! The semantics of operations on the scalar types of Rust.

use std::cmp::Ordering;

use crate::math::scalar;

/// Arithmetic of a scalar type.
pub(super) trait ScalarOps: Copy + PartialOrd + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// The least value.
    const LEAST: Self;
    /// The largest value.
    const LARGEST: Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    fn negate(self) -> Self;
    fn magnitude(self) -> Self;
    fn sign(self) -> Self;
    fn total_order(&self, other: &Self) -> Ordering;
}

/// Bitwise operations of an integer type.
pub(super) trait IntegerOps: ScalarOps {
    const ALL_BITS: Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right_logical(self, by: Self) -> Self;
    fn shift_right_arithmetic(self, by: Self) -> Self;
    fn ones(self) -> Self;
    fn leading_zeros(self) -> Self;
}

macro_rules! integers {
    ($($own:ident $signed:ident $unsigned:ident $abs:expr, $sign:expr;)*) => {$(
        impl ScalarOps for $own {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LEAST: Self = $own::MIN;
            const LARGEST: Self = $own::MAX;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn divide(self, other: Self) -> Self { if other == 0 { !0 } else { self.wrapping_div(other) } }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            fn power(self, other: Self) -> Self {
                #[allow(unused_comparisons)] // Half of the types have no negative numbers.
                if other < 0 {
                    // One over a power is zero, unless the base is one or minus one.
                    return match self {
                        1 => 1,
                        base if base == !0 => if other & 1 == 0 { 1 } else { !0 },
                        _ => 0,
                    };
                }
                let (mut power, mut square, mut left) = (1 as $own, self, other);
                while left != 0 {
                    if left & 1 == 1 {
                        power = power.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    left >>= 1;
                }
                power
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn negate(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn magnitude(self) -> Self { $abs(self) }
            #[inline(always)]
            fn sign(self) -> Self { $sign(self) }
            #[inline(always)]
            fn total_order(&self, other: &Self) -> Ordering { self.cmp(other) }
        }

        impl IntegerOps for $own {
            const ALL_BITS: Self = !0;
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn not(self) -> Self { !self }
            // Distances from the width on move all bits out; negative ones count as huge.
            #[inline(always)]
            fn shift_left(self, by: Self) -> Self {
                let by = by as $unsigned;
                if by < $own::BITS as $unsigned { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right_logical(self, by: Self) -> Self {
                let by = by as $unsigned;
                let moved = (self as $unsigned).wrapping_shr(by as u32) as $own;
                if by < $own::BITS as $unsigned { moved } else { 0 }
            }
            #[inline(always)]
            fn shift_right_arithmetic(self, by: Self) -> Self {
                let by = (by as $unsigned).min($own::BITS as $unsigned - 1);
                (self as $signed).wrapping_shr(by as u32) as $own
            }
            #[inline(always)]
            fn ones(self) -> Self { self.count_ones() as $own }
            #[inline(always)]
            fn leading_zeros(self) -> Self { $own::leading_zeros(self) as $own }
        }
    )*};
}

integers! {
    i8 i8 u8 i8::wrapping_abs, i8::signum;
    i16 i16 u16 i16::wrapping_abs, i16::signum;
    i32 i32 u32 i32::wrapping_abs, i32::signum;
    i64 i64 u64 i64::wrapping_abs, i64::signum;
    u8 i8 u8 std::convert::identity, |x: u8| x.min(1);
    u16 i16 u16 std::convert::identity, |x: u16| x.min(1);
    u32 i32 u32 std::convert::identity, |x: u32| x.min(1);
    u64 i64 u64 std::convert::identity, |x: u64| x.min(1);
}

macro_rules! floats {
    ($($own:ident)*) => {$(
        impl ScalarOps for $own {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = $own::NEG_INFINITY;
            const LARGEST: Self = $own::INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn subtract(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn divide(self, other: Self) -> Self { self / other }
            fn remainder(self, other: Self) -> Self {
                scalar::remainder(f64::from(self), f64::from(other)) as $own
            }
            fn power(self, other: Self) -> Self { scalar::pow(f64::from(self), f64::from(other)) as $own }
            $crate::extremes::extremes!();
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn magnitude(self) -> Self { self.abs() }
            #[inline(always)]
            fn sign(self) -> Self {
                let one = (1.0 as $own).copysign(self);
                if self == 0.0 || self.is_nan() { self } else { one }
            }
            #[inline(always)]
            fn total_order(&self, other: &Self) -> Ordering { self.total_cmp(other) }
        }
    )*};
}

floats!(f32 f64);
