//! The CPU backend.
//!
//! [`Cpu`] compiles a program in four steps: the function is imported into a graph and clustered (crate `fusion`); each
//! cluster becomes a kernel (`kernel`) with packed weights, those that depend on constants alone (`once`) run while compiling; a memory plan assigns every value an offset in one
//! workspace (`warpforge_runtime::memory_plan`); and `executable` runs the kernels in order on a thread pool, those that do
//! not depend on one another (`groups`) at the same time.

mod backend;
mod executable;
mod groups;
mod kernel;
mod launch;
mod lifetimes;
mod observer;
mod once;
mod sampling;
mod value_memory;

pub use backend::Cpu;
