//! Judging one tensor by another.
//!
//! A [`Tolerance`] says how far apart two values may be, a [`NanPolicy`] what NaN equals; [`compare`] applies both to
//! every element and says where the largest errors are, and how the errors are spread.

mod histogram;
mod report;
mod scale;
mod tolerance;

pub use histogram::{DecadeHistogram, UlpHistogram};
pub use report::{Mismatch, Report, compare, compare_values};
pub use tolerance::{Criterion, NanPolicy, Tolerance, ulp_distance};
