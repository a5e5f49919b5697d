//! The GPU engine: clusters become library calls and generated kernels, values stay on the device.
//!
//! Nothing of CUDA or ROCm is needed to build it. [`library`] finds the vendors' libraries at run time, `driver` has
//! devices, memory, streams and graphs by one table of functions that both vendors fill, `compiler` turns generated
//! sources into machine code. [`Gpus`] is the backend, one for each vendor.

mod backend;
mod calibrate;
mod collectives;
mod compile;
mod compiler;
mod cuda;
mod driver;
mod error;
mod executable;
#[cfg(test)]
mod fake;
mod hip;
mod lane;
pub mod library;
mod lower;
mod networks;
pub mod probe;
mod processes;
mod products;
mod salt;
mod steps;
#[cfg(test)]
mod tests;
mod tuning;
mod watch;

pub use backend::Gpus;
pub use error::{GpuError, Result};
pub use library::Vendor;
