//! GEMMs of 8-bit types (i8, f8), which BLAS libraries support.

use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_tensor::{ElementType, FloatType};

/// Whether a graph has GEMMs of 8-bit types that the library supports.
pub(super) fn any(graph: &Graph) -> bool {
    graph.ids().any(|id| matches!(graph.node(id).op, Op::Dot(_)) && supported_node(graph, id))
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
