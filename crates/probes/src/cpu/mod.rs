//! Arithmetic: peak rates of the widest instructions the processor has, and the engine's GEMM.
//!
//! [`peaks`] lists the register-only loops that this processor can run, [`gemms`] the element types that the engine
//! multiplies natively. Both are found at run time; what is listed can be run.

mod bf16;
mod gemm;
mod peak;
mod register;

use std::fmt;

pub use gemm::{Gemm, Product, ProductError, Shape, gemms};
pub use peak::{KnownPeak, PeakKernel, known_peaks, peaks};

/// An element type that a rate is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 64-bit floating point.
    F64,
    /// 32-bit floating point.
    F32,
    /// 16-bit "brain" floating point, summed in 32-bit floating point.
    Bf16,
    /// 8-bit integers, summed in 32-bit integers.
    Int8,
}

impl Dtype {
    /// All of them, widest first.
    pub const ALL: [Self; 4] = [Self::F64, Self::F32, Self::Bf16, Self::Int8];

    /// The name used in parameters and tags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// Bytes of an element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::Bf16 => 2,
            Self::Int8 => 1,
        }
    }

    /// Whether its operations are floating point ones.
    #[must_use]
    pub fn is_float(self) -> bool {
        self != Self::Int8
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
