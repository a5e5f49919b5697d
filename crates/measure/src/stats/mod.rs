//! Summaries of samples and comparisons of two sets of them.
//!
//! Nothing here panics on odd data: what cannot be computed, from no values or from values that are not finite, is
//! `None`.

mod bootstrap;
mod interval;
mod median_error;
mod outliers;
mod quantile;
mod ratio;
mod summary;

pub use bootstrap::{RESAMPLES, median_interval, rounds_interval};
pub use interval::{Interval, order_interval};
pub use median_error::median_standard_error;
pub use outliers::Outliers;
pub use quantile::{geometric_mean, mad, mean, median, quantile};
pub use ratio::{LogRatio, NoRatio};
pub use summary::{CONFIDENCE, LEAST_SAMPLES, Spread, Summary};

#[cfg(test)]
mod simulation;
