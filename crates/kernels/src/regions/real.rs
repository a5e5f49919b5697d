//! The element types of regions.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, Sub};

/// A float that Rust computes with.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + DivAssign
{
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// The larger of two, and the smaller; the other one of a NaN.
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! real {
    ($($ty:ident)*) => {$(
        impl Real for $ty {
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $ty
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        }
    )*};
}

real!(f32 f64);
