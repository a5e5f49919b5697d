//! Clusters to kernel source: one emitter, two dialects, optional instrumentation.
//!
//! [`emit()`] takes a cluster of the fusion analysis and returns kernels: C++ source, launch configuration and
//! arguments. The source uses only what the [`prelude`] of a dialect declares, so CUDA and HIP differ in that file
//! alone. Shapes, strides and offsets are literals; equal clusters have equal sources and names and are compiled
//! once. Compilation and launch belong to the backend.

#![forbid(unsafe_code)]

mod attention;
mod builder;
mod emit;
mod gemm;
mod group;
mod index;
mod kernel;
mod listing;
mod loops;
mod options;
mod packed_codes;
mod peak;
pub mod prelude;
pub mod salt;
mod steps;
mod text;
mod types;
mod unfused;

pub use emit::{emit, emit_in_place};
pub use kernel::{Argument, Emitted, Kernel, TensorMap, Unsupported, unit};
pub use listing::listing;
pub use options::{ComputePrecision, Dialect, Effort, Options};
pub use packed_codes::{CODE_ZERO, CODES_OF_WORD, grouped_codes, packed_codes, with_packed_codes};
pub use peak::{Units, peak};
pub use salt::Salt;
