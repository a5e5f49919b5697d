//! Execution order: which node a tensor belongs to, and which node comes first.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::Class;
use crate::folder::{Folder, Manifest, NodeEntry};
use crate::graph::Graph;

/// The nodes of the graph in execution order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    nodes: Vec<NodeEntry>,
    by_name: HashMap<String, usize>,
    by_tensor: HashMap<String, usize>,
}

impl Order {
    /// The order of a manifest, of the golden run before that of the candidate, else of the model.
    pub(crate) fn new(golden: &Folder, candidate: &Folder, graph: Option<&Graph<'_>>) -> Self {
        let listed = |folder: &Folder| folder.manifest().map(|manifest: &Manifest| manifest.nodes.clone());
        let manifests = [listed(golden), listed(candidate)].into_iter().flatten();
        let mut nodes = manifests.into_iter().find(|nodes| !nodes.is_empty()).unwrap_or_default();
        let in_module = graph.map(|graph| graph.nodes.list()).unwrap_or_default();
        if nodes.is_empty() {
            nodes = in_module
                .iter()
                .map(|node| NodeEntry { name: node.name.clone(), ..NodeEntry::default() })
                .collect();
        }
        for node in &mut nodes {
            if node.source.is_none()
                && let Some((_, known)) = graph.and_then(|graph| graph.nodes.named(&node.name))
            {
                node.source = known.source.as_ref().map(ToString::to_string);
            }
        }
        let by_name = nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), at)).collect();
        let tensors = nodes.iter().enumerate();
        let by_tensor =
            tensors.flat_map(|(at, node)| node.tensors.iter().map(move |name| (name.clone(), at)));
        Self { by_tensor: by_tensor.collect(), by_name, nodes }
    }

    /// Whether nothing is known about the order.
    pub(crate) fn is_unknown(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node at a position.
    pub(crate) fn node(&self, position: usize) -> &NodeEntry {
        &self.nodes[position]
    }

    /// The position of the node that a tensor is a value of.
    pub(crate) fn position(&self, class: Class, name: &str, graph: Option<&Graph<'_>>) -> Option<usize> {
        if class != Class::Activations {
            let graph = graph?;
            let (_, node) = graph.node_of(graph.value(class, name)?)?;
            return self.by_name.get(&node.name).copied();
        }
        // `split.1` is the second value of `split`.
        let mut whole = name;
        loop {
            if let Some(&at) = self.by_tensor.get(whole).or_else(|| self.by_name.get(whole)) {
                return Some(at);
            }
            let (start, index) = whole.rsplit_once('.')?;
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            whole = start;
        }
    }
}

/// Compares names as people do: `step_2` before `step_10`.
pub(crate) fn natural(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left, right);
    loop {
        let (Some(first), Some(second)) = (a.chars().next(), b.chars().next()) else {
            return a.len().cmp(&b.len());
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (digits_a, rest_a) = number(a);
            let (digits_b, rest_b) = number(b);
            let order = digits_a.len().cmp(&digits_b.len()).then_with(|| digits_a.cmp(digits_b));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (rest_a, rest_b);
        } else if first == second {
            (a, b) = (&a[first.len_utf8()..], &b[second.len_utf8()..]);
        } else {
            return first.cmp(&second);
        }
    }
}

/// The digits that a text begins with, without leading zeros, and what follows them.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["step_10", "step_2", "step_002b", "a", "step_", "step_1x10", "step_1x9"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a", "step_", "step_1x9", "step_1x10", "step_2", "step_002b", "step_10"]);
    }

    #[test]
    fn values_of_a_tuple_belong_to_its_node() {
        let nodes =
            ["conv.1", "split"].map(|name| NodeEntry { name: name.to_owned(), ..NodeEntry::default() });
        let by_name = nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), at)).collect();
        let order = Order { nodes: nodes.to_vec(), by_name, by_tensor: HashMap::new() };
        let position = |name: &str| order.position(Class::Activations, name, None);
        assert_eq!(position("split.0.1"), Some(1));
        assert_eq!(position("conv.1"), Some(0));
        assert_eq!((position("split.x"), position("other"), position("split.")), (None, None, None));
        assert_eq!(order.position(Class::Outputs, "split", None), None);
    }
}
