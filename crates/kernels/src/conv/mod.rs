//! Convolutions as matrix products: rows are output pixels, columns are output channels, and the rows of the left operand
//! are read where the input lies, tap by tap.
//!
//! [`Convolution`] is the entry. Where each tap of each output pixel lies is tabled once, dimension by dimension, in
//! `geometry`: strides, padding, dilations of window and input are all in that table. `taps` turns it into addresses; a
//! tap outside the input has the address of a row of zeros. Inputs of few channels are first copied with their padding
//! (`padded`), so that all taps along the last dimension are one run.
//! In bf16 tiles are loaded from the input as it lies (`even`), or
//! from the taps of few channels side by side (`columns`).
//! Windows of three by three over many channels have fewer products than taps (`winograd`).

// Kernels read and write through the addresses that their callers vouch for.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod columns;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod even;
mod geometry;
mod padded;
mod run;
mod taps;
#[cfg(test)]
mod tests;
mod weights;
mod winograd;

pub use error::ConvError;
pub use geometry::{Dimension, Geometry};
pub use run::{Convolution, Input};
pub use weights::{PackedWeights, Weights};
