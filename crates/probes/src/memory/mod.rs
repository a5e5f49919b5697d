//! Memory: streaming kernels and pointer chases over buffers of any size.
//!
//! [`levels`] says how much memory to use so that a given cache level, or none, holds it; [`stream`] measures how fast
//! it can be read and written, [`chase`] how long one load takes.

mod buffer;
pub mod chase;
pub mod levels;
pub mod stream;

pub use buffer::{Buffer, MemoryError, Pages};
