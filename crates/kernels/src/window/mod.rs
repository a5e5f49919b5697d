//! Windows that move over arrays: pooling and any other folding of windows, depthwise convolution, and running folds.
//!
//! As in [`movement`](crate::movement), an operation is planned once and run on many buffers. Arrays are row-major.
//! Trailing dimensions that windows do not touch, such as the channels of an image, are the lanes that are folded at
//! once.

// Buffers come as pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

mod axis;
mod cumulative;
mod depthwise;
mod element;
mod lanes;
mod reduce;
mod taps;
#[cfg(test)]
mod tests;

pub use axis::WindowAxis;
pub use cumulative::Cumulative;
pub use depthwise::Depthwise;
pub(crate) use element::{Element, for_element};
pub(crate) use lanes::{FoldLanes, fold_lanes};
pub use reduce::ReduceWindow;
