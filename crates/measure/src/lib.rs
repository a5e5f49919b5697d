//! Repeated, calibrated timing and the statistics that judge it.
//!
//! [`sample`] takes samples of a routine; [`stats`] summarises them and compares two sets. The two know nothing of
//! each other, nor of what is measured. [`timer`] knows what reading the clock costs, [`sink`] keeps the compiler
//! from removing work whose result nobody reads.

#![forbid(unsafe_code)]

mod sample;
mod sink;
pub mod stats;
pub mod timer;

pub use sample::{Ending, SampleConfig, Samples, sample, sample_with};
pub use sink::sink;
