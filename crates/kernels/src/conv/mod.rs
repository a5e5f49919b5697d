//! Convolutions as implicit GEMMs: rows are output pixels, columns are output channels, and rows of the left-hand
//! operand are read from the input tap by tap.
//!
//! [`Convolution`] is the entry point. `geometry` tabulates once, dimension by dimension, which input element each tap
//! of each output pixel reads: strides, padding and dilations are all in that table. `tap_rows` turns it into pointers;
//! a tap in the padding points to a row of zeros. Inputs of few channels are first copied with their padding
//! (`padded_copy`), so that all taps along the last dimension are one run. bf16 convolutions load AMX tiles directly
//! from the input (`amx_direct`), or, for few channels, from an im2col copy (`im2col`). 3x3 windows over many channels
//! use Winograd transforms (`winograd`). The groups of a grouped convolution are computed together (`grouped`). Gradients of weights, whose windows are as large as images, sum along lines of pixels
//! (`large_window`).

// Kernels read and write through pointers that their callers guarantee.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx_direct;
mod convolution;
mod error;
mod geometry;
mod grouped;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod im2col;
mod input;
mod large_window;
mod packed_weights;
mod padded_copy;
mod tap_rows;
#[cfg(test)]
mod tests;
mod weights;
mod winograd;

pub use convolution::Convolution;
pub use error::ConvError;
pub use geometry::{Dimension, Geometry};
pub use input::Input;
pub use packed_weights::PackedWeights;
pub use weights::Weights;
