//! What a benchmark is to the runner: something that can say whether it can run here, and run one round.

mod context;
mod params;
mod peer;
mod scratch;

pub use context::{Event, MetricKey, Round, RunContext, float, int, text};
pub use params::{ParamError, override_params};
pub use peer::Peer;
pub(crate) use scratch::scratch_folder;

use serde::{Deserialize, Serialize};

use crate::record::{BenchmarkSpec, Params};

/// One runnable workload.
pub trait Benchmark: Sync {
    /// What it is, with the default of every parameter.
    fn spec(&self) -> BenchmarkSpec;

    /// What each parameter takes, for people: `1 to 64` with both ends, or names. A test checks that none is missing.
    fn takes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Other programs that do the same, which `--beside` measures in turn with it.
    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[]
    }

    /// Checks, before anything runs, that it could run here with these parameters. Changes nothing.
    ///
    /// # Errors
    /// [`BenchmarkError::NotPossible`] makes it a skipped one, [`BenchmarkError::BadInput`] ends the whole run.
    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError>;

    /// Runs one round, in a process of its own, and reports each metric as soon as it is measured.
    ///
    /// # Errors
    /// If the workload could not be set up or went wrong half-way.
    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError>;
}

/// Why a benchmark produced no results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", content = "message", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BenchmarkError {
    /// The machine lacks something it needs.
    #[error("{0}")]
    NotPossible(String),
    /// A parameter makes no sense, or names something that cannot be used.
    #[error("{0}")]
    BadInput(String),
    /// It went wrong while running.
    #[error("{0}")]
    Failed(String),
    /// It was asked to stop.
    #[error("stopped before it was done")]
    Stopped,
}
