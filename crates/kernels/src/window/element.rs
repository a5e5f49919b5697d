//! What folds mean for each type of element.

use half::{bf16, f16};

/// An element that can be folded.
pub(crate) trait Element: Copy + PartialOrd + Send + Sync + 'static {
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
    /// Nothing for floats.
    fn and(self, other: Self) -> Option<Self>;
    /// Nothing for floats.
    fn or(self, other: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($own:ident)*) => {$(
        impl Element for $own {
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
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Extremes of floats: equal numbers have equal bits, but for the zeros, whose signs decide.
macro_rules! extremes {
    () => {
        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            let equal = Self::from_bits(self.to_bits() & other.to_bits());
            let unequal = if self > other { self } else { other };
            let ordered = if self == other { equal } else { unequal };
            if self.is_nan() { self } else { ordered }
        }
        #[inline(always)]
        fn smaller(self, other: Self) -> Self {
            let equal = Self::from_bits(self.to_bits() | other.to_bits());
            let unequal = if self < other { self } else { other };
            let ordered = if self == other { equal } else { unequal };
            if self.is_nan() { self } else { ordered }
        }
        #[inline(always)]
        fn and(self, _: Self) -> Option<Self> {
            None
        }
        #[inline(always)]
        fn or(self, _: Self) -> Option<Self> {
            None
        }
    };
}

macro_rules! floats {
    ($($own:ident)*) => {$(
        impl Element for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { self * other }
            extremes!();
        }
    )*};
}

floats!(f32 f64);

// Binary32 is wide enough that a sum or product rounded to it and then to half of its bits is rounded as if at once.
macro_rules! narrow {
    ($($own:ident)*) => {$(
        impl Element for $own {
            #[inline(always)]
            fn add(self, other: Self) -> Self { Self::from_f32(self.to_f32() + other.to_f32()) }
            #[inline(always)]
            fn multiply(self, other: Self) -> Self { Self::from_f32(self.to_f32() * other.to_f32()) }
            extremes!();
        }
    )*};
}

narrow!(f16 bf16);

/// Runs an expression with `$T` as the Rust type of an element type; truth values are bytes.
macro_rules! for_element {
    ($element:expr, $T:ident => $body:expr, else $other:expr) => {{
        use warpforge_tensor::{ElementType, FloatType, IntType};
        match $element {
            ElementType::Float(FloatType::F32) => {
                type $T = f32;
                $body
            }
            ElementType::Float(FloatType::F64) => {
                type $T = f64;
                $body
            }
            ElementType::Float(FloatType::F16) => {
                type $T = half::f16;
                $body
            }
            ElementType::Float(FloatType::Bf16) => {
                type $T = half::bf16;
                $body
            }
            ElementType::Int(IntType::I8) => {
                type $T = i8;
                $body
            }
            ElementType::Int(IntType::I16) => {
                type $T = i16;
                $body
            }
            ElementType::Int(IntType::I32) => {
                type $T = i32;
                $body
            }
            ElementType::Int(IntType::I64) | ElementType::Index => {
                type $T = i64;
                $body
            }
            ElementType::Int(IntType::U8) | ElementType::Bool => {
                type $T = u8;
                $body
            }
            ElementType::Int(IntType::U16) => {
                type $T = u16;
                $body
            }
            ElementType::Int(IntType::U32) => {
                type $T = u32;
                $body
            }
            ElementType::Int(IntType::U64) => {
                type $T = u64;
                $body
            }
            _ => $other,
        }
    }};
}

pub(crate) use for_element;
