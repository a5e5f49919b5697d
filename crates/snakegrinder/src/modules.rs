//! Which value of the graph a module of the Python model returned.
//!
//! The Python package compares what the modules gave with what the nodes gave, and leaves the answer in the archive. For
//! other archives the graph itself has to do: every node says inside which call of which module it was traced, and where
//! one value leaves a call, that is what the module returned.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;

use crate::graph::schema::{Argument, Graph, Node};
use crate::lower::graph::{names, node_name, output_names};
use crate::{Archive, Error};

/// Where the Python package says it.
const FILE: &str = "extra/warpforge_modules.json";
/// The newest form of that file that is understood.
const SCHEMA_VERSION: u64 = 1;

/// What a module returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleValue {
    /// The module's name, `encoder.layer.0`; `name[1]` for a part of what it returned, `name@2` for its second call.
    pub name: String,
    /// The node of the graph with this value, or why there is none.
    pub node: Result<String, String>,
}

/// The file.
#[derive(Deserialize)]
struct Listed {
    schema_version: u64,
    modules: BTreeMap<String, Place>,
}

/// What is said of one value.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Node(String),
    Unknown(String),
}

impl Archive {
    /// What each module of the Python model returned, as far as the archive tells.
    ///
    /// # Errors
    ///
    /// When the archive's own list of them cannot be read.
    pub fn module_values(&self) -> Result<Vec<ModuleValue>, Error> {
        if !self.has(FILE) {
            return Ok(from_graph(&self.program.graph_module.graph));
        }
        let listed: Listed = self.json(FILE)?;
        if listed.schema_version > SCHEMA_VERSION {
            return Err(Error::Version {
                what: "list of modules",
                found: listed.schema_version.to_string(),
                supported: SCHEMA_VERSION.to_string(),
            });
        }
        let value = |(name, place)| match place {
            Place::Node(node) => ModuleValue { name, node: Ok(node) },
            Place::Unknown(reason) => ModuleValue { name, node: Err(reason) },
        };
        Ok(listed.modules.into_iter().map(value).collect())
    }
}

/// A call of a module: its name, and which call of it.
type Call<'a> = (&'a str, usize);

/// The values that leave each call of a module.
fn from_graph(graph: &Graph) -> Vec<ModuleValue> {
    let calls: Vec<HashSet<Call<'_>>> = graph.nodes.iter().map(calls).collect();
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for name in node.inputs.iter().flat_map(|input| names(&input.arg)) {
            users.entry(name).or_default().push(at);
        }
    }
    let returned: HashSet<&str> = graph.outputs.iter().flat_map(names).collect();
    let mut leaving: BTreeMap<Call<'_>, Vec<&str>> = BTreeMap::new();
    for (node, inside) in graph.nodes.iter().zip(&calls) {
        for call in inside {
            let found = leaving.entry(*call).or_default();
            for name in output_names(node) {
                // Nodes of a backward pass were traced in no module, and use values of every call.
                let outside = |&user: &usize| !calls[user].is_empty() && !calls[user].contains(call);
                if returned.contains(name) || users.get(name).is_some_and(|users| users.iter().any(outside)) {
                    found.push(if is_alone(node) { node_name(node) } else { name });
                }
            }
        }
    }
    leaving.remove(&("", 1));
    let value = |((path, call), found): (Call<'_>, Vec<&str>)| ModuleValue {
        name: if call == 1 { path.to_owned() } else { format!("{path}@{call}") },
        node: match found.as_slice() {
            [one] => Ok((*one).to_owned()),
            [] => Err("nothing outside of the module uses what it returned".to_owned()),
            several => {
                Err(format!("{} values leave the module; the archive does not name them", several.len()))
            }
        },
    };
    leaving.into_iter().map(value).collect()
}

/// Whether a node gives one tensor, which then goes by the node's own name.
fn is_alone(node: &Node) -> bool {
    matches!(node.outputs.as_slice(), [Argument::AsTensor(_)])
}

/// The calls that a node was traced in: `KEY,NAME,TYPE;…`, where the keys of later calls end in `@1`, `@2`, ….
fn calls(node: &Node) -> HashSet<Call<'_>> {
    let stack = node.metadata.get("nn_module_stack").map(String::as_str).unwrap_or_default();
    stack.split(';').filter_map(parsed).collect()
}

fn parsed(entry: &str) -> Option<Call<'_>> {
    let (key, rest) = entry.split_once(',')?;
    let (path, _) = rest.split_once(',')?;
    let again = key.rsplit_once('@').and_then(|(_, count)| count.parse::<usize>().ok()).unwrap_or(0);
    let path = path.split_once('@').map_or(path, |(path, _)| path);
    Some((path, again.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of nodes `(name, stack, inputs)` that returns `outputs`.
    fn graph(nodes: &[(&str, &str, &[&str])], outputs: &[&str]) -> Graph {
        let tensor = |name: &&str| serde_json::json!({"as_tensor": {"name": name}});
        let nodes: Vec<serde_json::Value> = nodes
            .iter()
            .map(|(name, stack, inputs)| {
                let inputs: Vec<_> = inputs.iter().map(|i| serde_json::json!({"name": "", "arg": tensor(i)})).collect();
                let stack = stack.split(' ').map(|call| {
                    let path = call.split('@').next().unwrap_or_default();
                    format!("L__self__{call},{path},torch.nn.Module")
                });
                let metadata = serde_json::json!({"nn_module_stack": stack.collect::<Vec<_>>().join(";")});
                let metadata = if name.ends_with("_backward") { serde_json::json!({}) } else { metadata };
                serde_json::json!({"target": "t", "name": name, "inputs": inputs, "outputs": [tensor(name)], "metadata": metadata})
            })
            .collect();
        let outputs: Vec<_> = outputs.iter().map(tensor).collect();
        serde_json::from_value(
            serde_json::json!({"inputs": [], "outputs": outputs, "nodes": nodes, "tensor_values": {}}),
        )
        .expect("a graph")
    }

    #[test]
    fn what_leaves_a_call_is_what_the_module_returned() {
        let nodes: &[(&str, &str, &[&str])] = &[
            ("wide", " block block.fc", &[]),
            ("act", " block", &["wide"]),
            ("wide_1", " block@1 block.fc@1", &["act"]),
            ("act_1", " block@1", &["wide_1"]),
            ("a", " two", &["act_1"]),
            ("b", " two", &["act_1"]),
            ("dead", " unused", &["act_1"]),
            ("sum", "", &["a", "b"]),
            ("wide_backward", "", &["sum", "wide", "act"]),
        ];
        let found = from_graph(&graph(nodes, &["sum"]));
        let shown: Vec<(&str, Result<&str, &str>)> = found
            .iter()
            .map(|value| (value.name.as_str(), value.node.as_deref().map_err(String::as_str)))
            .collect();
        assert_eq!(
            shown,
            [
                ("block", Ok("act")),
                ("block@2", Ok("act_1")),
                ("block.fc", Ok("wide")),
                ("block.fc@2", Ok("wide_1")),
                ("two", Err("2 values leave the module; the archive does not name them")),
                ("unused", Err("nothing outside of the module uses what it returned")),
            ]
        );
    }
}
