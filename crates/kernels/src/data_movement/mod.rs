//! Data movement: strided copies and transposes, concatenate, pad, gather, scatter, sort.
//!
//! Every operation is planned once from sizes and strides (`new`, which validates them) and then run on any number of
//! buffers. Where nothing is computed, elements are known by their size alone. Strides are counted in elements.

// Buffers are pointers, because views of one buffer interleave and the threads of a pool share them.
#![allow(unsafe_code)]

mod concat;
mod copy;
mod copy_batch;
mod dynamic_slice;
mod error;
mod gather;
mod indices;
mod loop_nest;
mod nontemporal;
mod pad;
mod scatter;
mod sort;
mod sort_keys;
mod strided;
mod strided_loop;
#[cfg(test)]
mod tests;
mod transpose;
mod whole_rows;

pub use concat::Concat;
pub use copy::{Layout, StridedCopy, row_major};
pub use dynamic_slice::DynamicSlice;
pub use error::LayoutError;
pub(crate) use error::check_rank;
pub use gather::{Gather, GatherSpec};
pub(crate) use indices::IndexReader;
pub use indices::Indices;
pub(crate) use loop_nest::NONTEMPORAL_BYTES;
pub(crate) use nontemporal::copy_nontemporal;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use nontemporal::store_fence;
pub use pad::{AxisPadding, Pad};
pub use scatter::{Scatter, ScatterSpec, Update};
pub use sort::{Sort, SortSpec};
pub use sort_keys::Comparison;
pub(crate) use strided::elements as copy_elements;
pub(crate) use strided_loop::StridedLoop;
pub(crate) use transpose::TransposeKernel;
