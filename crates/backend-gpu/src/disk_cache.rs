//! Files of the user's cache directory, by a hash of all that they depend on.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A folder of files by key.
#[derive(Debug, Clone)]
pub(crate) struct DiskCache {
    pub(crate) folder: PathBuf,
}

/// The key of an entry: a hash of its parts.
pub(crate) fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl DiskCache {
    /// `warpt/NAME` in the user's cache directory, or in the temporary directory.
    pub(crate) fn of_user(name: &str) -> Self {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Self { folder: cache.unwrap_or_else(std::env::temp_dir).join("warpt").join(name) }
    }

    /// A cached entry.
    pub(crate) fn load(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.entry(key)).ok().filter(|bytes| !bytes.is_empty())
    }

    /// Caches an entry. Failures only cost the same work later.
    pub(crate) fn keep(&self, key: &str, bytes: &[u8]) {
        if let Err(error) = write(&self.entry(key), bytes) {
            tracing::debug!(%error, folder = %self.folder.display(), "not cached");
        }
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.bin"))
    }
}

/// Writes a file atomically.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_depends_on_all_parts() {
        let keys = [key(&["a", "b"]), key(&["ab", ""]), key(&["a", "c"]), key(&["c", "b"]), key(&["ab"])];
        for (at, one) in keys.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(keys[at + 1..].iter().all(|other| other != one));
        }
    }
}
