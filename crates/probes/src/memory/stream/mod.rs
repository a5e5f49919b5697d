//! Streaming kernels: how fast memory of a given size is read and written.

mod arrays;
mod kernel;
mod read;
mod vector;

pub use arrays::Arrays;
pub use kernel::{FACTOR, InstructionSet, Kernel, Routine, Stores};
pub use read::Reader;
