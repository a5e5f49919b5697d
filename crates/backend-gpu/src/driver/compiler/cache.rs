//! On-disk cache of compiled kernels, keyed by a hash of all inputs.

use std::io::Write as _;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The cache key of a source, a compiler and its options.
pub(super) fn key(stamp: &str, source: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(stamp.as_bytes());
    hash.update([0]);
    hash.update(source.as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `warpt/kernels` in the user's cache directory, or in the temporary directory.
fn folder() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("warpt").join("kernels")
}

/// A cached entry.
pub(super) fn load(key: &str) -> Option<Vec<u8>> {
    std::fs::read(folder().join(format!("{key}.bin"))).ok().filter(|code| !code.is_empty())
}

/// Caches machine code. Failures only cost a later compilation.
pub(super) fn keep(key: &str, code: &[u8]) {
    if let Err(error) = write(&folder().join(format!("{key}.bin")), code) {
        tracing::debug!(%error, "a compiled kernel was not kept");
    }
}

/// Keeps a failing source and the compiler log; returns their paths.
pub(super) fn keep_failure(key: &str, source: &str, log: &str) -> (PathBuf, PathBuf) {
    let folder = folder().join("failed");
    let (source_file, log_file) = (folder.join(format!("{key}.cu")), folder.join(format!("{key}.log")));
    for (file, text) in [(&source_file, source), (&log_file, log)] {
        if let Err(error) = write(file, text.as_bytes()) {
            tracing::warn!(%error, file = %file.display(), "could not be kept");
        }
    }
    (source_file, log_file)
}

/// Writes a file atomically.
fn write(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(std::path::Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_all_inputs() {
        let keys = [key("a", "b"), key("ab", ""), key("a", "c"), key("c", "b")];
        for (at, one) in keys.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(keys[at + 1..].iter().all(|other| other != one));
        }
    }
}
