//! Matrix products: packed right operands, left operands as they lie in memory, finished blocks handed on while they
//! are in cache.
//!
//! [`Gemm`] is the entry. The inner loops are in `kernel`, the arrangement of packed operands in `packed`, how a product
//! is cut into pieces in `plan`, the loops over pieces in `drive`. Each element of a result is one chain of additions in
//! the order of `k`, whatever the pieces and whoever computes them.

// Kernels read and write through the addresses that their callers vouch for.
#![allow(unsafe_code)]

mod batch;
mod convert;
pub(crate) mod drive;
pub(crate) mod kernel;
mod kind;
mod lhs;
pub(crate) mod memory;
mod operand;
pub(crate) mod pack;
mod packed;
mod pairs;
pub(crate) mod plan;
mod product;
mod rhs;
pub(crate) mod rows;
mod single;
mod stripes;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

pub use batch::{BatchItem, BatchSink};
pub use kind::Kind;
pub use memory::{Memory, MemoryError};
pub use operand::{GemmError, Operand, Rhs, Shape};
pub use packed::{PackedRhs, PackedView};
pub use product::Gemm;
pub use single::Scratch;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use tiles::Even;
