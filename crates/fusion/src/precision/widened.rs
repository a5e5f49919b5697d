//! Contractions of operands that were widened for them read the narrow values.
//!
//! Exporters widen bf16 and f16 before attention. Where both operands are narrow, products of narrow values accumulated in f32 are
//! exactly what the wide contraction computes. Where one is narrow in a batched matmul (the weights of attention with its values, queries with the
//! gradient by the scores), the other one is rounded, as fused attention kernels do everywhere.

use std::collections::HashMap;

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::graph::{Graph, NodeId, Op, Rewrite, below_layouts};

/// The graph whose matmuls read what their operands were before they were widened.
pub(crate) fn read_before_widening(graph: &Graph) -> Graph {
    let mut rewrite = Rewrite::new(graph);
    let mut narrow: HashMap<(NodeId, ElementType), NodeId> = HashMap::new();
    for id in graph.ids() {
        let mut node = rewrite.next(id);
        let old = graph.node(id);
        if let (Op::Dot(dot), &[lhs, rhs], ElementType::F32) = (&old.op, old.inputs.as_slice(), old.element) {
            let batched = !dot.lhs_batch.is_empty();
            let element = match [lhs, rhs].map(|side| widened_from(graph, side)) {
                [Some(left), Some(right)] if left == right => Some(left),
                [None, Some(narrow)] if batched && graph.node(lhs).element == ElementType::F32 => {
                    Some(narrow)
                }
                [Some(narrow), None] if batched && graph.node(rhs).element == ElementType::F32 => {
                    Some(narrow)
                }
                _ => None,
            };
            if let Some(element) = element {
                let mut side = |id: NodeId| {
                    *narrow.entry((id, element)).or_insert_with(|| narrowed(&mut rewrite, id, element))
                };
                node.inputs = vec![side(lhs), side(rhs)];
            }
        }
        let new = rewrite.push(node);
        rewrite.end(new);
    }
    rewrite.finish(None).pruned()
}

/// The narrow type that a value of f32 was widened from.
fn widened_from(graph: &Graph, id: NodeId) -> Option<ElementType> {
    let (source, _) = below_layouts(graph, id);
    let node = graph.node(source);
    let from = graph.node(*node.inputs.first()?).element;
    let widens = matches!(node.op, Op::Elementwise(Function::Convert)) && node.element == ElementType::F32;
    (widens && matches!(from, ElementType::BF16 | ElementType::F16)).then_some(from)
}

/// A value before it was widened, or rounded where it was not, in its own layout.
fn narrowed(rewrite: &mut Rewrite<'_>, id: NodeId, element: ElementType) -> NodeId {
    let graph = rewrite.old;
    if widened_from(graph, id) != Some(element) {
        return rewrite.convert(rewrite.moved(id), element);
    }
    let (source, layouts) = below_layouts(graph, id);
    let before = rewrite.moved(graph.node(source).inputs[0]);
    rewrite.relayout(&layouts, before)
}
