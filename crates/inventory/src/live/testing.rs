//! A made-up `/proc` and `/sys` for the tests of the readers.

use std::path::Path;

use tempfile::TempDir;

/// A folder that stands in for `/`.
pub(crate) struct FakeRoot(TempDir);

impl FakeRoot {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a relative path")).expect("folders");
        std::fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.path().join(path)).expect("a file to remove");
    }
}
