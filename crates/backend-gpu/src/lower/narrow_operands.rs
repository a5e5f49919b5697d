//! Removes conversions of GEMM operands from bf16 or f16 to f32.
//!
//! Exporters widen operands before attention. With two narrow operands the result is exactly that of the wide GEMM
//! with f32 accumulation. With one, in a batched GEMM (weights with values, queries with the gradient of the scores),
//! the other is rounded, as fused attention kernels do.

use std::collections::HashMap;

use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

/// Most layout operations between a GEMM and the conversion.
const MAX_LAYOUTS: usize = 16;

/// The graph with narrow GEMM operands.
pub(super) fn narrow_operands(graph: &Graph) -> Graph {
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
    /// New ids of the nodes so far.
    made: Vec<NodeId>,
    narrowed: HashMap<NodeId, NodeId>,
    /// Rounded values.
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
        let (op, inputs) = (Op::Elementwise(Function::Convert), vec![self.made[id.index()]]);
        let new = self.push(Node { op, inputs, element, dims, origin });
        self.rounded.insert((id, element), new);
        new
    }

    /// The value before conversion, in the same layout.
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
                Op::Layout(_) if layouts.len() < MAX_LAYOUTS => layouts.push(at),
                Op::Elementwise(Function::Convert) if is_narrow(self.old.node(input).element) => break input,
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
