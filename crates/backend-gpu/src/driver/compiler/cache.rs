//! On-disk cache of compiled kernels.

use std::path::PathBuf;

use crate::disk_cache::{DiskCache, write};

pub(super) fn kernels() -> DiskCache {
    DiskCache::of_user("kernels")
}

/// Keeps a failing source and the compiler log; returns their paths.
pub(super) fn keep_failure(key: &str, source: &str, log: &str) -> (PathBuf, PathBuf) {
    let folder = kernels().folder.join("failed");
    let (source_file, log_file) = (folder.join(format!("{key}.cu")), folder.join(format!("{key}.log")));
    for (file, text) in [(&source_file, source), (&log_file, log)] {
        if let Err(error) = write(file, text.as_bytes()) {
            tracing::warn!(%error, file = %file.display(), "could not be kept");
        }
    }
    (source_file, log_file)
}
