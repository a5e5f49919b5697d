//! Finds quantized weights below a product: the one matcher of what the rewrite makes.

use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType};

use crate::graph::{Graph, NodeId, Op};
use crate::view::LayoutOp;

/// Weights that a product can read in the type that they are stored in: rows of codes, one row for each column of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedWeights {
    /// The constant with the codes: i8, f8E4M3FN or i4, dense.
    pub codes: NodeId,
    /// The groups of codes of 4 bits; none where a code is the weight itself.
    pub groups: Option<WeightGroups>,
    /// The left-hand operand before it was widened to f32.
    pub activations: NodeId,
}

/// `code · scale + offset` for each group of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightGroups {
    /// Codes of a group.
    pub size: usize,
    /// The constant with a scale for each group, bf16.
    pub scales: NodeId,
    /// The constant with an offset for each group, bf16.
    pub offsets: NodeId,
}

/// The quantized weights of a product in f32, where it has such.
#[must_use]
pub fn weights_of(graph: &Graph, product: NodeId) -> Option<QuantizedWeights> {
    let node = graph.node(product);
    let (Op::Dot(dot), &[lhs, rhs], ElementType::F32) = (&node.op, node.inputs.as_slice(), node.element)
    else {
        return None;
    };
    let rank = graph.node(rhs).dims.len();
    if !dot.lhs_batch.is_empty() || !dot.rhs_contract.iter().copied().eq(1..rank) {
        return None;
    }
    let activations = match widened(graph, lhs) {
        Some(narrow) if matches!(graph.node(narrow).element, ElementType::BF16 | ElementType::F16) => narrow,
        _ => lhs,
    };
    if let Some(codes) = widened(graph, rhs) {
        let whole =
            matches!(graph.node(codes).element, ElementType::I8 | ElementType::Float(FloatType::F8E4M3Fn));
        graph.constant(codes)?;
        return whole.then_some(QuantizedWeights { codes, groups: None, activations });
    }
    let mut sum = rhs;
    if let Op::Layout(LayoutOp::Reshape(_)) = graph.node(sum).op {
        sum = graph.node(sum).inputs[0];
    }
    let (scaled, offsets) = with_vector(graph, sum, Function::Add)?;
    let (codes, scales) = with_vector(graph, scaled, Function::Multiply)?;
    let codes = widened(graph, codes)?;
    let &[_, _, size] = graph.node(codes).dims.as_slice() else { return None };
    graph.constant(codes)?;
    let groups = Some(WeightGroups { size, scales, offsets });
    (graph.node(codes).element == ElementType::I4).then_some(QuantizedWeights { codes, groups, activations })
}

/// What a value was before it was widened to f32.
fn widened(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let node = graph.node(id);
    let converts = matches!(node.op, Op::Elementwise(Function::Convert)) && node.element == ElementType::F32;
    converts.then(|| node.inputs[0])
}

/// A function of a value of three dimensions and of a bf16 constant with one element for each of its groups.
fn with_vector(graph: &Graph, id: NodeId, function: Function) -> Option<(NodeId, NodeId)> {
    let node = graph.node(id);
    let (Op::Elementwise(own), &[value, repeated]) = (&node.op, node.inputs.as_slice()) else { return None };
    let Op::Layout(LayoutOp::Broadcast { map, .. }) = &graph.node(repeated).op else { return None };
    let vector = widened(graph, graph.node(repeated).inputs[0])?;
    graph.constant(vector)?;
    let is = *own == function && *map == [0, 1] && node.dims.len() == 3;
    (is && graph.node(vector).element == ElementType::BF16).then_some((value, vector))
}
