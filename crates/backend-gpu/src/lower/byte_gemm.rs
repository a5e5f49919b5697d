//! GEMMs of 8-bit types (i8, f8), which BLAS libraries support.

use warpforge_fusion::graph::Builder;
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

/// What the sizes of operands of 8 bits are multiples of in libraries.
pub(super) const ALIGNED_BYTES: usize = 16;

/// Whether libraries multiply operands of 8 bits of such sizes.
pub(super) fn is_aligned(columns: usize, depth: usize) -> bool {
    [columns, depth].into_iter().all(|size| size.is_multiple_of(ALIGNED_BYTES))
}

/// Whether a graph has GEMMs of 8-bit types that the library supports.
pub(super) fn any(graph: &Graph) -> bool {
    let narrow = |id: NodeId| {
        let own = matches!(graph.node(id).op, Op::Dot(_)) && supported_node(graph, id);
        own || narrow_inputs(graph, id).is_some()
    };
    graph.ids().any(narrow)
}

/// Whether the library supports the types of a matrix product.
pub(super) fn supported_node(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let &[lhs, rhs] = node.inputs.as_slice() else { return false };
    supported(graph.node(lhs).element, graph.node(rhs).element, node.element)
}

/// Whether the library supports these types.
pub(super) fn supported(lhs: ElementType, rhs: ElementType, out: ElementType) -> bool {
    let narrow = |element| {
        matches!(element, ElementType::Float(FloatType::F8E4M3Fn | FloatType::F8E5M2)).then_some(element)
    };
    match (narrow(lhs), narrow(rhs)) {
        // Two f8e5m2 operands are not supported.
        (Some(lhs), Some(rhs)) => {
            (lhs, rhs) != (ElementType::Float(FloatType::F8E5M2), ElementType::Float(FloatType::F8E5M2))
                && out == ElementType::F32
        }
        (None, None) => lhs == ElementType::I8 && rhs == ElementType::I8 && out == ElementType::I32,
        _ => false,
    }
}

/// The operands of a matrix product of f32 before they were widened to it, each with the layouts that it was given since, from the outermost on.
fn narrow_inputs(graph: &Graph, id: NodeId) -> Option<[(NodeId, Vec<NodeId>); 2]> {
    let node = graph.node(id);
    let (Op::Dot(dot), &[lhs, rhs], ElementType::F32) = (&node.op, node.inputs.as_slice(), node.element)
    else {
        return None;
    };
    let dims = &graph.node(rhs).dims;
    let depth = dot.rhs_contract.iter().map(|&at| dims[at]).product();
    let free = (0..dims.len()).filter(|at| !dot.rhs_batch.contains(at) && !dot.rhs_contract.contains(at));
    if !is_aligned(free.map(|at| dims[at]).product(), depth) {
        return None;
    }
    let before = |mut id: NodeId| {
        let mut layouts = Vec::new();
        while let Op::Layout(_) = graph.node(id).op {
            layouts.push(id);
            id = graph.node(id).inputs[0];
        }
        let node = graph.node(id);
        matches!(node.op, Op::Elementwise(Function::Convert)).then(|| (node.inputs[0], layouts))
    };
    let inputs = [before(lhs)?, before(rhs)?];
    let [left, right] = [0, 1].map(|at: usize| graph.node(inputs[at].0).element);
    (left.is_float() && supported(left, right, node.element)).then_some(inputs)
}

/// The graph whose products read floats of 8 bits as they are, where it widens them: the products are the same.
pub(super) fn read_before_widening(graph: Graph) -> Graph {
    if !graph.ids().any(|id| narrow_inputs(&graph, id).is_some()) {
        return graph;
    }
    let mut builder = Builder::default();
    let mut made: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    for id in graph.ids() {
        let Node { op, inputs, element, dims, origin } = graph.node(id).clone();
        builder.origin = origin;
        let inputs = match narrow_inputs(&graph, id) {
            Some(narrow) => narrow
                .map(|(from, layouts)| {
                    let layouts = layouts.iter().rev().map(|&at| graph.node(at));
                    layouts.fold(made[from.index()], |input, layout| {
                        let element = builder.node(input).element;
                        builder.raw(layout.op.clone(), vec![input], element, layout.dims.clone())
                    })
                })
                .to_vec(),
            None => inputs.iter().map(|input| made[input.index()]).collect(),
        };
        made.push(builder.raw(op, inputs, element, dims));
    }
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id.index()]).collect::<Vec<NodeId>>();
    let (outputs, effects) = (moved(&graph.outputs), moved(&graph.effects));
    builder.set_values(graph.moved_values(|id| Some(made[id.index()])));
    builder.finish(outputs, effects)
}
