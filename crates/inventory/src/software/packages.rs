//! Python packages, from the metadata that installers leave beside them. Nothing is imported or run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::host::Host;
use super::python::Python;
use crate::sysfs;

/// The name and the version stand at the head of the metadata; the rest is a description of any length.
const METADATA_HEAD: u64 = 8 << 10;

/// A package of machine learning or of what it stands on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Framework {
    /// The package's name, in lower case with hyphens.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The folder it is installed in.
    pub location: String,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// The folder of packages it is in.
    pub(super) folder: PathBuf,
}

/// The packages that are listed.
const FRAMEWORKS: &[&str] = &[
    "accelerate",
    "bitsandbytes",
    "cupy",
    "datasets",
    "deepspeed",
    "diffusers",
    "executorch",
    "flash-attn",
    "flax",
    "habana-torch-plugin",
    "intel-extension-for-pytorch",
    "iree-base-compiler",
    "iree-base-runtime",
    "jax",
    "jaxlib",
    "keras",
    "lightgbm",
    "llama-cpp-python",
    "mindspore",
    "mpi4py",
    "mxnet",
    "neuronx-cc",
    "numba",
    "numpy",
    "onnx",
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-openvino",
    "onnxruntime-rocm",
    "openvino",
    "optax",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "peft",
    "pytorch-lightning",
    "lightning",
    "pytorch-triton-rocm",
    "ray",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sentence-transformers",
    "sglang",
    "stablehlo",
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-rocm",
    "tensorrt",
    "tensorrt-llm",
    "tflite-runtime",
    "ai-edge-litert",
    "tinygrad",
    "tokenizers",
    "torch",
    "torch-tensorrt",
    "torch-xla",
    "torchao",
    "torchaudio",
    "torchvision",
    "transformers",
    "triton",
    "vllm",
    "xformers",
    "xgboost",
];

/// The folders of packages of these interpreters, of the user and of the distribution, that exist.
pub(super) fn folders(host: &Host, pythons: &[Python]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for prefix in pythons.iter().map(|python| host.at(&python.prefix)) {
        places.extend([prefix.join("lib"), prefix.join("lib64"), prefix.join("local/lib")]);
    }
    places.push(host.at("/usr/local/lib"));
    places.extend(host.folder("HOME").map(|home| home.join(".local/lib")));
    let mut found = BTreeSet::new();
    for place in places {
        for name in sysfs::names(&place).iter().filter(|name| name.starts_with("python")) {
            for kind in ["site-packages", "dist-packages"] {
                // Links such as lib64 lead to the same folder.
                let folder = place.join(name).join(kind);
                found.extend(host.real(&folder).filter(|real| real.is_dir()));
            }
        }
    }
    found.extend(
        host.folders("PYTHONPATH").iter().filter_map(|folder| host.real(folder)).filter(|real| real.is_dir()),
    );
    found.into_iter().collect()
}

/// The packages in a folder, by name; the metadata is opened for those that `wanted` names.
pub(super) fn read(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Package> {
    let mut packages: Vec<_> = sysfs::names(folder)
        .into_iter()
        .filter_map(|entry| {
            let stem = entry.strip_suffix(".dist-info").or_else(|| entry.strip_suffix(".egg-info"))?;
            let (name, version) =
                stem.split_once('-').map_or((stem, None), |(name, version)| (name, Some(version)));
            let name = normal(name);
            if !wanted(&name) {
                return None;
            }
            // "name-1.2-py3.11.egg-info" has the interpreter behind the version.
            let version =
                version.and_then(|version| version.split("-py").next()).filter(|version| is_version(version));
            let metadata = metadata_version(&folder.join(&entry));
            Some(Package {
                name,
                version: metadata.or(version.map(str::to_owned)),
                folder: folder.to_owned(),
            })
        })
        .collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages
}

/// The listed packages in these folders.
pub(super) fn frameworks(host: &Host, folders: &[PathBuf]) -> Vec<Framework> {
    let listed = |name: &str| FRAMEWORKS.contains(&name) || name.starts_with("cupy-");
    let packages = folders.iter().flat_map(|folder| read(folder, listed));
    packages
        .map(|package| Framework {
            name: package.name,
            version: package.version,
            location: host.shown(&package.folder),
        })
        .collect()
}

/// A name as the package index compares it: lower case, with hyphens.
fn normal(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

/// The version in a package's metadata.
fn metadata_version(info: &Path) -> Option<String> {
    let files = [info.join("METADATA"), info.join("PKG-INFO"), info.to_owned()];
    let text = files.iter().find_map(|path| sysfs::head(path, METADATA_HEAD))?;
    // A blank line ends the head; behind it, the description may say anything.
    let mut head = text.lines().take_while(|line| !line.is_empty());
    let version = head.find_map(|line| line.strip_prefix("Version:"))?.trim();
    is_version(version).then(|| version.to_owned())
}

fn is_version(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || ".+!-_".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit()) && text.len() <= 100 && text.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{tree, tree_at};

    #[test]
    fn versions_come_from_the_metadata_else_from_the_name() {
        let site = "venv/lib/python3.12/site-packages";
        let root = tree_at(
            site,
            &[
                ("torch-2.9.0.dist-info/METADATA", "Name: torch\nVersion: 2.9.0+cu128\n\nVersion: 9\n"),
                ("Flash_Attn-2.7.0.dist-info/METADATA", "Metadata-Version: 2.1\n"),
                ("numpy-1.24.2.egg-info/PKG-INFO", "Name: numpy\nVersion: 1.24.2\n"),
                ("scipy-1.0-py3.12.egg-info", ""),
                ("requests-2.0.dist-info/METADATA", "Version: 2.0\n"),
                ("jax-x.dist-info/METADATA", "Version: \u{1b}[31mred\n"),
            ],
        );
        let host = Host::fake(root.path(), &[]);
        let found = frameworks(&host, &[root.path().join(site)]);
        let pairs: Vec<_> =
            found.iter().map(|found| (found.name.as_str(), found.version.as_deref())).collect();
        let expected = [
            ("flash-attn", Some("2.7.0")),
            ("jax", None),
            ("numpy", Some("1.24.2")),
            ("scipy", Some("1.0")),
            ("torch", Some("2.9.0+cu128")),
        ];
        assert_eq!(pairs, expected);
        assert_eq!(found[0].location, "/venv/lib/python3.12/site-packages");
    }

    #[test]
    fn a_folder_reached_by_two_ways_is_one() {
        let root = tree(&[("venv/lib/python3.12/site-packages/x", "")]);
        crate::fake::link(&root, "venv/lib64", "lib");
        let host = Host::fake(root.path(), &[]);
        let python = Python { prefix: "/venv".to_owned(), ..Python::default() };
        assert_eq!(folders(&host, &[python.clone(), python]).len(), 1);
    }
}
