//! Reading and writing the record as JSON.

use std::path::{Path, PathBuf};

use warpforge_tensor::io::{input, output};

use super::{BenchmarkSuiteRun, SCHEMA_VERSION};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not a result record.
    #[error("{origin}: not a result of `warpt benchmark run`: {reason}")]
    Malformed {
        /// The file or history id.
        origin: String,
        /// Where and why, by line and column.
        reason: serde_json::Error,
    },
    /// The record was written by a newer program.
    #[error(
        "{origin}: written in record version {found}, this program reads up to {SCHEMA_VERSION}; use a newer warpt"
    )]
    TooNew {
        /// The file or history id.
        origin: String,
        /// The version it says it has.
        found: u32,
    },
}

/// Reads a record from a file.
///
/// # Errors
/// If the file cannot be read, is no record, or is of a newer version.
pub fn read(path: &Path) -> Result<BenchmarkSuiteRun, RecordError> {
    let text = input::read_text(path).map_err(|source| RecordError::Io { path: path.to_owned(), source })?;
    read_str(&text, &path.display().to_string())
}

/// Reads a record from text; `origin` says in errors where the text came from.
///
/// # Errors
/// If the text is no record or is of a newer version.
pub fn read_str(text: &str, origin: &str) -> Result<BenchmarkSuiteRun, RecordError> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        schema_version: u32,
    }
    let malformed = |reason| RecordError::Malformed { origin: origin.to_owned(), reason };
    let Version { schema_version: found } = serde_json::from_str(text).map_err(malformed)?;
    if found > SCHEMA_VERSION {
        return Err(RecordError::TooNew { origin: origin.to_owned(), found });
    }
    serde_json::from_str(text).map_err(malformed)
}

/// Writes a record so that the file is either whole or, if the program is killed, as it was before.
///
/// # Errors
/// If the file or its folder cannot be written.
pub fn write(path: &Path, run: &BenchmarkSuiteRun) -> Result<(), RecordError> {
    let io = |source| RecordError::Io { path: path.to_owned(), source };
    let mut text = serde_json::to_string_pretty(run).map_err(|error| io(error.into()))?;
    text.push('\n');
    output::write(path, text.as_bytes()).map_err(io)
}
