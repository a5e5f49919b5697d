//! The GPU engine: clusters become library calls and generated kernels; values stay on the device.
//!
//! Building it needs neither CUDA nor ROCm. [`library`] loads the vendors' libraries at run time, `driver` wraps
//! devices, memory, streams and graphs behind one function table for both vendors, `compiler` compiles generated
//! sources. [`Gpus`] is the backend of one vendor.

mod backend;
mod blas;
mod calibrate;
mod collectives;
mod compile;
mod compile_error;
mod copy_stream;
mod cuda;
mod device_memory;
mod disk_cache;
mod dnn;
mod driver;
mod error;
mod executable;
#[cfg(test)]
mod fake;
mod grid;
mod hip;
mod launch_groups;
pub mod library;
mod lifetimes;
mod lower;
mod observe;
mod observed_run;
pub mod probe;
mod process_group;
mod processes;
mod program;
mod ranks;
mod salt;
mod solver;
mod state;
mod step_builder;
mod steps;
#[cfg(test)]
mod tests;
mod tuning;
mod vendor;

pub use backend::Gpus;
pub use error::{GpuError, Result};
pub use vendor::Vendor;
