//! How an evaluation runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use warpforge_ir::OpRef;
use warpforge_tensor::memory::available_bytes;

use crate::{CustomCall, Value};

/// Bounds on what a program may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest number of elements of one tensor.
    pub tensor_elements: usize,
    /// Largest number of bytes of all values at a time; values that share their memory count each.
    pub memory_bytes: usize,
    /// Largest number of operations executed, each application of a region's scalar computation among them.
    pub steps: u64,
    /// Deepest nesting of calls and regions.
    pub depth: usize,
    /// Largest number of processes of one parallel run.
    pub processes: usize,
    /// Largest number of operations of a function after its calls are inlined: functions that call each other twice
    /// double it each time.
    pub inlined_ops: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tensor_elements: 1 << 31,
            memory_bytes: available_bytes()
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(usize::MAX),
            steps: u64::MAX,
            depth: 256,
            processes: 256,
            inlined_ops: 1 << 26,
        }
    }
}

/// Sees every value that an operation computes, in the order of execution.
pub trait Observer: Send + Sync {
    /// Called before an operation.
    fn begins(&self, op: OpRef<'_>) {
        let _ = op;
    }

    /// Called after an operation with its results. An error text stops the evaluation.
    ///
    /// # Errors
    ///
    /// When the evaluation is to stop here.
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String>;
}

/// How an evaluation runs.
#[derive(Clone, Default)]
pub struct Options {
    /// Bounds.
    pub limits: Limits,
    /// Who sees the values.
    pub observer: Option<Arc<dyn Observer>>,
    /// Where `interpreter.probe` writes files; values are kept in memory either way.
    pub probe_folder: Option<PathBuf>,
    /// Judges the floats of `check` custom calls by this fraction of the largest value, or by one step of their type where
    /// that is more, instead of by what the calls say.
    pub loose_checks: Option<f64>,
    /// Targets of custom calls, before those that the reference knows itself.
    pub custom_calls: HashMap<String, Arc<dyn CustomCall>>,
    /// How many threads an operation may use; as many as the machine has unless said otherwise.
    pub threads: Option<usize>,
    /// Compute every element by the general path that takes all types, never by the fast loops for common ones. The
    /// results are the same; this is for checking that.
    pub general_only: bool,
}
