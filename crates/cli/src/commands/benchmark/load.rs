//! Finding a run by what the user calls it: a file, the folder of a golden benchmark, or an id of the history.

use std::path::Path;

use warpforge_bench::history::{History, HistoryError};
use warpforge_bench::record::{self, BenchmarkSuiteRun};

use crate::exit::Failure;

/// Reads a run from a file or folder if there is one of that name, else from the history.
pub(super) fn load_run(name: &str) -> Result<BenchmarkSuiteRun, Failure> {
    let path = Path::new(name);
    if path.join("manifest.json").is_file() {
        return Ok(warpforge_golden_bench::suite_run(path)?);
    }
    let looks_like_a_file =
        name.contains('/') || path.extension().is_some_and(|extension| extension == "json");
    if path.is_file() || looks_like_a_file {
        return record::read(path).map_err(Failure::bad_input);
    }
    open_history()?.load(name).map_err(Failure::bad_input)
}

/// Opens the history for reading.
pub(super) fn open_history() -> Result<History, Failure> {
    History::read_default().map_err(|error| match error {
        HistoryError::TooNew { .. } => Failure::bad_input(error),
        _ => Failure::not_possible(error),
    })
}
