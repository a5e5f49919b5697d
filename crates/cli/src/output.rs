//! The files that commands write. `-` is standard output.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use warpforge_tensor::io::output;

use crate::exit::Failure;

/// Writes a file whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    written(path, output::write(path, bytes))
}

/// What writing a file came to.
pub(crate) fn written<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Failure> {
    result.with_context(|| format!("cannot write {}", path.display())).map_err(Failure::not_possible)
}

/// Finds out before the work, not after it, that a file could not be written.
pub(crate) fn check<'a>(paths: impl IntoIterator<Item = Option<&'a Path>>) -> Result<(), Failure> {
    paths.into_iter().flatten().try_for_each(|path| written(path, output::check(path)))
}

/// Whether one of these files is standard output, so that what is for people goes to standard error. With `--json`, or
/// with two of them, what a reader gets would be no one thing.
pub(crate) fn takes_stdout<'name, 'path>(
    files: impl IntoIterator<Item = (&'name str, Option<&'path Path>)>,
    json: bool,
) -> Result<bool, Failure> {
    let standard = files.into_iter().filter(|(_, path)| path.is_some_and(output::is_standard));
    let mut names: Vec<&str> = standard.map(|(name, _)| name).collect();
    let taken = !names.is_empty();
    if taken && json {
        names.push("--json");
    }
    if names.len() > 1 {
        return Err(Failure::bad_input(anyhow!(
            "only one of {} can go to standard output",
            names.join(", ")
        )));
    }
    Ok(taken)
}
