//! `--save`: the run as a folder that `warpt validate` compares with PyTorch's.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use warpforge::{ClusterValues, CompiledModel, Model, ModuleValue, Outputs, ResultRole, Scalar, Tensor};
use warpforge_golden::folder::{ClusterEntry, FileEntry, FolderWriter, Manifest, NodeEntry, RunEntry};
use warpforge_golden::{Class, Error};
use warpforge_ir::ValueId;
use warpforge_ir::nodes::{Node, Nodes};
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

/// The file of activations that go by the names of modules.
const MODULES: &str = "modules";

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

/// The values of the graph's nodes that clusters left in memory, and the clusters, in execution order.
pub(super) fn at_borders(
    executable: &dyn Executable,
    given: &[ClusterValues],
) -> (Vec<(String, Tensor)>, Vec<ClusterEntry>) {
    let program = executable.program();
    let nodes = program.module().function(program.entry()).map(Nodes::of).unwrap_or_default();
    let names: HashMap<ValueId, String> =
        nodes.list().iter().flat_map(Node::named_values).map(|(name, value)| (value, name)).collect();
    let (mut tensors, mut clusters) = (Vec::new(), Vec::new());
    for cluster in given {
        let named = cluster.values.iter().filter_map(|(value, tensor)| Some((names.get(value)?, tensor)));
        let named: Vec<(String, Tensor)> =
            named.map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        clusters.push(ClusterEntry {
            kernel: cluster.kernel.clone(),
            nodes: nodes.among(&cluster.ops).into_iter().map(|node| node.name.clone()).collect(),
            tensors: named.iter().map(|(name, _)| name.clone()).collect(),
        });
        tensors.extend(named);
    }
    (tensors, clusters)
}

/// What the modules of the Python model returned: the values of nodes, by the modules' names.
pub(super) struct Modules<'a> {
    values: Vec<(String, &'a Tensor)>,
    /// Those that no node has, and why.
    unknown: BTreeMap<String, String>,
}

impl<'a> Modules<'a> {
    /// Those that the model's file knows, of a run's nodes.
    pub(super) fn of(model: &Model, nodes: &'a [(String, Tensor)]) -> Result<Self, warpforge::Error> {
        let nodes: HashMap<&str, &'a Tensor> =
            nodes.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut found = Self { values: Vec::new(), unknown: BTreeMap::new() };
        for ModuleValue { name, node } in model.module_values()? {
            let value = node.and_then(|node| {
                let none = || format!("the run has no value of the node `{node}`");
                nodes.get(node.as_str()).copied().ok_or_else(none)
            });
            match value {
                Ok(tensor) => found.values.push((name, tensor)),
                Err(reason) => {
                    found.unknown.insert(format!("{MODULES}/{name}"), reason);
                }
            }
        }
        Ok(found)
    }
}

/// The nodes in execution order, with the tensors that each gave.
fn nodes(executable: &dyn Executable, values: &[(String, Tensor)]) -> Vec<NodeEntry> {
    let program = executable.program();
    let Some(function) = program.module().function(program.entry()) else { return Vec::new() };
    let mut tensors: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, _) in values {
        let numbered = name.rsplit_once('.').filter(|(_, index)| index.bytes().all(|b| b.is_ascii_digit()));
        let node = numbered.map_or(name.as_str(), |(node, _)| node);
        tensors.entry(node).or_default().push(name.clone());
    }
    let list = Nodes::of(function);
    let entry = |node: &Node| NodeEntry {
        name: node.name.clone(),
        source: node.source.as_ref().map(ToString::to_string),
        tensors: tensors.get(node.name.as_str()).cloned().unwrap_or_default(),
        ..NodeEntry::default()
    };
    list.list().iter().map(entry).collect()
}
