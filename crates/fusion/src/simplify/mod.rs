//! Changes to a whole graph that need to know who uses what.

mod batch_norm;
mod gelu;
mod rotary;

use std::collections::HashMap;

use warpforge_tensor::elementwise::Function;

use crate::graph::{Builder, Graph, Node, NodeId, Op};

/// The graph in its best form.
#[must_use]
pub(crate) fn simplify(graph: &Graph) -> Graph {
    gelu::join(&rotary::canonicalise(&batch_norm::fold_into_weights(graph)))
}

/// A graph made anew from another, node by node.
struct Rewrite<'g> {
    old: &'g Graph,
    builder: Builder,
    made: HashMap<NodeId, NodeId>,
}

impl<'g> Rewrite<'g> {
    fn new(old: &'g Graph) -> Self {
        Self { old, builder: Builder::default(), made: HashMap::new() }
    }

    /// The same node in the new graph; its inputs must be there.
    fn copy(&mut self, id: NodeId) -> NodeId {
        let Node { op, inputs, element, dims, origin } = self.old.node(id).clone();
        let inputs = inputs.iter().map(|input| self.made[input]).collect();
        self.builder.origin = origin;
        let new = self.builder.add(op, inputs, element, dims);
        self.made.insert(id, new);
        new
    }

    /// A function of nodes of the old graph in a node's place.
    fn elementwise(&mut self, id: NodeId, function: Function, operands: &[NodeId]) {
        let Node { element, dims, origin, .. } = self.old.node(id).clone();
        let inputs = operands.iter().map(|operand| self.made[operand]).collect();
        self.builder.origin = origin;
        let new = self.builder.add(Op::Elementwise(function), inputs, element, dims);
        self.made.insert(id, new);
    }

    fn finish(mut self) -> Graph {
        self.builder.set_values(self.old.moved_values(|id| self.made.get(&id).copied()));
        let moved = |ids: &[NodeId]| ids.iter().map(|id| self.made[id]).collect::<Vec<NodeId>>();
        let (outputs, effects) = (moved(&self.old.outputs), moved(&self.old.effects));
        self.builder.finish(outputs, effects)
    }
}
