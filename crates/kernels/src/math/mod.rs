//! Elementary functions: of f32 vectors, to two units in the last place, and of f64 scalars.
//!
//! A function is written once, generic over [`Lanes`], and compiled into the loops for each instruction set.

// Vector intrinsics are unsafe where the CPU might lack them.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod erf;
mod exponential;
mod gelu;
mod lanes;
mod logarithm;
mod portable;
pub(crate) mod scalar;
mod scale;
mod trigonometric;

pub(crate) use erf::erf;
pub(crate) use exponential::{exp, expm1, logistic, tanh};
pub(crate) use gelu::gelu;
pub(crate) use lanes::{Lanes, PICKED_FROM, Pick, Table};
pub(crate) use logarithm::{log, log1p};
pub(crate) use trigonometric::{cos, sin};
#[cfg(target_arch = "x86_64")]
pub(crate) use {avx2::Avx2, avx512::Avx512};
