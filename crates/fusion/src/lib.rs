//! Canonicalisation, fusion analysis and cost model; knows no device.
//!
//! [`pipeline`] is the entry. A module's entry function becomes a [`Graph`] of tensors: calls are inlined, constants folded, what
//! export took apart is brought into one form ([`graph`]). Its nodes are then grouped into clusters ([`cluster`]), each of which one
//! kernel computes: chains of elementwise operations, reductions with what surrounds them, products and convolutions with
//! their epilogues, attention, single operations. A backend turns clusters into kernels; [`report`] shows them to people.

#![forbid(unsafe_code)]

pub mod cluster;
pub mod graph;
pub mod pattern;
pub mod pipeline;
pub mod precision;
mod recompute;
pub mod report;
mod simplify;
#[cfg(test)]
mod testing;
pub mod view;

pub use graph::{Graph, ImportError, Node, NodeId, Op};
pub use precision::{Precision, Recipe};
pub use view::View;
