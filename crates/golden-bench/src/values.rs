//! The values inside a run, by the names that a golden folder has for them: nodes of the graph, and modules of the Python model.

use std::collections::{BTreeMap, HashMap};

use warpforge::{ClusterValues, Model, ModuleValue, Tensor};
use warpforge_golden::folder::{ClusterEntry, NodeEntry};
use warpforge_ir::ValueId;
use warpforge_ir::nodes::{Node, Nodes};
use warpforge_runtime::Executable;

/// The file of activations that go by the names of modules.
pub const MODULES: &str = "modules";

/// The values of the graph's nodes that clusters left in memory, and the clusters, in execution order.
#[must_use]
pub fn at_borders(
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
pub struct Modules<'a> {
    /// Those that a node has.
    pub values: Vec<(String, &'a Tensor)>,
    /// Those that no node has, and why.
    pub unknown: BTreeMap<String, String>,
}

impl<'a> Modules<'a> {
    /// Those that the model's file knows, of a run's nodes.
    ///
    /// # Errors
    ///
    /// When the archive's list of them cannot be read.
    pub fn of(model: &Model, nodes: &'a [(String, Tensor)]) -> Result<Self, warpforge::Error> {
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
#[must_use]
pub fn nodes(executable: &dyn Executable, values: &[(String, Tensor)]) -> Vec<NodeEntry> {
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
