//! A function as a graph of tensors, every operation in one canonical form.

mod build;
mod depth;
mod evaluate;
mod import;
mod op;
mod reference;
mod rewrite;
mod scalar;
mod values;

use std::collections::HashMap;

pub use build::Builder;
pub(crate) use build::inverse;
pub(crate) use depth::Depths;
pub(crate) use evaluate::evaluate;
#[cfg(test)]
pub(crate) use import::import;
pub use import::{ImportError, OpSpan, reduce_kind};
pub(crate) use import::{OpByOp, import_for, import_op_by_op};
pub use op::{Conv, Dot, Op, OpaqueOp, Window};
pub(crate) use rewrite::{Rewrite, below_layouts};
pub use scalar::{Combiner, Comparator, Order, ReduceKind, ScalarFunction, ScalarOp, ScalarStep};
pub use values::ValueSource;
use warpforge_ir::OpId;
use warpforge_tensor::{ElementType, Tensor};

/// The place of a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The place as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor and how it is computed.
#[derive(Debug, Clone)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// What it is computed from: nodes before it.
    pub inputs: Vec<NodeId>,
    /// The type of its elements.
    pub element: ElementType,
    /// Its sizes.
    pub dims: Vec<usize>,
    /// The operation of the module that it comes from.
    pub origin: Option<OpId>,
}

impl Node {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len() * self.element.byte_width()
    }
}

/// Nodes in an order in which they can be computed.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The nodes; inputs come before their users.
    pub nodes: Vec<Node>,
    /// The results of the function.
    pub outputs: Vec<NodeId>,
    /// Nodes that are run for what they do, in order.
    pub effects: Vec<NodeId>,
    /// The values of the entry function that the nodes hold.
    pub values: Vec<ValueSource>,
}

impl Graph {
    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The places of all nodes, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// The tensor of a constant.
    #[must_use]
    pub fn constant(&self, id: NodeId) -> Option<&Tensor> {
        match &self.node(id).op {
            Op::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether a value is known when compiling: a constant, converted or laid out otherwise.
    #[must_use]
    pub fn is_known(&self, mut id: NodeId) -> bool {
        while self.constant(id).is_none() {
            let [only] = self.node(id).inputs[..] else { return false };
            id = only;
        }
        true
    }

    /// The values that a node gives: itself, or the parts of its tuple that the graph has.
    #[must_use]
    pub fn results(&self, id: NodeId) -> Vec<NodeId> {
        if !self.node(id).op.is_tuple() {
            return vec![id];
        }
        let is_part = |part: &NodeId| {
            let node = self.node(*part);
            matches!(node.op, Op::Result(_)) && node.inputs.first() == Some(&id)
        };
        self.ids().filter(is_part).collect()
    }

    /// A part of the tuple that a node gives, where the graph has it.
    #[must_use]
    pub fn result(&self, id: NodeId, at: usize) -> Option<NodeId> {
        let is = |part: &NodeId| matches!(self.node(*part).op, Op::Result(number) if number == at);
        self.results(id).into_iter().find(is)
    }

    /// For each node those that use it, each as often as it does.
    #[must_use]
    pub fn users(&self) -> Vec<Vec<NodeId>> {
        let mut users = vec![Vec::new(); self.nodes.len()];
        for id in self.ids() {
            for input in &self.node(id).inputs {
                users[input.index()].push(id);
            }
        }
        users
    }

    /// For each node the nodes besides layouts that use it, directly or through layouts, each once.
    #[must_use]
    pub fn users_through_layouts(&self) -> Vec<Vec<NodeId>> {
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for id in self.ids().rev() {
            let node = self.node(id);
            let through = match node.op {
                Op::Layout(_) => users[id.index()].clone(),
                _ => vec![id],
            };
            for input in &node.inputs {
                let known = &mut users[input.index()];
                known
                    .extend(through.iter().copied().filter(|user| !known.contains(user)).collect::<Vec<_>>());
            }
        }
        users
    }

    /// The graph without the nodes that nothing needs.
    #[must_use]
    pub fn pruned(self) -> Self {
        let mut live = vec![false; self.nodes.len()];
        for id in self.outputs.iter().chain(&self.effects) {
            live[id.index()] = true;
        }
        for id in self.ids().rev() {
            if live[id.index()] {
                self.node(id).inputs.iter().for_each(|input| live[input.index()] = true);
            }
        }
        let mut values = self.values_of_live(&live);
        let mut places = HashMap::new();
        let mut nodes = Vec::new();
        for (id, mut node) in self.ids().zip(self.nodes) {
            if live[id.index()] {
                node.inputs.iter_mut().for_each(|input| *input = places[input]);
                places.insert(id, NodeId(nodes.len() as u32));
                nodes.push(node);
            }
        }
        let moved = |ids: Vec<NodeId>| ids.into_iter().map(|id| places[&id]).collect();
        values.iter_mut().for_each(|source| source.node = places[&source.node]);
        Self { outputs: moved(self.outputs), effects: moved(self.effects), nodes, values }
    }
}
