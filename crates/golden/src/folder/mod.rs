//! A folder that a run has left: its tensors and numbers by class and name, and how it was made.

mod hash;
mod manifest;
mod noise;
mod numbers;
mod scan;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use manifest::{ClusterEntry, FileEntry, Fingerprint, Manifest, NodeEntry, RunEntry, SCHEMA_VERSION};
pub use noise::Noise;
use warpforge_tensor::Tensor;
pub use write::FolderWriter;

use crate::{Class, Error};

/// What a tensor is found by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The folder inside the run's that it is in, such as `step_000`; empty for the run's own.
    pub step: String,
    /// What it is in the run.
    pub class: Class,
    /// Its name.
    pub name: String,
}

/// A tensor of a folder. Its bytes are those of the file, read when they are looked at.
#[derive(Debug, Clone)]
pub struct Item {
    /// The values.
    pub tensor: Tensor,
    /// The file, as a position in [`Folder::files`].
    file: usize,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path in the folder, with `/` between the parts.
    pub path: String,
    /// The hash of its bytes, where a manifest names one; it was checked.
    pub sha256: Option<String>,
}

/// A file that is not part of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the folder.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What a run has left.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    manifest: Option<Manifest>,
    items: BTreeMap<Key, Item>,
    files: Vec<File>,
    skipped: Vec<Skipped>,
    noise: BTreeMap<Class, BTreeMap<String, Noise>>,
}

impl Folder {
    /// Reads a folder. Files of tensors are mapped, not read. Where there is a manifest, the files are those it
    /// describes, to the byte.
    ///
    /// # Errors
    ///
    /// When the folder or a file of it cannot be read, is not what its format asks for, or not what the manifest says.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.exists() && !path.is_dir() {
            return Err(Error::NoFolder { path: path.display().to_string() });
        }
        let manifest = Manifest::read(path)?;
        let mut folder = Self {
            path: path.to_owned(),
            manifest,
            items: BTreeMap::new(),
            files: Vec::new(),
            skipped: Vec::new(),
            noise: noise::read(path)?,
        };
        scan::fill(&mut folder)?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the run was made, where that is known.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// The tensors in the order of their steps.
    pub fn items(&self) -> impl Iterator<Item = (&Key, &Item)> {
        self.items.iter()
    }

    /// A tensor.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Item> {
        self.items.get(key)
    }

    /// The tensor of a class and a name in a step.
    #[must_use]
    pub fn tensor(&self, step: &str, class: Class, name: &str) -> Option<&Tensor> {
        let key = Key { step: step.to_owned(), class, name: name.to_owned() };
        self.get(&key).map(|item| &item.tensor)
    }

    /// The file that a tensor is in.
    #[must_use]
    pub fn file_of(&self, item: &Item) -> &File {
        &self.files[item.file]
    }

    /// The files that were read.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The files that were not.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// How far two runs of the golden kind are apart in a tensor, where that was measured and is the most that can be asked for.
    #[must_use]
    pub fn noise(&self, key: &Key) -> Option<&Noise> {
        let class = self.noise.get(&key.class)?;
        let label = (!key.step.is_empty()).then(|| format!("{}/{}", key.step, key.name));
        label.and_then(|label| class.get(&label)).or_else(|| class.get(&key.name))
    }

    /// The model's file, where the manifest names one that is there.
    #[must_use]
    pub fn model_file(&self) -> Option<PathBuf> {
        self.manifest.as_ref()?.model_file(&self.path)
    }

    fn insert(&mut self, key: Key, tensor: Tensor, file: usize) -> Result<(), Error> {
        if let Some(other) = self.items.get(&key) {
            return Err(Error::Twice {
                first: self.files[other.file].path.clone(),
                second: self.files[file].path.clone(),
                class: key.class,
                name: key.name,
            });
        }
        self.items.insert(key, Item { tensor, file });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
