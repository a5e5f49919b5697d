//! GEMMs by the vendor's BLAS: cuBLASLt or hipBLASLt, which share an interface up to names and constants, and rocBLAS
//! where hipBLASLt is missing or refuses.

// Calls a foreign library.
#![allow(unsafe_code)]

pub(crate) mod constants;
mod descriptor;
mod library;
mod lt;
mod plan;
pub(crate) mod rocblas;

pub(crate) use descriptor::{
    Activation, ComputeType, Gemm, GemmBuffers, Matrix, OperandSide, RunGemm, ScaleMode, WORKSPACE,
};
pub(crate) use library::Blas;
pub(crate) use lt::BlasLt;
#[cfg(test)]
pub(crate) use lt::Functions;
pub(crate) use plan::GemmPlan;
