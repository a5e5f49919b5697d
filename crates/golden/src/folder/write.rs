//! Writing the folder of a run: tensors and numbers first, the manifest with their hashes last.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::{Unfinished, carrier, output, safetensors};

use super::{Fingerprint, Manifest, SCHEMA_VERSION, hash, manifest, numbers};
use crate::{Class, Error};

/// A folder being filled. What is in it goes again when it is not finished.
#[derive(Debug)]
pub struct FolderWriter {
    path: PathBuf,
    files: BTreeMap<String, Fingerprint>,
    /// What was made, in that order.
    made: Vec<Unfinished>,
    /// Whether what was made stays where the folder is not finished.
    kept: bool,
}

impl FolderWriter {
    /// Starts a folder. The files of an earlier run in it go; a folder that holds anything else is left alone.
    ///
    /// # Errors
    ///
    /// When the folder is in use for something else, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let io = |cause| Error::Io { path: path.display().to_string(), cause };
        let made = make_folders(path).map_err(io)?;
        match Manifest::read(path)? {
            Some(earlier) => {
                // The manifest first: without it the folder claims nothing.
                let listed = earlier.files.keys().map(String::as_str);
                for name in
                    std::iter::once(manifest::FILE_NAME).chain(listed.filter(|name| is_inside(path, name)))
                {
                    match std::fs::remove_file(path.join(name)) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
                        _ => {}
                    }
                }
            }
            None if std::fs::read_dir(path).map_err(io)?.next().is_some() => {
                let reason = "the folder is not empty and not one of a run; choose another".to_owned();
                return Err(Error::Manifest { path: path.display().to_string(), reason });
            }
            None => {}
        }
        Ok(Self { path: path.to_owned(), files: BTreeMap::new(), made, kept: false })
    }

    /// Goes on with the folder of a run that was stopped, which the file `mark` tells, or starts one as
    /// [`FolderWriter::create`]. What is written stays where the folder is not finished, for the next to go on with.
    ///
    /// # Errors
    ///
    /// As [`FolderWriter::create`].
    pub fn resume(path: &Path, mark: &str) -> Result<Self, Error> {
        let stopped = path.join(mark).is_file() && Manifest::read(path)?.is_none();
        let mut writer = match stopped {
            true => Self { path: path.to_owned(), files: BTreeMap::new(), made: Vec::new(), kept: true },
            false => Self::create(path)?,
        };
        writer.kept = true;
        writer.made.iter_mut().for_each(Unfinished::keep);
        writer.made.clear();
        Ok(writer)
    }

    /// Lists a file that was written by itself; one that is not compared is left out without a remark.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn add(&mut self, name: &str, compared: bool) -> Result<(), Error> {
        let sha256 = hash::sha256(&self.path.join(name))?;
        self.files.insert(name.to_owned(), Fingerprint { sha256, compared });
        Ok(())
    }

    /// Writes the tensors of a class that a step had, to the step's folder; `part` names those that go by other names than the
    /// rest.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn step<'t>(
        &mut self,
        step: &str,
        class: Class,
        part: Option<&str>,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    ) -> Result<(), Error> {
        let name = part.map_or_else(|| format!("{step}/{class}"), |part| format!("{step}/{class}/{part}"));
        let folder = self.path.join(&name).parent().map(Path::to_owned).unwrap_or_default();
        let io = |cause| Error::Io { path: folder.display().to_string(), cause };
        let made = make_folders(&folder).map_err(io)?;
        self.made(made);
        self.named(&format!("{name}.safetensors"), tensors)
    }

    /// Takes note of what was made.
    fn made(&mut self, made: impl IntoIterator<Item = Unfinished>) {
        self.made.extend(made);
        if self.kept {
            self.made.iter_mut().for_each(Unfinished::keep);
            self.made.clear();
        }
    }

    /// Writes the tensors of a class.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn tensors<'t>(
        &mut self,
        class: Class,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    ) -> Result<(), Error> {
        self.named(&format!("{class}.safetensors"), tensors)
    }

    /// Writes tensors of a class that go by other names than the rest, to a file in a folder of the class.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn part<'t>(
        &mut self,
        class: Class,
        part: &str,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    ) -> Result<(), Error> {
        let folder = self.path.join(class.name());
        let io = |cause| Error::Io { path: folder.display().to_string(), cause };
        let made = make_folders(&folder).map_err(io)?;
        self.made(made);
        self.named(&format!("{class}/{part}.safetensors"), tensors)
    }

    fn named<'t>(
        &mut self,
        name: &str,
        tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    ) -> Result<(), Error> {
        let path = self.path.join(name);
        let unwritable = |cause| match cause {
            // It has the path already.
            warpforge_tensor::Error::Io { path, source } => Error::Io { path, cause: source },
            cause => Error::Tensors { path: path.display().to_string(), cause },
        };
        let stored: Vec<(&str, Tensor)> = tensors
            .into_iter()
            .map(|(name, tensor)| Ok((name, carrier::to_carrier(tensor)?)))
            .collect::<Result<_, _>>()
            .map_err(unwritable)?;
        safetensors::write(&path, stored.iter().map(|(name, tensor)| (*name, tensor))).map_err(unwritable)?;
        self.wrote(name)
    }

    /// Writes the numbers of a class, by name: for losses, one a step.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn numbers(&mut self, class: Class, lists: &BTreeMap<String, Vec<f64>>) -> Result<(), Error> {
        let name = format!("{class}.json");
        let lists: BTreeMap<&str, Vec<serde_json::Value>> = lists
            .iter()
            .map(|(name, values)| (name.as_str(), values.iter().copied().map(numbers::to_json).collect()))
            .collect();
        self.json(&name, &lists)?;
        self.wrote(&name)
    }

    /// Writes a text.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn text(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        output::write(&path, text.as_bytes())
            .map_err(|cause| Error::Io { path: path.display().to_string(), cause })?;
        self.wrote(name)
    }

    /// Writes the manifest: what is known of the run, with the hash of every file.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn finish(mut self, facts: Manifest) -> Result<(), Error> {
        let mut made = std::mem::take(&mut self.made);
        let manifest = Manifest { schema_version: SCHEMA_VERSION, files: self.files.clone(), ..facts };
        let written = self.json(manifest::FILE_NAME, &manifest);
        if written.is_ok() {
            made.iter_mut().for_each(Unfinished::keep);
        }
        // A folder goes when what is in it has gone.
        while made.pop().is_some() {}
        written
    }

    fn json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let path = self.path.join(name);
        let unwritable = |cause| Error::Io { path: path.display().to_string(), cause };
        let text = serde_json::to_string_pretty(value).map_err(|error| unwritable(error.into()))?;
        output::write(&path, (text + "\n").as_bytes()).map_err(unwritable)
    }

    fn wrote(&mut self, name: &str) -> Result<(), Error> {
        self.made([Unfinished::new(self.path.join(name))]);
        self.add(name, true)
    }
}

impl Drop for FolderWriter {
    fn drop(&mut self) {
        while self.made.pop().is_some() {}
    }
}

/// Makes a folder and those around it, and says which were not there.
fn make_folders(path: &Path) -> std::io::Result<Vec<Unfinished>> {
    let missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    std::fs::create_dir_all(path)?;
    Ok(missing.into_iter().rev().map(Unfinished::new).collect())
}

/// Whether a name is that of a file in the folder, or in a real folder in it.
fn is_inside(folder: &Path, name: &str) -> bool {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    match parts.as_slice() {
        [Component::Normal(_)] => true,
        [Component::Normal(inner), Component::Normal(_)] => {
            std::fs::symlink_metadata(folder.join(inner)).is_ok_and(|found| found.is_dir())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folder;
    use crate::folder::NodeEntry;

    fn write(path: &Path, value: f32) -> Result<(), Error> {
        let mut writer = FolderWriter::create(path)?;
        let tensor = Tensor::from_slice(&[1], &[value]).unwrap();
        writer.tensors(Class::Outputs, [("out0", &tensor)])?;
        writer.part(Class::Activations, "modules", [("fc", &tensor)])?;
        writer.numbers(Class::Losses, &BTreeMap::from([("loss".to_owned(), vec![0.5, f64::NAN])]))?;
        let node = NodeEntry { name: "relu".to_owned(), ..NodeEntry::default() };
        writer.finish(Manifest { nodes: vec![node], ..Manifest::default() })
    }

    #[test]
    fn what_is_written_reads_back_and_can_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        for value in [1.0, 2.0] {
            write(&path, value).unwrap();
            let read = Folder::open(&path).unwrap();
            let output = read.tensor("", Class::Outputs, "out0").unwrap();
            assert_eq!(output.as_slice::<f32>().unwrap(), [value]);
            let module = read.tensor("", Class::Activations, "modules/fc").unwrap();
            assert_eq!(module.as_slice::<f32>().unwrap(), [value]);
            let loss = read.tensor("", Class::Losses, "loss").unwrap();
            assert!(loss.get(0).to_f64() == 0.5 && loss.get(1).is_nan());
            assert_eq!(read.manifest().unwrap().nodes[0].name, "relu");
            assert!(read.files().iter().all(|file| file.sha256.is_some()));
        }
    }

    #[test]
    fn what_is_not_finished_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/one");
        let mut writer = FolderWriter::create(&path).unwrap();
        let tensor = Tensor::from_slice(&[1], &[1.0f32]).unwrap();
        writer.tensors(Class::Outputs, [("out0", &tensor)]).unwrap();
        writer.part(Class::Activations, "modules", [("fc", &tensor)]).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.txt"), "x").unwrap();
        assert!(write(folder.path(), 1.0).unwrap_err().to_string().contains("not empty"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_manifest_cannot_have_files_elsewhere_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keep"), "x").unwrap();
        let path = folder.path().join("run");
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(folder.path(), path.join("link")).unwrap();
        let text = "{\"schema_version\": 1, \"files\": {\"../keep\": {\"sha256\": \"\"}, \"link/keep\": {\"sha256\": \"\"}}}";
        std::fs::write(path.join("manifest.json"), text).unwrap();
        write(&path, 1.0).unwrap();
        assert!(folder.path().join("keep").exists());
    }
}
