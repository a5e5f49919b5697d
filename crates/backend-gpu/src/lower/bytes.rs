//! Products of single bytes (i8, f8), which graphs leave to the reference and the vendor's library has.

use std::collections::HashSet;

use warpforge_fusion::graph::{Dot, OpaqueOp};
use warpforge_fusion::{Graph, NodeId, Op};
use warpforge_ir::OpKind;
use warpforge_tensor::{ElementType, FloatType};

use super::Asked;

/// Whether a graph has such products.
pub(super) fn any(graph: &Graph) -> bool {
    graph.ids().any(|id| product(graph, id).is_some())
}

/// Makes products of bytes nodes like all products, but for those that the library refused. Ids stay as they are.
pub(super) fn products(graph: &mut Graph, refused: &HashSet<Asked>) {
    for id in graph.ids() {
        if !refused.contains(&Asked::Whole(id))
            && let Some((dot, operands)) = product(graph, id)
        {
            let node = &mut graph.nodes[id.index()];
            (node.op, node.inputs) = (Op::Dot(dot), operands);
        }
    }
}

/// The product that a result of the reference is, where its types are those of bytes.
fn product(graph: &Graph, id: NodeId) -> Option<(Dot, Vec<NodeId>)> {
    let node = graph.node(id);
    let (Op::Result(0), &[from]) = (&node.op, node.inputs.as_slice()) else { return None };
    let Op::Opaque(part) = &graph.node(from).op else { return None };
    let dot = dot(part)?;
    let given = &graph.node(from).inputs;
    let operands: Vec<NodeId> =
        part.operands.iter().map(|&at| given.get(at).copied()).collect::<Option<_>>()?;
    let &[lhs, rhs] = operands.as_slice() else { return None };
    multiply(graph.node(lhs).element, graph.node(rhs).element, node.element).then_some((dot, operands))
}

fn dot(part: &OpaqueOp) -> Option<Dot> {
    let module = &part.slice.module;
    let body = module.function(&part.function)?.body()?;
    let op = module.ops_in(body).find(|op| op.is(OpKind::DotGeneral))?;
    let numbers = op.dot_dims()?;
    let sizes = |dims: &[i64]| dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<Vec<_>>>();
    Some(Dot {
        lhs_batch: sizes(&numbers.lhs_batching)?,
        rhs_batch: sizes(&numbers.rhs_batching)?,
        lhs_contract: sizes(&numbers.lhs_contracting)?,
        rhs_contract: sizes(&numbers.rhs_contracting)?,
    })
}

/// Whether the library has products of these types of bytes.
pub(super) fn multiply(lhs: ElementType, rhs: ElementType, out: ElementType) -> bool {
    let narrow = |element| {
        matches!(element, ElementType::Float(FloatType::F8E4M3Fn | FloatType::F8E5M2)).then_some(element)
    };
    match (narrow(lhs), narrow(rhs)) {
        // Two of the wider range have no product.
        (Some(lhs), Some(rhs)) => {
            (lhs, rhs) != (ElementType::Float(FloatType::F8E5M2), ElementType::Float(FloatType::F8E5M2))
                && out == ElementType::F32
        }
        (None, None) => lhs == ElementType::I8 && rhs == ElementType::I8 && out == ElementType::I32,
        _ => false,
    }
}
