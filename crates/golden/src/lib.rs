//! Two-pass validation: a run is judged by a golden one, tensor by tensor.
//!
//! The first pass, PyTorch's, leaves a [`Folder`]: weights, activations, gradients, losses, metrics and outputs. The
//! second leaves another. [`validate()`] holds each tensor of the second against the first by the [`tolerance`] of its
//! [`Class`] and finds the first operation in execution order that is out of tolerance. With the [`Model`], [`explain()`]
//! replays operations on the reference to tell whether an error arose there or came with the inputs, and [`bisect()`]
//! splits a fused cluster until the node that errs is found. The answer is a [`report::Validation`], which crate `report`
//! renders. [`op_by_op::OpByOpComparison`] does without a second run: it computes every
//! operation of a run that it watches again.
//!
//! ```
//! use warpforge_golden::{Folder, Options, validate};
//! use warpforge_tensor::{Tensor, io::safetensors};
//!
//! let runs = tempfile::tempdir()?;
//! for (run, value) in [("golden", 1.0f32), ("candidate", 1.1)] {
//!     let folder = runs.path().join(run);
//!     std::fs::create_dir(&folder)?;
//!     let output = Tensor::from_slice(&[1], &[value])?;
//!     safetensors::write(&folder.join("outputs.safetensors"), [("out0", &output)])?;
//! }
//! let golden = Folder::open(&runs.path().join("golden"))?;
//! let candidate = Folder::open(&runs.path().join("candidate"))?;
//! let validation = validate(&golden, &candidate, &Options::default());
//! assert_eq!(validation.verdict.to_string(), "FAIL");
//! assert_eq!(validation.counts.failed, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod bisect;
mod cause;
mod class;
mod error;
mod explain;
pub mod folder;
mod graph;
mod judge;
pub mod op_by_op;
pub mod op_tolerance;
mod order;
mod replay;
pub mod report;
mod summary;
mod three_way;
pub mod tolerance;
mod validate;

pub use bisect::{Reduced, bisect};
pub use class::Class;
pub use error::Error;
pub use explain::{DEFAULT_REPLAYS, explain};
pub use folder::Folder;
pub use graph::Model;
pub use report::{Validation, Verdict};
pub use tolerance::Tolerances;
pub use validate::{Options, validate};

#[cfg(test)]
mod tests;
