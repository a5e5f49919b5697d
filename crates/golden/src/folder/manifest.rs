//! The manifest of a folder: how the run was made, what its files are, and the nodes in execution order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;

/// The newest form of the manifest that is understood.
pub const SCHEMA_VERSION: u64 = 1;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// How a run was made. Fields that are not known are left alone, so that a writer may say more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the manifest.
    pub schema_version: u64,
    /// The versions of what made the run, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The seed of the random numbers.
    #[serde(default)]
    pub seed: Option<i64>,
    /// What the model is called.
    #[serde(default)]
    pub model: Option<String>,
    /// The model's file, beside the folder or in it.
    #[serde(default)]
    pub archive: Option<FileEntry>,
    /// The files, by their paths in the folder.
    #[serde(default)]
    pub files: BTreeMap<String, Fingerprint>,
    /// The nodes of the graph in execution order.
    #[serde(default)]
    pub nodes: Vec<NodeEntry>,
    /// What the run was made on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunEntry>,
    /// The clusters of a fused run in execution order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterEntry>,
    /// Activations that the run could not save, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, String>,
    /// What the run says about the golden benchmark that it is of; the benchmark reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<serde_json::Value>,
}

/// The model's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub file: String,
    /// Its hash.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// What a run was made on, in the words of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    /// The device: `cpu`, `cuda:0`.
    pub device: String,
    /// The tier.
    pub tier: String,
    /// What contractions multiplied in.
    pub precision: String,
}

/// A cluster of operations that one kernel computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEntry {
    /// The kernel's name.
    pub kernel: String,
    /// The nodes of the graph that it computes, in execution order.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// The activations that it gave.
    #[serde(default)]
    pub tensors: Vec<String>,
}

/// What identifies a file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Whether it is compared; what is not is there for readers.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub compared: bool,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

/// One node of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its name: that of its tensor among the activations, `name.0`, `name.1`, … where it has several.
    pub name: String,
    /// The operation: `aten.relu.default`.
    #[serde(default)]
    pub target: Option<String>,
    /// The module that it is in: `encoder.layer.0`.
    #[serde(default)]
    pub module: Option<String>,
    /// The line of the source, `file:line`.
    #[serde(default)]
    pub source: Option<String>,
    /// The tensors that it gives.
    #[serde(default)]
    pub tensors: Vec<String>,
}

impl Manifest {
    /// Reads the manifest of a folder; a folder need not have one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(FILE_NAME);
        let wrong = |reason: String| Error::Manifest { path: path.display().to_string(), reason };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(Error::Io { path: path.display().to_string(), cause }),
        };
        let version: Version =
            serde_json::from_str(&text).map_err(|error| wrong(format!("not a manifest: {error}")))?;
        if version.schema_version > SCHEMA_VERSION {
            let found = version.schema_version;
            return Err(wrong(format!(
                "schema_version {found} is newer than {SCHEMA_VERSION}, the newest known here; update warpt"
            )));
        }
        serde_json::from_str(&text).map(Some).map_err(|error| wrong(format!("not a manifest: {error}")))
    }

    /// Where the model's file is, if it is there: in the folder or beside it.
    pub(super) fn model_file(&self, folder: &Path) -> Option<PathBuf> {
        let name = Path::new(&self.archive.as_ref()?.file);
        // A name only: a manifest must not send anyone elsewhere.
        let name = name.file_name().filter(|only| Path::new(only) == name)?;
        let beside = folder.canonicalize().ok().and_then(|folder| Some(folder.parent()?.join(name)));
        [Some(folder.join(name)), beside].into_iter().flatten().find(|path| path.is_file())
    }
}

/// The one field that is read before the rest is believed.
#[derive(Deserialize)]
struct Version {
    schema_version: u64,
}
