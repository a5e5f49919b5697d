//! CPU kernels: slices in, slices out. They know no module and no plan.
//!
//! Instruction sets are chosen at run time: see [`isa`]. Work is shared among the threads of a [`pool::Pool`] in pieces
//! whose number and bounds depend on the problem alone, so a result is the same bit for bit whatever the number of
//! threads.

pub mod block;
pub mod conv;
pub mod fold;
pub mod gemm;
pub mod isa;
mod math;
pub mod movement;
pub mod pool;
pub mod program;
pub mod record;
pub mod statistics;
#[cfg(test)]
mod testing;
pub mod window;
