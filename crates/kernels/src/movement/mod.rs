//! Moving elements without computing on them: copies between layouts, joining, padding, gathering.
//!
//! Every operation is planned once from sizes and strides (`new`, which refuses what does not fit) and then run on as
//! many buffers as wanted. Elements are known by their size alone. Strides are counted in elements.

// Buffers come as pointers, because views of one buffer interleave and because the threads of a pool share them.
#![allow(unsafe_code)]

mod batch;
mod concat;
mod copy;
mod error;
mod gather;
mod nest;
mod pad;
mod pointer;
mod strided;
#[cfg(test)]
mod tests;
mod tile;
mod vectors;

pub use concat::Concat;
pub use copy::{Copy, Layout, row_major};
pub use error::LayoutError;
pub(crate) use error::check_rank;
pub use gather::{Gather, GatherSpec};
pub use pad::{Edge, Pad};
pub(crate) use pointer::Shared;
pub use vectors::Indices;
