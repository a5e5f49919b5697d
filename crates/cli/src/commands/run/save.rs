//! `--save`: the run as a folder that `warpt validate` compares with PyTorch's.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge::{CompiledModel, Outputs, ResultRole, Scalar, Tensor};
use warpforge_golden::folder::{ClusterEntry, FileEntry, FolderWriter, Manifest, RunEntry};
use warpforge_golden::{Class, Error};
use warpforge_golden_bench::values::{MODULES, Modules, nodes};
use warpforge_runtime::Executable;

/// What a run had and gave.
pub(super) struct Run<'a> {
    pub(super) file: &'a Path,
    pub(super) seed: Option<u64>,
    pub(super) compiled: &'a CompiledModel,
    pub(super) executable: &'a dyn Executable,
    pub(super) inputs: &'a [Tensor],
    pub(super) outputs: &'a Outputs,
    /// Whether to write the weights too.
    pub(super) weights: bool,
    /// The values of the graph's nodes.
    pub(super) nodes: &'a [(String, Tensor)],
    /// The clusters that gave them, in a tier that fuses.
    pub(super) clusters: Vec<ClusterEntry>,
    /// What the model's modules returned.
    pub(super) modules: Modules<'a>,
}

/// Writes the folder.
pub(super) fn save(run: &Run<'_>, folder: &Path) -> Result<(), Error> {
    let mut writer = FolderWriter::create(folder)?;
    let model = run.compiled.model();
    let slots = model.inputs();
    writer.tensors(Class::Inputs, slots.iter().map(|slot| slot.name).zip(run.inputs))?;
    if run.weights {
        writer.tensors(Class::Weights, model.weights())?;
    }
    if !run.nodes.is_empty() {
        writer.tensors(Class::Activations, run.nodes.iter().map(|(name, tensor)| (name.as_str(), tensor)))?;
    }
    let modules = &run.modules;
    if !modules.values.is_empty() {
        let named = modules.values.iter().map(|(name, tensor)| (name.as_str(), *tensor));
        writer.part(Class::Activations, MODULES, named)?;
    }
    let mut gradients: Vec<(&str, &Tensor)> = Vec::new();
    let mut outputs: Vec<(&str, &Tensor)> = Vec::new();
    let mut losses = BTreeMap::new();
    for (result, (name, tensor)) in model.signature().results.iter().zip(run.outputs.iter()) {
        match (result.role, &result.of) {
            // A gradient goes by the name of what it is the gradient of.
            (ResultRole::Gradient, Some(of)) => gradients.push((of, tensor)),
            (ResultRole::Gradient, None) => gradients.push((name, tensor)),
            (ResultRole::Loss, _) => {
                losses.insert(name.to_owned(), tensor.iter().map(Scalar::to_f64).collect());
                outputs.push((name, tensor));
            }
            _ => outputs.push((name, tensor)),
        }
    }
    writer.tensors(Class::Outputs, outputs)?;
    if !gradients.is_empty() {
        writer.tensors(Class::Gradients, gradients)?;
    }
    if !losses.is_empty() {
        writer.numbers(Class::Losses, &losses)?;
    }
    let file = Some(run.file).filter(|file| !warpforge::io::input::is_standard(file));
    let file_name = file.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let versions = [("warpt", env!("CARGO_PKG_VERSION")), ("backend", run.compiled.backend())];
    let target = run.compiled.target();
    writer.finish(Manifest {
        versions: versions.map(|(name, version)| (name.to_owned(), version.to_owned())).into(),
        seed: run.seed.and_then(|seed| i64::try_from(seed).ok()),
        archive: file_name.map(|file| FileEntry { file, sha256: None }),
        nodes: nodes(run.executable, run.nodes),
        run: Some(RunEntry {
            device: target.device.to_string(),
            tier: target.tier.to_string(),
            precision: target.precision.to_string(),
        }),
        clusters: run.clusters.clone(),
        skipped: modules.unknown.clone(),
        ..Manifest::default()
    })
}
