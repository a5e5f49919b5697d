//! Moving elements without computing on them: copies between layouts, joining, padding, gathering, scattering,
//! sorting.
//!
//! Every operation is planned once from sizes and strides (`new`, which refuses what does not fit) and then run on as
//! many buffers as wanted. Where nothing is computed, elements are known by their size alone. Strides are counted in elements.

// Buffers come as pointers, because views of one buffer interleave and because the threads of a pool share them.
#![allow(unsafe_code)]

mod batch;
mod concat;
mod copy;
mod dynamic;
mod error;
mod gather;
mod keys;
mod nest;
mod pad;
mod past;
mod pointer;
mod prefetch;
mod scatter;
mod sort;
mod strided;
#[cfg(test)]
mod tests;
mod tile;
mod vectors;

pub use concat::Concat;
pub use copy::{Copy, Layout, row_major};
pub use dynamic::DynamicSlice;
pub use error::LayoutError;
pub(crate) use error::check_rank;
pub use gather::{Gather, GatherSpec};
pub use keys::Comparison;
pub(crate) use nest::{Loop, PAST_CACHES};
pub use pad::{Edge, Pad};
pub(crate) use past::copy_past;
pub(crate) use pointer::Shared;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use prefetch::fence;
pub use scatter::{Scatter, ScatterSpec, Update};
pub use sort::{Sort, SortSpec};
pub(crate) use tile::Tile;
pub use vectors::Indices;
