//! Which values of the entry function the nodes of a graph hold, through all rewrites.

use std::collections::{HashMap, HashSet};

use warpforge_ir::{OpId, ValueId};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::evaluate::evaluate;
use super::{Graph, Node, NodeId, Op};

/// A value of the entry function: a node of the graph, and how the value is read from it.
#[derive(Debug, Clone)]
pub struct ValueSource {
    /// The value.
    pub value: ValueId,
    /// The node.
    pub node: NodeId,
    /// Layouts and exact conversions from the node to the value.
    steps: Vec<Node>,
}

impl ValueSource {
    /// A value that a node is.
    #[must_use]
    pub fn new(value: ValueId, node: NodeId) -> Self {
        Self { value, node, steps: Vec::new() }
    }

    /// The value, from what the node holds; nothing where strides cannot describe its layout.
    #[must_use]
    pub fn read(&self, held: &Tensor) -> Option<Tensor> {
        let next = |held: Tensor, step: &Node| evaluate(&step.op, &[held], step.element, &step.dims);
        self.steps.iter().try_fold(held.clone(), next)
    }

    /// The same value read from a node before layouts and exact conversions, the first that `holds`.
    fn read_from(mut self, nodes: &[Node], holds: impl Fn(NodeId) -> bool) -> Option<Self> {
        let mut steps = Vec::new();
        while !holds(self.node) {
            let node = &nodes[self.node.index()];
            let &[input] = node.inputs.as_slice() else { return None };
            let reads = match node.op {
                Op::Layout(_) => true,
                Op::Elementwise(Function::Convert) => is_exact(nodes[input.index()].element, node.element),
                _ => false,
            };
            if !reads {
                return None;
            }
            steps.push(node.clone());
            self.node = input;
        }
        steps.reverse();
        steps.append(&mut self.steps);
        Some(Self { steps, ..self })
    }
}

/// Whether every value of a type of floats is one of the other type.
fn is_exact(from: ElementType, to: ElementType) -> bool {
    let rank = |element| match element {
        ElementType::Float(FloatType::F16 | FloatType::Bf16) => Some(0),
        ElementType::Float(FloatType::F32) => Some(1),
        ElementType::Float(FloatType::F64) => Some(2),
        _ => None,
    };
    rank(from).zip(rank(to)).is_some_and(|(from, to)| from < to)
}

impl Graph {
    /// The values of a graph made anew: `moved` says which new node stands for an old one.
    #[must_use]
    pub fn moved_values(&self, moved: impl Fn(NodeId) -> Option<NodeId>) -> Vec<ValueSource> {
        let source = |source: &ValueSource| Some(ValueSource { node: moved(source.node)?, ..source.clone() });
        self.values.iter().filter_map(source).collect()
    }

    /// The values of the entry function that can be read from nodes in memory, by the node.
    #[must_use]
    pub fn values_in(&self, memory: &HashSet<NodeId>) -> HashMap<NodeId, Vec<ValueSource>> {
        let read = |source: &ValueSource| source.clone().read_from(&self.nodes, |id| memory.contains(&id));
        let mut by_node: HashMap<NodeId, Vec<ValueSource>> = HashMap::new();
        for source in self.values.iter().filter_map(read) {
            by_node.entry(source.node).or_default().push(source);
        }
        by_node
    }

    /// The operations of the module that nodes come from, each once. Constants, which many operations share, do not count.
    #[must_use]
    pub fn origins(&self, nodes: &[NodeId]) -> Vec<OpId> {
        let mut seen = HashSet::new();
        let computed = nodes.iter().filter(|&&id| !self.is_constant(id));
        computed.filter_map(|&id| self.node(id).origin).filter(|&op| seen.insert(op)).collect()
    }

    fn is_constant(&self, mut id: NodeId) -> bool {
        while let (Op::Layout(_), &[input]) = (&self.node(id).op, self.node(id).inputs.as_slice()) {
            id = input;
        }
        self.constant(id).is_some()
    }

    /// The values that nodes which stay can still give.
    pub(super) fn values_of_live(&self, live: &[bool]) -> Vec<ValueSource> {
        let read = |source: &ValueSource| source.clone().read_from(&self.nodes, |id| live[id.index()]);
        self.values.iter().filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::import;
    use crate::simplify::simplify;
    use crate::testing::module;

    /// The values of a function that its clusters leave in memory, by the names of their operations.
    fn in_memory(text: &str) -> Vec<String> {
        let module = module(text);
        let graph = simplify(&import(module.function("main").unwrap(), &|_| None).unwrap());
        let given = crate::testing::grouped(&graph)
            .clusters
            .iter()
            .flat_map(crate::cluster::Cluster::results)
            .collect();
        let name = |source: ValueSource| module.defining_op(source.value).map(|op| op.name().to_owned());
        graph.values_in(&given).into_values().flatten().filter_map(name).collect()
    }

    #[test]
    fn layouts_of_what_a_cluster_gives_are_values_too_and_what_is_inside_is_not() {
        let found = in_memory(
            "func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<4x2xf32> {
                %0 = stablehlo.exponential %a : tensor<2x3xf32>
                %1 = stablehlo.tanh %0 : tensor<2x3xf32>
                %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
                %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
                %4 = stablehlo.negate %3 : tensor<4x2xf32>
                %5 = stablehlo.abs %4 : tensor<4x2xf32>
                func.return %5 : tensor<4x2xf32>\n}",
        );
        assert!(found.contains(&"stablehlo.tanh".to_owned()), "{found:?}");
        assert!(found.contains(&"stablehlo.abs".to_owned()), "{found:?}");
        assert!(!found.contains(&"stablehlo.exponential".to_owned()), "{found:?}");
        assert!(!found.contains(&"stablehlo.negate".to_owned()), "{found:?}");
    }
}
