//! Compiled kernels on disk, by a hash of everything that they depend on.

use std::io::Write as _;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// The name of what is compiled from a source by a compiler with its options.
pub(super) fn key(stamp: &str, source: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(stamp.as_bytes());
    hash.update([0]);
    hash.update(source.as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `warpt/kernels` under the user's cache folder, or under the folder of temporary files where there is none.
fn folder() -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(std::env::temp_dir).join("warpt").join("kernels")
}

/// What was kept.
pub(super) fn load(key: &str) -> Option<Vec<u8>> {
    std::fs::read(folder().join(format!("{key}.bin"))).ok().filter(|code| !code.is_empty())
}

/// Keeps machine code. A folder that cannot be written costs time next time, nothing else.
pub(super) fn keep(key: &str, code: &[u8]) {
    if let Err(error) = write(&folder().join(format!("{key}.bin")), code) {
        tracing::debug!(%error, "a compiled kernel was not kept");
    }
}

/// Keeps a source that does not compile and the compiler's log; where they are.
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

/// Writes a file as a whole or not at all, whoever else writes it.
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
    fn everything_that_matters_is_in_the_key() {
        let keys = [key("a", "b"), key("ab", ""), key("a", "c"), key("c", "b")];
        for (at, one) in keys.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(keys[at + 1..].iter().all(|other| other != one));
        }
    }
}
