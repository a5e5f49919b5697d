//! Reading the small text files of `/proc` and `/sys`.

use std::path::Path;
use std::str::FromStr;

/// The trimmed text of a file, or `None` if it cannot be read or is empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The number in a file.
pub(crate) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// The names in a folder, sorted; empty if it cannot be read.
pub(crate) fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}
