//! Clusters to kernel source: one emitter, two dialects, optional instrumentation.
//!
//! [`emit()`] takes a cluster of the fusion analysis and gives kernels: C++ text, how many threads run it, and which
//! values it takes. The text uses only what the [`prelude`] of a dialect declares, so that CUDA and HIP differ in that
//! one file each. Shapes, strides and offsets are numbers in the text; two clusters that do the same have the same text
//! and the same name, and are compiled once. A driver is not known here: the crate that has one compiles and launches.

#![forbid(unsafe_code)]

mod attention;
mod draft;
mod emit;
mod index;
mod kernel;
mod listing;
mod loops;
mod options;
mod part;
mod peak;
pub mod prelude;
mod product;
pub mod salt;
mod single;
mod steps;
mod text;
mod types;

pub use emit::emit;
pub use kernel::{Argument, Emitted, Kernel, Map, Unsupported, unit};
pub use listing::listing;
pub use options::{Dialect, Effort, Options, Products};
pub use peak::{Units, peak};
pub use salt::Salt;
