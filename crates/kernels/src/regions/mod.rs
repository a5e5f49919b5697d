//! Operations on regions of images, for detectors of two stages: RoIAlign, its gradient, and non-maximum suppression.
//!
//! Sums have the order of torchvision's CPU kernels, and suppression keeps the same boxes. As elsewhere an operation is
//! planned once and run on many buffers.

// Buffers are pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

mod align;
mod error;
mod nms;
mod real;
mod samples;
mod spec;
#[cfg(test)]
mod tests;

pub use align::RoiAlign;
pub use error::RegionError;
pub use nms::Nms;
pub use spec::RoiAlignSpec;
