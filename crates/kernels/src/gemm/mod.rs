//! GEMM with packed right-hand operands, left-hand operands read in place, and output blocks passed to an epilogue
//! while they are in cache.
//!
//! [`Gemm`] is the entry point. Micro-kernels are in `microkernel` and `amx`, the layout of packed operands in
//! `packed`, the partition into tasks in `partition`, the loops over tasks in `drive`. Each element of the output is
//! one chain of additions in the order of `k`, for any partition and any number of threads. Where few rows meet an
//! operand that is not packed, `in_place` adds up dot products lane by lane, in an order that depends on `k` and the
//! instruction set alone.

// Kernels read and write through pointers that their callers guarantee.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod batch;
mod compute_type;
mod convert;
pub(crate) mod drive;
mod groups;
mod in_place;
mod lhs;
mod matmul;
pub(crate) mod microkernel;
mod operand;
pub(crate) mod pack;
mod pack_bf16;
pub(crate) mod pack_copy;
mod packed;
pub(crate) mod partition;
mod rhs;
mod row_copier;
pub(crate) mod rows;
mod single_thread;
mod streams;
mod stripes;
#[cfg(test)]
mod tests;
mod triangular;
#[cfg(test)]
mod weight_tests;
mod widened;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use amx::StridedLhs;
pub use batch::{BatchItem, BatchSink};
pub use compute_type::{ComputeType, WeightType};
pub use groups::GroupedRhs;
pub use in_place::InPlace;
pub use matmul::Gemm;
pub use operand::{GemmError, Operand, Rhs, Shape};
pub use packed::{PackedRhs, PackedView};
pub use single_thread::Scratch;
pub use triangular::{NegatedRhs, OperandMut};
