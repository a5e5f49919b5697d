//! Convolutions and attention by cuDNN operation graphs.

// Calls a foreign library.
#![allow(unsafe_code)]

mod graph;
mod library;
mod plan;

pub(crate) use graph::{CudnnGraph, Pointwise, TensorId};
pub(crate) use library::Cudnn;
#[cfg(test)]
pub(crate) use library::Functions;
pub(crate) use plan::{CudnnPlan, Storage};
