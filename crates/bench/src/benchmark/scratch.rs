//! A folder for files that a benchmark needs while it runs.

use super::BenchmarkError;

/// A folder that goes with what is in it.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] if there is no place for one.
pub(crate) fn scratch_folder() -> Result<tempfile::TempDir, BenchmarkError> {
    tempfile::tempdir().map_err(|error| {
        // The system's own text has a name that nobody knows.
        let place = std::env::temp_dir();
        BenchmarkError::NotPossible(format!(
            "there can be no temporary folder in {} ({}); set TMPDIR to another place",
            place.display(),
            error.kind()
        ))
    })
}
