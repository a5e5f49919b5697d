//! How an evaluation runs.

use std::path::PathBuf;
use std::sync::Arc;

use warpforge_ir::OpRef;

use crate::Value;

/// Bounds on what a program may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest number of elements of one tensor.
    pub tensor_elements: usize,
    /// Largest number of operations executed, each application of a region's scalar computation among them.
    pub steps: u64,
    /// Deepest nesting of calls and regions.
    pub depth: usize,
    /// Largest number of processes of one parallel run.
    pub processes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { tensor_elements: 1 << 31, steps: u64::MAX, depth: 256, processes: 256 }
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
}
