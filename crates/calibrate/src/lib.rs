//! A machine's measured limits, what fusion is worth on it, and predictions made of both.
//!
//! [`calibrate`] measures and writes a [`Profile`]: peaks, bandwidths, overheads, operations, and each fusion pattern beside
//! the same kernels unfused. [`CostModel`] predicts kernels and whole models from a profile, [`Checker`] compares its
//! predictions with runs, [`roofline`] draws the profile.
//!
//! The profile is data: everything that uses it takes it as an argument, so that the same profile gives the same answer.

#![forbid(unsafe_code)]

mod cases;
mod check;
mod error;
mod machine;
mod measure;
mod model;
mod pace;
pub mod profile;
mod record;
pub mod roofline;
mod verdict;

pub use cases::{Family, Scale};
pub use check::{Checker, KernelCheck, ModelCheck};
pub use error::{Error, Result};
pub use machine::machine;
pub use measure::{Observer, Settings, Step, calibrate, default_path};
pub use model::{Bound, CostModel, Prediction};
pub use profile::{Profile, ProfileError};
pub use record::suite_run;
pub use verdict::Verdict;
