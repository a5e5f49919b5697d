//! A graph made anew node by node, with conversions added. Nodes keep their order, so spans of operations can follow.

use warpforge_ir::OpId;
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::{Graph, Node, NodeId, Op, OpSpan};

/// The nodes so far.
pub(crate) struct Rewrite<'g> {
    pub(crate) old: &'g Graph,
    nodes: Vec<Node>,
    /// The new node of each old one so far.
    moved: Vec<NodeId>,
    /// How many new nodes there were before each old one.
    starts: Vec<usize>,
}

impl<'g> Rewrite<'g> {
    pub(crate) fn new(old: &'g Graph) -> Self {
        Self { old, nodes: Vec::new(), moved: Vec::new(), starts: Vec::new() }
    }

    /// Begins with the next old node: a copy of it that reads the new nodes of its inputs.
    pub(crate) fn next(&mut self, id: NodeId) -> Node {
        self.starts.push(self.nodes.len());
        let mut node = self.old.node(id).clone();
        node.inputs.iter_mut().for_each(|input| *input = self.moved[input.index()]);
        node
    }

    /// Ends it: the new node that stands for it.
    pub(crate) fn end(&mut self, new: NodeId) {
        self.moved.push(new);
    }

    /// The new node that stands for an old one.
    pub(crate) fn moved(&self, id: NodeId) -> NodeId {
        self.moved[id.index()]
    }

    /// The element type of a new node.
    pub(crate) fn element(&self, id: NodeId) -> ElementType {
        self.nodes[id.index()].element
    }

    /// The sizes of a new node.
    pub(crate) fn dims(&self, id: NodeId) -> &[usize] {
        &self.nodes[id.index()].dims
    }

    /// The operation that a new node comes from.
    pub(crate) fn origin(&self, id: NodeId) -> Option<OpId> {
        self.nodes[id.index()].origin
    }

    pub(crate) fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// A new node converted.
    pub(crate) fn convert(&mut self, of: NodeId, element: ElementType) -> NodeId {
        let Node { dims, origin, .. } = self.nodes[of.index()].clone();
        self.push(Node { op: Op::Elementwise(Function::Convert), inputs: vec![of], element, dims, origin })
    }

    /// The layouts of old nodes, from the outermost on, applied to a new node.
    pub(crate) fn relayout(&mut self, layouts: &[NodeId], mut new: NodeId) -> NodeId {
        let element = self.element(new);
        for &at in layouts.iter().rev() {
            let Node { op, dims, origin, .. } = self.old.node(at).clone();
            new = self.push(Node { op, inputs: vec![new], element, dims, origin });
        }
        new
    }

    /// The new graph; `spans` follow their nodes.
    pub(crate) fn finish(mut self, spans: Option<&mut [OpSpan]>) -> Graph {
        self.starts.push(self.nodes.len());
        let moved = |ids: &[NodeId]| ids.iter().map(|id| self.moved[id.index()]).collect::<Vec<NodeId>>();
        for span in spans.into_iter().flatten() {
            span.nodes = self.starts[span.nodes];
            if let Some(results) = &mut span.results {
                *results = moved(results);
            }
        }
        let (outputs, effects) = (moved(&self.old.outputs), moved(&self.old.effects));
        let values = self.old.moved_values(|id| Some(self.moved[id.index()]));
        Graph { nodes: self.nodes, outputs, effects, values }
    }
}

/// The value that layouts lead to, and the layouts, the outermost first.
pub(crate) fn below_layouts(graph: &Graph, mut id: NodeId) -> (NodeId, Vec<NodeId>) {
    let mut layouts = Vec::new();
    while let Op::Layout(_) = graph.node(id).op {
        layouts.push(id);
        id = graph.node(id).inputs[0];
    }
    (id, layouts)
}
