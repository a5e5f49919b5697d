//! Dense linear systems by cuSOLVER: LU in f64, and LU in low precision with iterative refinement.
//!
//! [`Cusolver`] is the library on a device; [`LuPlan`] and [`RefinedPlan`] hold the memory of one order. AMD's GPUs have
//! no plan: hipSOLVER has no solver with refinement.

// Calls a foreign library.
#![allow(unsafe_code)]

mod library;
mod lu;
mod refined;

pub(crate) use library::Cusolver;
#[cfg(test)]
pub(crate) use library::Functions;
pub(crate) use lu::LuPlan;
pub(crate) use refined::{LowPrecision, RefinedPlan};
