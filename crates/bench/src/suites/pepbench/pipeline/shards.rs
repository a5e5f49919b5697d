//! The files of documents.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::benchmark::BenchmarkError;
use crate::suites::values::bad_value;

/// The endings of files with documents.
const ENDINGS: [&str; 3] = [".jsonl", ".jsonl.gz", ".txt"];

/// The files of a folder, in the order of their names.
///
/// # Errors
/// A folder that cannot be read or has none.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, BenchmarkError> {
    let wrong = |reason: &str| bad_value("data", &folder.display(), reason);
    let entries = std::fs::read_dir(folder).map_err(|error| wrong(&error.to_string()))?;
    let fits = |path: &PathBuf| {
        let name = path.to_string_lossy();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    if files.is_empty() { Err(wrong(&format!("there is no file {}", ENDINGS.join(", ")))) } else { Ok(files) }
}

/// Writes documents as compressed JSON lines, divided among files.
///
/// # Errors
/// When the disk does not take them.
pub(super) fn write(
    folder: &Path,
    documents: &[String],
    shards: usize,
) -> Result<Vec<PathBuf>, BenchmarkError> {
    let each = documents.len().div_ceil(shards).max(1);
    let mut files = Vec::new();
    for (at, documents) in documents.chunks(each).enumerate() {
        let path = folder.join(format!("shard-{at:05}.jsonl.gz"));
        write_one(&path, documents).map_err(|error| {
            BenchmarkError::NotPossible(format!("{}: {error}; set TMPDIR to another place", path.display()))
        })?;
        files.push(path);
    }
    Ok(files)
}

fn write_one(path: &Path, documents: &[String]) -> std::io::Result<()> {
    let mut writer = GzEncoder::new(BufWriter::new(File::create(path)?), Compression::fast());
    for document in documents {
        writeln!(writer, "{}", json!({"text": document}))?;
    }
    writer.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
}
