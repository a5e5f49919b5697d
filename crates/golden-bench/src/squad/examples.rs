//! Files of SQuAD v1.1.

use std::path::Path;

use warpforge_bench::squad::{self, SquadError};
pub use warpforge_bench::squad::{Answer, Example};

use crate::Error;

/// Reads a file, up to a number of questions.
///
/// # Errors
///
/// When the file cannot be read, is cut off, or is no file of SQuAD v1.1.
pub fn read(path: &Path, limit: Option<usize>) -> Result<Vec<Example>, Error> {
    squad::read(path, limit).map_err(|error| match error {
        SquadError::Io(cause) => Error::io(path)(cause),
        other => Error::data(path, other.to_string()),
    })
}
