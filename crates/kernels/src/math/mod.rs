//! Elementary functions: of vectors of binary32 numbers, to two units in the last place, and of single binary64 numbers.
//!
//! A function is written once, for whatever [`Lanes`] it is given, and compiled into the loops for each instruction set.

// Vector instructions are unsafe to call where the processor might not have them.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod circular;
mod error;
mod exponential;
mod gelu;
mod lanes;
mod lanes_by_parts;
mod logarithm;
mod portable;
pub(crate) mod scalar;

pub(crate) use circular::{cos, sin};
pub(crate) use error::erf;
pub(crate) use exponential::{exp, expm1, logistic, tanh};
pub(crate) use gelu::gelu;
pub(crate) use lanes::{Lanes, Table};
pub(crate) use logarithm::{log, log1p};
#[cfg(target_arch = "x86_64")]
pub(crate) use {avx2::Avx2, avx512::Avx512};
