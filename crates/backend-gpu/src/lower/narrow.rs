//! Products of numbers that were widened for them: the narrow numbers give the same products, and faster.
//!
//! Exporters widen bf16 and f16 before attention. Both operands narrow: products of narrow numbers summed in f32 are what
//! the wide product computes, exactly. Only one narrow, in a product of batches (the weights of attention with its values,
//! queries with the gradient by the scores): the other one is rounded, as fused attention kernels everywhere do.

use std::collections::HashMap;

use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType};

/// Most layouts between a product and what widens its operand.
const DEEPEST: usize = 16;

/// The graph with narrow products.
pub(super) fn narrow(graph: &Graph) -> Graph {
    let mut rewrite = Rewrite {
        old: graph,
        nodes: Vec::new(),
        made: Vec::new(),
        narrowed: HashMap::new(),
        rounded: HashMap::new(),
    };
    for id in graph.ids() {
        let mut node = graph.node(id).clone();
        node.inputs = node.inputs.iter().map(|input| rewrite.made[input.index()]).collect();
        if let Op::Dot(dot) = &node.op
            && node.element == ElementType::F32
            && let [lhs, rhs] = graph.node(id).inputs[..]
        {
            let sides = [rewrite.narrowed(lhs), rewrite.narrowed(rhs)];
            let element = |rewrite: &Rewrite<'_>, id: NodeId| rewrite.nodes[id.index()].element;
            let wide = |id: NodeId| !dot.lhs_batch.is_empty() && graph.node(id).element == ElementType::F32;
            match sides {
                [Some(left), Some(right)] if element(&rewrite, left) == element(&rewrite, right) => {
                    node.inputs = vec![left, right];
                }
                [None, Some(right)] if wide(lhs) => {
                    let element = element(&rewrite, right);
                    node.inputs = vec![rewrite.rounded(lhs, element), right];
                }
                [Some(left), None] if wide(rhs) => {
                    let element = element(&rewrite, left);
                    node.inputs = vec![left, rewrite.rounded(rhs, element)];
                }
                _ => {}
            }
        }
        let new = rewrite.push(node);
        rewrite.made.push(new);
    }
    let moved = |ids: &[NodeId]| ids.iter().map(|id| rewrite.made[id.index()]).collect::<Vec<NodeId>>();
    let (outputs, effects) = (moved(&graph.outputs), moved(&graph.effects));
    Graph { nodes: rewrite.nodes, outputs, effects }.pruned()
}

struct Rewrite<'g> {
    old: &'g Graph,
    nodes: Vec<Node>,
    /// The new place of each old node so far.
    made: Vec<NodeId>,
    narrowed: HashMap<NodeId, NodeId>,
    /// Values that were rounded, each once.
    rounded: HashMap<(NodeId, ElementType), NodeId>,
}

impl Rewrite<'_> {
    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// A value rounded to a narrow type.
    fn rounded(&mut self, id: NodeId, element: ElementType) -> NodeId {
        if let Some(&known) = self.rounded.get(&(id, element)) {
            return known;
        }
        let Node { dims, origin, .. } = self.old.node(id).clone();
        let (op, inputs) = (Op::Elementwise(OpKind::Convert), vec![self.made[id.index()]]);
        let new = self.push(Node { op, inputs, element, dims, origin });
        self.rounded.insert((id, element), new);
        new
    }

    /// What a value was before it was widened, in the value's own layout.
    fn narrowed(&mut self, id: NodeId) -> Option<NodeId> {
        if let Some(&known) = self.narrowed.get(&id) {
            return Some(known);
        }
        let mut layouts = Vec::new();
        let mut at = id;
        let source = loop {
            let node = self.old.node(at);
            let &input = node.inputs.first()?;
            match &node.op {
                Op::Layout(_) if layouts.len() < DEEPEST => layouts.push(at),
                Op::Elementwise(OpKind::Convert) if is_narrow(self.old.node(input).element) => break input,
                _ => return None,
            }
            at = input;
        };
        let element = self.old.node(source).element;
        let mut made = self.made[source.index()];
        for at in layouts.into_iter().rev() {
            let Node { op, dims, origin, .. } = self.old.node(at).clone();
            made = self.push(Node { op, inputs: vec![made], element, dims, origin });
        }
        self.narrowed.insert(id, made);
        Some(made)
    }
}

fn is_narrow(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16))
}
