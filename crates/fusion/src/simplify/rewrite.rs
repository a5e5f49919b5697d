//! Rewriting a graph node by node.

use std::collections::HashMap;

use warpforge_tensor::elementwise::Function;

use crate::graph::{Builder, Graph, Node, NodeId, Op};

/// A graph made anew from another, node by node.
pub(super) struct Rewrite<'g> {
    pub(super) old: &'g Graph,
    pub(super) builder: Builder,
    pub(super) made: HashMap<NodeId, NodeId>,
}

impl<'g> Rewrite<'g> {
    pub(super) fn new(old: &'g Graph) -> Self {
        Self { old, builder: Builder::default(), made: HashMap::new() }
    }

    /// The same node in the new graph; its inputs must be there.
    pub(super) fn copy(&mut self, id: NodeId) -> NodeId {
        let Node { op, inputs, element, dims, origin } = self.old.node(id).clone();
        let inputs = inputs.iter().map(|input| self.made[input]).collect();
        self.builder.origin = origin;
        let new = self.builder.add(op, inputs, element, dims);
        self.made.insert(id, new);
        new
    }

    /// A function of nodes of the old graph in a node's place.
    pub(super) fn elementwise(&mut self, id: NodeId, function: Function, operands: &[NodeId]) {
        let Node { element, dims, origin, .. } = self.old.node(id).clone();
        let inputs = operands.iter().map(|operand| self.made[operand]).collect();
        self.builder.origin = origin;
        let new = self.builder.add(Op::Elementwise(function), inputs, element, dims);
        self.made.insert(id, new);
    }

    pub(super) fn finish(mut self) -> Graph {
        self.builder.set_values(self.old.moved_values(|id| self.made.get(&id).copied()));
        let moved = |ids: &[NodeId]| ids.iter().map(|id| self.made[id]).collect::<Vec<NodeId>>();
        let (outputs, effects) = (moved(&self.old.outputs), moved(&self.old.effects));
        self.builder.finish(outputs, effects)
    }
}
