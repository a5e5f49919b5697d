//! Other programs that do what a benchmark does, measured beside it.

use super::{BenchmarkError, RunContext};
use crate::record::Params;

/// A program that does what a benchmark does.
pub trait Peer: Sync {
    /// The name that `--beside` takes.
    fn name(&self) -> &'static str;

    /// What it is and which package has it, in a line.
    fn description(&self) -> &'static str;

    /// Checks, before anything runs, that it could run here with the benchmark's parameters. Changes nothing.
    ///
    /// # Errors
    /// [`BenchmarkError::NotPossible`], with the package's name where it is not installed, makes it a skipped one.
    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError>;

    /// Runs one round, in a process of its own, with the benchmark's parameters. It reports its version, and metrics by
    /// the benchmark's names and units. A metric has so many of the tags of the benchmark's that it fits one alone.
    ///
    /// # Errors
    /// If the program failed or gave a wrong result.
    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError>;
}
