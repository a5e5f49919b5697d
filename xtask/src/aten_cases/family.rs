//! The cases of one file of lowerings.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use warpforge_snakegrinder::{Archive, ImportOptions};
use warpforge_tensor::io::safetensors;
use warpforge_tensor::{Blob, Tensor};

#[path = "../../../crates/snakegrinder/tests/mutations/archive.rs"]
#[allow(dead_code, reason = "the tests of snakegrinder use the rest")]
mod archive;
#[path = "../../../crates/snakegrinder/tests/aten/program.rs"]
mod program;
#[path = "../../../crates/snakegrinder/tests/common/zip.rs"]
mod zip;

/// Cases of one operation that come from the test database, at most; fewer where some are written by hand.
const KEPT: usize = 4;

/// The cases that are kept, with their tensors.
#[derive(Default)]
pub(super) struct Family {
    /// Graphs, one a line.
    pub(super) lines: Vec<String>,
    /// What is written by hand and refused nevertheless.
    pub(super) refused_by_hand: Vec<String>,
    tensors: BTreeMap<String, Tensor>,
    counts: BTreeMap<String, usize>,
}

impl Family {
    /// Whether there is a case for an operation.
    pub(super) fn has(&self, op: &str) -> bool {
        self.counts.contains_key(op)
    }

    /// Writes the two files of the family, and returns their hashes.
    pub(super) fn write(&self, folder: &Path, family: &str) -> anyhow::Result<Vec<(String, Value)>> {
        if self.lines.is_empty() {
            return Ok(Vec::new());
        }
        let tensors = self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
        let files = [
            (format!("{family}.jsonl"), (self.lines.join("\n") + "\n").into_bytes()),
            (format!("{family}.safetensors"), safetensors::encode(tensors)?),
        ];
        let mut hashes = Vec::new();
        for (name, bytes) in files {
            let path = folder.join(&name);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            std::fs::write(&path, bytes).with_context(|| path.display().to_string())?;
            hashes.push((name, Value::from(digest)));
        }
        Ok(hashes)
    }
}

/// Keeps the candidates of a family that are imported: those by hand, and the first few of the others.
pub(super) fn select(candidates: &Path, family: &str) -> anyhow::Result<Family> {
    let lines = candidates.join(format!("{family}.jsonl"));
    let mut kept = Family::default();
    if !lines.exists() {
        return Ok(kept);
    }
    let tensors = safetensors::read(&candidates.join(format!("{family}.safetensors")))?;
    for (at, line) in std::fs::read_to_string(&lines)?.lines().enumerate() {
        let mut graph: Value = serde_json::from_str(line).context("a candidate")?;
        let op = graph["op"].as_str().context("a candidate of no operation")?.to_owned();
        let by_hand = graph.as_object_mut().and_then(|graph| graph.remove("by_hand")).is_some();
        if !by_hand && kept.counts.get(&op).is_some_and(|&count| count >= KEPT) {
            continue;
        }
        let own = format!("{at}.");
        let tensors = tensors.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(&own)?, tensor)));
        let tensors: Vec<(&str, &Tensor)> = tensors.collect();
        match import(&graph) {
            Err(why) if by_hand => kept.refused_by_hand.push(format!("{op}: {why}")),
            // The importer refuses what it cannot lower exactly; such a call has no value to compare.
            Err(_) => {}
            Ok(()) => {
                let place = kept.lines.len();
                kept.lines.push(graph.to_string());
                let named =
                    tensors.into_iter().map(|(name, tensor)| (format!("{place}.{name}"), tensor.clone()));
                kept.tensors.extend(named);
                *kept.counts.entry(op).or_default() += 1;
            }
        }
    }
    Ok(kept)
}

/// Whether the importer takes a graph, for the sizes that PyTorch ran with.
fn import(graph: &Value) -> Result<(), String> {
    let bytes = archive::around(&program::program(graph).to_string());
    let archive = Archive::from_blob(Blob::from(bytes)).map_err(|error| error.to_string())?;
    let options = ImportOptions { shapes: Some(program::shapes(graph)) };
    archive.import(&options).map(drop).map_err(|error| error.to_string())
}
