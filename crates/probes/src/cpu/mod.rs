//! Arithmetic: peak rates of the widest instructions the processor has, and matrix products.
//!
//! [`peaks`] lists the register-only loops that this processor can run, [`gemms`] the matrix products. Which those
//! are is found at run time; what is listed can be run.

#[cfg(target_arch = "x86_64")]
mod amx;
mod bf16;
mod gemm;
mod peak;
mod register;

use std::fmt;

pub use gemm::{Gemm, Product, Shape, gemms};
pub use peak::{PeakKernel, peaks};

/// A type of number that a rate is measured for.
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
