//! Reductions: what their regions compute, and where they start.

use warpforge_ir::OpRef;
use warpforge_tensor::{ElementType, IntType, Scalar};

use super::region::scalar_function;
use crate::graph::NodeId;
use crate::graph::build::Builder;
use crate::graph::op::Op;
use crate::graph::scalar::ReduceKind;

/// What an operation's region of two scalars computes, when it is a single operation on them.
#[must_use]
pub fn reduce_kind(op: OpRef<'_>) -> Option<ReduceKind> {
    scalar_function(op, 0)?.reduce_kind()
}

/// Whether combining a value with others changes nothing.
fn is_identity(b: &Builder, kind: ReduceKind, init: NodeId) -> bool {
    let node = b.node(init);
    let Op::Constant(tensor) = &node.op else { return false };
    if tensor.len() != 1 {
        return false;
    }
    let value = tensor.get(0);
    match (kind, node.element) {
        // A sum that starts at +0 is never -0; kernels start there too.
        (ReduceKind::Add, _) => value == Scalar::zero(node.element),
        (ReduceKind::Multiply, _) => value == Scalar::one(node.element),
        (ReduceKind::Max, ElementType::Float(_)) => value == Scalar::Float(f64::NEG_INFINITY),
        (ReduceKind::Min, ElementType::Float(_)) => value == Scalar::Float(f64::INFINITY),
        (ReduceKind::Max, ElementType::Int(int)) => value == Scalar::Int(int_range(int).0),
        (ReduceKind::Min, ElementType::Int(int)) => value == Scalar::Int(int_range(int).1),
        (ReduceKind::And, ElementType::Bool) => value == Scalar::Bool(true),
        (ReduceKind::Or, ElementType::Bool) => value == Scalar::Bool(false),
        _ => false,
    }
}

/// The smallest and the largest number of a type.
fn int_range(int: IntType) -> (i128, i128) {
    let values = 1i128 << int.bits();
    if int.is_signed() { (-values / 2, values / 2 - 1) } else { (0, values - 1) }
}

/// A reduction from an initial value on.
pub(super) fn with_initial(
    b: &mut Builder,
    kind: ReduceKind,
    reduced: NodeId,
    init: NodeId,
    dims: Vec<usize>,
) -> Option<NodeId> {
    if is_identity(b, kind, init) {
        return Some(reduced);
    }
    let init = b.broadcast(init, dims, &[]);
    Some(b.map(kind.function(), vec![init, reduced]))
}
