//! The reference evaluator: slow, obvious, complete.
//!
//! [`Interpreter`] runs a function of a module on [`Value`]s. `ops` has one file per family of operations, named as in
//! `warpforge-ir`, each with a table of its operations; [`scalar`] has what an operation does to single elements, and
//! [`math`] the functions that those are made of. Floats of every type are computed in binary64 and rounded to their
//! type after each operation of the program.
//!
//! Several processes (replicas and partitions) are threads that meet at collective operations.

#![forbid(unsafe_code)]

pub mod conformance;
mod custom_calls;
mod cx;
mod error;
mod machine;
pub mod math;
mod native;
mod ops;
mod options;
pub mod scalar;
pub mod trace;
mod value;

pub use custom_calls::CustomCall;
pub use error::{Error, ErrorKind, Result};
pub use machine::{Interpreter, ProcessId};
pub use ops::collective::Grid;
pub use ops::{is_evaluated, why_unsupported};
pub use options::{Limits, Observer, Options};
pub use value::Value;
