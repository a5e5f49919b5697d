//! Repeated, calibrated timing and the statistics that judge it.
//!
//! [`sample()`] takes samples of a routine; [`stats`] summarises them and compares two sets. The two know nothing of
//! each other, nor of what is measured. [`timer`] knows what reading the clock costs, [`core_speed()`] how fast the
//! core runs, [`sink()`] keeps the compiler from removing work whose result nobody reads.

#![forbid(unsafe_code)]

mod core_speed;
mod sample;
mod sink;
pub mod stats;
pub mod timer;

pub use core_speed::core_speed;
pub use sample::{Ending, SampleConfig, Samples, Timing, sample, sample_with};
pub use sink::sink;
