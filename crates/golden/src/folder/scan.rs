//! Finding the files of a folder and reading them.

use std::path::{Path, PathBuf};

use warpforge_tensor::io::{npy, safetensors};

use super::{File, Folder, Key, Skipped, hash, manifest, numbers};
use crate::{Class, Error};

/// How deep folders may nest in a run's folder.
const DEPTH: usize = 8;
/// How many files a run's folder may hold.
const FILES: usize = 100_000;

/// Reads every file below the folder's path.
pub(super) fn fill(folder: &mut Folder) -> Result<(), Error> {
    let mut paths = walk(&folder.path)?;
    paths.sort();
    check_listed(folder, &paths)?;
    for relative in paths {
        read(folder, &relative)?;
    }
    Ok(())
}

/// The paths of all files below a folder, as seen from it. Links are followed; the bounds end those that go in circles.
fn walk(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut pending = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(inside) = pending.pop() {
        let here = if inside.as_os_str().is_empty() { root.to_owned() } else { root.join(&inside) };
        let io = |path: &Path, cause| Error::Io { path: path.display().to_string(), cause };
        for entry in std::fs::read_dir(&here).map_err(|error| io(&here, error))? {
            let entry = entry.map_err(|error| io(&here, error))?;
            let path = entry.path();
            let relative = inside.join(entry.file_name());
            seen += 1;
            if seen > FILES || relative.iter().count() > DEPTH {
                let reason =
                    format!("a run's folder has at most {FILES} files and {DEPTH} folders in each other");
                return Err(Error::TooLarge { path: path.display().to_string(), reason });
            }
            let is_folder = std::fs::metadata(&path).map_err(|error| io(&path, error))?.is_dir();
            if is_folder { pending.push(relative) } else { files.push(relative) }
        }
    }
    Ok(files)
}

/// What the manifest lists must be there, and be what it says.
fn check_listed(folder: &Folder, paths: &[PathBuf]) -> Result<(), Error> {
    let Some(manifest) = &folder.manifest else { return Ok(()) };
    let wrong = |reason| {
        let path = folder.path.join(manifest::FILE_NAME).display().to_string();
        Err(Error::Manifest { path, reason })
    };
    for (name, fingerprint) in &manifest.files {
        if !paths.iter().any(|path| slashed(path) == *name) {
            return wrong(format!("it lists `{name}`, which is not there"));
        }
        let found = hash::sha256(&folder.path.join(name))?;
        let listed = &fingerprint.sha256;
        if !found.eq_ignore_ascii_case(listed) {
            return wrong(format!(
                "`{name}` has changed since the run: its SHA-256 is {found}, the manifest has {listed}"
            ));
        }
    }
    Ok(())
}

/// A path with `/` between its parts, as a manifest writes it.
fn slashed(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Whether a file is the model that the manifest names.
fn is_model(folder: &Folder, path: &str) -> bool {
    let archive = folder.manifest.as_ref().and_then(|manifest| manifest.archive.as_ref());
    archive.is_some_and(|archive| archive.file == path)
}

/// Whether the manifest says that a file is there for readers only.
fn is_not_compared(folder: &Folder, path: &str) -> bool {
    let listed = folder.manifest.as_ref().and_then(|manifest| manifest.files.get(path));
    listed.is_some_and(|fingerprint| !fingerprint.compared)
}

fn read(folder: &mut Folder, relative: &Path) -> Result<(), Error> {
    let path = slashed(relative);
    let extension = relative.extension().and_then(|text| text.to_str()).unwrap_or_default();
    let found = Class::of_path(relative);
    let skip = match extension {
        "json" if path == manifest::FILE_NAME => return Ok(()),
        _ if is_model(folder, &path) || is_not_compared(folder, &path) => return Ok(()),
        "json" if found.is_none() => {
            Some("its name begins with no class of numbers, such as `losses` or `metrics`")
        }
        "json" | "safetensors" | "npy" => None,
        "pt" | "pth" | "bin" | "pkl" => {
            Some("pickled files are never opened; save the tensors as safetensors")
        }
        _ => Some("neither safetensors, npy nor JSON"),
    };
    if let Some(reason) = skip {
        folder.skipped.push(Skipped { path, reason: reason.to_owned() });
        return Ok(());
    }
    // Tensors in a file without a class are what a run gave.
    let (class, up) = found.unwrap_or((Class::Outputs, 0));
    let step = step_of(relative, up);
    let stem = relative.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let sha256 = folder.manifest.as_ref().and_then(|manifest| manifest.files.get(&path));
    let sha256 = sha256.map(|fingerprint| fingerprint.sha256.to_ascii_lowercase());
    folder.files.push(File { path: path.clone(), sha256 });
    let file = folder.files.len() - 1;
    let whole = folder.path.join(relative);
    for (name, tensor) in tensors(&whole, extension, &stem)? {
        // The files of a class's folder tell their tensors apart by their own names.
        let name = if up > 0 && extension != "npy" { format!("{stem}/{name}") } else { name };
        folder.insert(Key { step: step.clone(), class, name }, tensor, file)?;
    }
    Ok(())
}

fn tensors(
    path: &Path,
    extension: &str,
    stem: &str,
) -> Result<Vec<(String, warpforge_tensor::Tensor)>, Error> {
    let unreadable = |cause| Error::Tensors { path: path.display().to_string(), cause };
    match extension {
        "npy" => Ok(vec![(stem.to_owned(), npy::read(path).map_err(unreadable)?)]),
        "json" => {
            let io = |cause| Error::Io { path: path.display().to_string(), cause };
            let text = std::fs::read_to_string(path).map_err(io)?;
            numbers::parse(&text).map_err(|reason| Error::Json { path: path.display().to_string(), reason })
        }
        _ => Ok(safetensors::read(path).map_err(unreadable)?.into_iter().collect()),
    }
}

/// The folders around a file, without the one that names its class.
fn step_of(relative: &Path, up: usize) -> String {
    let parts: Vec<_> = relative.iter().collect();
    let class_at = parts.len().checked_sub(up + 1);
    let folders = parts.iter().enumerate().take(parts.len().saturating_sub(1));
    let kept = folders.filter(|(at, _)| Some(*at) != class_at).map(|(_, part)| part.to_string_lossy());
    kept.collect::<Vec<_>>().join("/")
}
