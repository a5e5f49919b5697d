//! The element types of matrices, and the precisions their updates are computed in.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Sub};

use warpforge_kernels::gemm;
use warpforge_tensor::ElementType;

/// An element type of matrices: f64 or f32.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// The type by the engine's name.
    const ELEMENT: ElementType;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// The nearest value.
    fn from_f64(value: f64) -> Self;
    /// The same value.
    fn to_f64(self) -> f64;
    /// The magnitude.
    fn abs(self) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

mod sealed {
    /// Matrices are given to the engine by their addresses, so the list of types is closed.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! real {
    ($type:ty, $element:ident) => {
        impl Real for $type {
            const ELEMENT: ElementType = ElementType::$element;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

real!(f32, F32);
real!(f64, F64);

/// What the GEMMs of a factorization multiply. Sums have the matrix's element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f64, for matrices of f64.
    F64,
    /// f32, for matrices of f32.
    F32,
    /// Operands rounded to bf16, sums in f32, for matrices of f32.
    Bf16,
}

impl Precision {
    /// The name used in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    pub(crate) fn gemm(self) -> gemm::Gemm {
        gemm::Gemm::new(match self {
            Self::F64 => gemm::ComputeType::F64,
            Self::F32 => gemm::ComputeType::F32,
            Self::Bf16 => gemm::ComputeType::Bf16,
        })
    }

    /// Whether matrices of this element type can be factored with it.
    pub(crate) fn fits(self, element: ElementType) -> bool {
        (self == Self::F64) == (element == ElementType::F64)
    }
}
