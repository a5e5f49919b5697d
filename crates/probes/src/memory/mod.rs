//! Memory: streaming kernels and pointer chases over mappings of any size.
//!
//! [`levels`] says how much memory to use so that a given cache level, or none, holds it; [`stream`] measures how fast
//! it can be read and written, [`chase`] how long one load takes.

pub mod chase;
pub mod levels;
mod mapping;
pub mod stream;

pub use mapping::{Mapping, MemoryError, Pages};
