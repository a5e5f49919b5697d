//! Repeated, calibrated timing and the statistics that judge it.
//!
//! [`sample`] takes samples of a routine; [`stats`] summarises them and compares two sets. The two know nothing of
//! each other, nor of what is measured.

#![forbid(unsafe_code)]

mod sample;
pub mod stats;

pub use sample::{Ending, SampleConfig, Samples, sample};
