//! GEMMs of 8-bit types (i8, f8), which graphs keep opaque and BLAS libraries support.

use std::collections::HashSet;

use warpforge_fusion::graph::{Dot, OpaqueOp};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType};

use super::task::LibraryQuery;

/// Whether a graph has 8-bit GEMMs.
pub(super) fn any(graph: &Graph) -> bool {
    graph.ids().any(|id| byte_dot(graph, id).is_some())
}

/// Turns opaque 8-bit dots into dot nodes, except those that the library refused. Ids are kept.
pub(super) fn rewrite(graph: &mut Graph, refused: &HashSet<LibraryQuery>) {
    for id in graph.ids() {
        if !refused.contains(&LibraryQuery::Cluster(id))
            && let Some((dot, operands)) = byte_dot(graph, id)
        {
            let node = &mut graph.nodes[id.index()];
            (node.op, node.inputs) = (Op::Dot(dot), operands);
        }
    }
}

/// The 8-bit dot of a result.
fn byte_dot(graph: &Graph, id: NodeId) -> Option<(Dot, Vec<NodeId>)> {
    let node = graph.node(id);
    let (Op::Result(0), &[from]) = (&node.op, node.inputs.as_slice()) else { return None };
    let Op::Opaque(op) = &graph.node(from).op else { return None };
    let dot = dot(op)?;
    let inputs = &graph.node(from).inputs;
    let operands: Vec<NodeId> =
        op.operands.iter().map(|&at| inputs.get(at).copied()).collect::<Option<_>>()?;
    let &[lhs, rhs] = operands.as_slice() else { return None };
    supported(graph.node(lhs).element, graph.node(rhs).element, node.element).then_some((dot, operands))
}

fn dot(op: &OpaqueOp) -> Option<Dot> {
    let module = &op.slice.module;
    let body = module.function(&op.function)?.body()?;
    let op = module.ops_in(body).find(|op| op.is(OpKind::DotGeneral))?;
    let dims = op.dot_dims()?;
    let sizes = |dims: &[i64]| dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<Vec<_>>>();
    Some(Dot {
        lhs_batch: sizes(&dims.lhs_batching)?,
        rhs_batch: sizes(&dims.rhs_batching)?,
        lhs_contract: sizes(&dims.lhs_contracting)?,
        rhs_contract: sizes(&dims.rhs_contracting)?,
    })
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
