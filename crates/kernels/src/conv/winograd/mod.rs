//! Winograd convolution for 3x3 windows: fewer multiplications than taps.
//!
//! Input tiles and weights are transformed (`transform`, by a `scheme`), multiplied elementwise (one GEMM over the
//! channels per element of a tile), and transformed back. Weights are transformed once, in f64 (`weights`).
//! [`WinogradPlan`] decides whether a convolution gains and which scheme to use.

mod channel_vector;
mod plan;
mod run;
mod scheme;
#[cfg(test)]
mod tests;
mod transform;
mod weights;

pub(super) use plan::WinogradPlan;
pub(super) use weights::TransformedWeights;
