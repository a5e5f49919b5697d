//! Files that are to go unless they are finished, also when a signal ends the program.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What is not finished, the newest last.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file, or a folder that is empty by then, that is removed when this is dropped before [`Unfinished::keep`].
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    kept: bool,
}

impl Unfinished {
    /// Takes charge of a path. Nothing need be there yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        list().push(path.clone());
        Self { path, kept: false }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is there is finished.
    pub fn keep(&mut self) {
        self.kept = true;
        self.forget();
    }

    fn forget(&self) {
        let mut list = list();
        if let Some(at) = list.iter().rposition(|path| *path == self.path) {
            list.remove(at);
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path);
            self.forget();
        }
    }
}

/// Removes everything that is not finished: for a program that a signal is about to end. The locks stay taken, so that no
/// other thread starts or finishes a file meanwhile.
pub fn remove_unfinished() {
    let mut list = list();
    list.drain(..).rev().for_each(|path| remove(&path));
    std::mem::forget(list);
}

fn list() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path) {
    // There is nobody to tell, and nothing else to try.
    let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path));
}
