//! Reductions and orders of each element type.

use std::cmp::Ordering;

use half::{bf16, f16};

/// An element type with reductions and orders.
pub(crate) trait ReduceElement: Copy + PartialOrd + Send + Sync + 'static {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    /// `None` for floats.
    fn and(self, other: Self) -> Option<Self>;
    /// `None` for floats.
    fn or(self, other: Self) -> Option<Self>;
    fn is_nan(self) -> bool;
    /// The order of IEEE 754's totalOrder.
    fn total_order(self, other: Self) -> Ordering;
    /// An unsigned key in the same total order.
    fn total_key(self) -> u64;
    /// The same with equal zeros; undefined for NaN.
    fn partial_key(self) -> u64;
}

macro_rules! integers {
    ($($own:ident by $least:expr;)*) => {$(
        impl ReduceElement for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn and(self, other: Self) -> Option<Self> { Some(self & other) }
            #[inline(always)]
            fn or(self, other: Self) -> Option<Self> { Some(self | other) }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn total_order(self, other: Self) -> Ordering { self.cmp(&other) }
            #[inline(always)]
            fn total_key(self) -> u64 { (self as u64).wrapping_add($least) }
            #[inline(always)]
            fn partial_key(self) -> u64 { self.total_key() }
        }
    )*};
}

/// Negative values come before the others.
const SIGNED: u64 = 1 << 63;

integers! {
    i8 by SIGNED;
    i16 by SIGNED;
    i32 by SIGNED;
    i64 by SIGNED;
    u8 by 0;
    u16 by 0;
    u32 by 0;
    u64 by 0;
}

/// What is the same for all floats.
macro_rules! float_orders {
    () => {
        $crate::extremes::extremes!();
        #[inline(always)]
        fn and(self, _: Self) -> Option<Self> {
            None
        }
        #[inline(always)]
        fn or(self, _: Self) -> Option<Self> {
            None
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            Self::is_nan(self)
        }
        #[inline(always)]
        fn total_order(self, other: Self) -> Ordering {
            self.total_cmp(&other)
        }
        #[inline(always)]
        fn total_key(self) -> u64 {
            // Negative values are in the reverse order of their bits, and before all others.
            let (bits, sign) = (u64::from(self.to_bits()), 1u64 << (8 * size_of::<Self>() - 1));
            if bits & sign == 0 { bits | SIGNED } else { SIGNED - (bits & !sign) - 1 }
        }
        #[inline(always)]
        fn partial_key(self) -> u64 {
            if self == Self::from_bits(0) { Self::from_bits(0).total_key() } else { self.total_key() }
        }
    };
}

macro_rules! floats {
    ($($own:ident)*) => {$(
        impl ReduceElement for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self * other }
            float_orders!();
        }
    )*};
}

floats!(f32 f64);

// f32 is wide enough that rounding a sum or product to f32 and then to 16 bits equals rounding once.
macro_rules! narrow {
    ($($own:ident)*) => {$(
        impl ReduceElement for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { Self::from_f32(self.to_f32() + other.to_f32()) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { Self::from_f32(self.to_f32() * other.to_f32()) }
            float_orders!();
        }
    )*};
}

narrow!(f16 bf16);

/// Runs an expression with `$T` as the Rust type of an element type; booleans are bytes.
macro_rules! for_element {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {{
        use warpforge_tensor::{ElementType, FloatType, IntType};
        $crate::dispatch::with_type!($element, $T => $body; {
            ElementType::Float(FloatType::F32) => f32,
            ElementType::Float(FloatType::F64) => f64,
            ElementType::Float(FloatType::F16) => half::f16,
            ElementType::Float(FloatType::Bf16) => half::bf16,
            ElementType::Int(IntType::I8) => i8,
            ElementType::Int(IntType::I16) => i16,
            ElementType::Int(IntType::I32) => i32,
            ElementType::Int(IntType::I64) | ElementType::Index => i64,
            ElementType::Int(IntType::U8) | ElementType::Bool => u8,
            ElementType::Int(IntType::U16) => u16,
            ElementType::Int(IntType::U32) => u32,
            ElementType::Int(IntType::U64) => u64,
        } else _ => $other)
    }};
}

pub(crate) use for_element;
