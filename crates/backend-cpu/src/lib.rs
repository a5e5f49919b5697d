//! The CPU engine: clusters become kernels, memory is planned, runs are profiled.
//!
//! [`Cpu`] is the backend. It compiles a program in four steps: the function becomes a graph and the graph clusters (crate
//! `fusion`); each cluster becomes a kernel (`kernel`) with its weights packed; values get their places in one block of
//! memory (`warpforge_runtime::plan`); and `executable` runs the kernels one after the other on the threads of a pool.

mod backend;
mod executable;
mod kernel;
mod observe;

pub use backend::Cpu;
