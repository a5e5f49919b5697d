//! How many contractions come one after the other before a value is computed, and before it is read: what must wait in memory.

use super::{Graph, NodeId, Op};

/// The depths of a graph's nodes.
pub(crate) struct Depths {
    /// The contractions before a node has its value.
    of: Vec<usize>,
    /// The contractions before a node reads its inputs: elementwise operations wait for the first that needs them.
    reads_at: Vec<usize>,
}

impl Depths {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut of: Vec<usize> = Vec::with_capacity(graph.nodes.len());
        let mut reads_at = Vec::with_capacity(graph.nodes.len());
        for id in graph.ids() {
            let node = graph.node(id);
            let deepest = node.inputs.iter().map(|input| of[input.index()]).max().unwrap_or(0);
            of.push(deepest + usize::from(matches!(node.op, Op::Dot(_) | Op::Conv(_))));
            reads_at.push(deepest);
        }
        let users = graph.users();
        for id in graph.ids().rev() {
            let waits = matches!(graph.node(id).op, Op::Elementwise(_) | Op::Compare(..) | Op::Layout(_));
            if waits && !graph.outputs.contains(&id) {
                let first = users[id.index()].iter().map(|user| reads_at[user.index()]).min();
                reads_at[id.index()] = reads_at[id.index()].max(first.unwrap_or(0));
            }
        }
        Self { of, reads_at }
    }

    /// The depth at which a node reads its inputs.
    pub(crate) fn reads_at(&self, id: NodeId) -> usize {
        self.reads_at[id.index()]
    }

    /// Whether a reader of a value waits for what is contracted since: the value is kept for it meanwhile, as a forward pass keeps values
    /// for the backward pass.
    pub(crate) fn is_beyond(&self, reader: NodeId, value: NodeId) -> bool {
        self.reads_at[reader.index()] > self.of[value.index()]
    }
}
