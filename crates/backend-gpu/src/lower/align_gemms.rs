//! Pads the operands of large GEMMs whose rows are not aligned: kernels that read and write vectors need rows of a multiple of eight
//! elements, and the others take several times as long. Vocabularies are the usual case.

use std::collections::HashMap;

use warpforge_fusion::graph::{Builder, Dot};
use warpforge_fusion::view::LayoutOp;
use warpforge_fusion::{Graph, Node, NodeId, Op, Precision};
use warpforge_tensor::{ElementType, FloatType, Shape, Tensor};

use super::merge_gemms::concatenated;

/// Elements that rows are a multiple of: 16 bytes of the narrowest type.
const ALIGNED_ELEMENTS: usize = 8;

/// Floating-point operations that a GEMM must have for each byte that padding copies. Tensor cores lose about 7 fs per operation
/// without alignment, and copying a byte takes about 500 fs: at this rate padding saves twice what it costs.
const FLOPS_PER_COPIED_BYTE: usize = 128;

/// Fewer rows or columns than this are bound by reading the other operand, aligned or not.
const LEAST_ROWS: usize = 64;

/// Elements to add to the dimensions of both operands of a GEMM.
struct Padding {
    sides: [Vec<usize>; 2],
    /// The dimensions of the padded result.
    dims: Vec<usize>,
}

/// The graph with padded GEMMs where tensor cores compute them.
pub(super) fn align_gemms(graph: Graph, precision: Precision) -> Graph {
    let paddings: HashMap<NodeId, Padding> =
        graph.ids().filter_map(|id| Some((id, padding(&graph, id, precision)?))).collect();
    let aligned = if paddings.is_empty() { None } else { with_paddings(&graph, &paddings) };
    aligned.unwrap_or(graph)
}

/// The graph with padded GEMMs; nothing where memory for a padded weight is missing.
fn with_paddings(graph: &Graph, paddings: &HashMap<NodeId, Padding>) -> Option<Graph> {
    let mut builder = Builder::default();
    let mut made: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    for id in graph.ids() {
        let Node { op, inputs, element, dims, origin } = graph.node(id).clone();
        let mut inputs: Vec<NodeId> = inputs.iter().map(|input| made[input.index()]).collect();
        builder.origin = origin;
        made.push(match paddings.get(&id) {
            Some(padding) => {
                for (input, by) in inputs.iter_mut().zip(&padding.sides) {
                    *input = pad(&mut builder, *input, by)?;
                }
                let wide = builder.raw(op, inputs, element, padding.dims.clone());
                let (starts, steps) = (vec![0; dims.len()], vec![1; dims.len()]);
                builder.layout(LayoutOp::Slice { starts, steps, dims }, wide)
            }
            None => builder.raw(op, inputs, element, dims),
        });
    }
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id.index()]).collect::<Vec<NodeId>>();
    let (outputs, effects) = (moved(&graph.outputs), moved(&graph.effects));
    builder.set_values(graph.moved_values(|id| Some(made[id.index()])));
    Some(builder.finish(outputs, effects))
}

/// What to add to a GEMM's operands, where that pays.
fn padding(graph: &Graph, id: NodeId, precision: Precision) -> Option<Padding> {
    let node = graph.node(id);
    let Op::Dot(dot) = &node.op else { return None };
    let (&[lhs, rhs], true) = (node.inputs.as_slice(), uses_tensor_cores(graph, node, precision)) else {
        return None;
    };
    let Dot { lhs_batch, lhs_contract, rhs_contract, .. } = dot;
    let (&[left_k], &[right_k], true) =
        (lhs_contract.as_slice(), rhs_contract.as_slice(), lhs_batch.is_empty())
    else {
        return None;
    };
    let operands = [(lhs, left_k), (rhs, right_k)];
    let sizes = operands.map(|(operand, _)| graph.node(operand).dims.as_slice());
    if node.dims.contains(&0) || sizes[0][left_k] == 0 || sizes[1].len() != 2 {
        return None;
    }
    let columns = sizes[1][1 - right_k];
    let rows = node.dims.iter().product::<usize>() / columns;
    if rows.min(columns) < LEAST_ROWS {
        return None;
    }
    let last = sizes.map(|dims| dims.len() - 1);
    let missing = |size: usize| size.next_multiple_of(ALIGNED_ELEMENTS) - size;
    let mut sides = sizes.map(|dims| vec![0; dims.len()]);
    // The result's rows, which are columns of the right operand.
    sides[1][1 - right_k] = missing(columns);
    if left_k == last[0] || right_k == last[1] {
        let k = missing(sizes[0][left_k]);
        (sides[0][left_k], sides[1][right_k]) = (k, k);
    }
    if left_k != last[0] {
        sides[0][last[0]] = missing(sizes[0][last[0]]);
    }
    let mut dims = node.dims.clone();
    let free =
        |at: usize| (0..sizes[at].len()).filter(move |&dim| dim != operands[at].1).map(move |dim| (at, dim));
    for (size, (at, dim)) in dims.iter_mut().zip(free(0).chain(free(1))) {
        *size += sides[at][dim];
    }
    let is_copied =
        |at: usize| sides[at].iter().any(|&by| by > 0) && graph.constant(operands[at].0).is_none();
    let operand_bytes = (0..2).filter(|&at| is_copied(at)).map(|at| graph.node(operands[at].0).bytes());
    let result_bytes = if dims == node.dims { 0 } else { node.bytes() };
    let copied = operand_bytes.sum::<usize>() + result_bytes;
    let flops = 2 * sizes[0][left_k] * node.dims.iter().product::<usize>();
    let unaligned = sides.iter().flatten().any(|&by| by > 0);
    (unaligned && flops / FLOPS_PER_COPIED_BYTE >= copied).then_some(Padding { sides, dims })
}

/// Whether a product is computed by tensor cores that need alignment: of 16-bit floats, or of f32 where these may be rounded.
fn uses_tensor_cores(graph: &Graph, node: &Node, precision: Precision) -> bool {
    let is = |accepted: &dyn Fn(ElementType) -> bool| {
        node.inputs.iter().all(|&input| accepted(graph.node(input).element))
    };
    let narrow = |element| matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16));
    match precision {
        Precision::Model => is(&narrow),
        Precision::Tf32 | Precision::Bf16 | Precision::F16 => {
            is(&narrow) || is(&|element| element == ElementType::F32)
        }
        // Groups of quantized weights divide k as it is.
        Precision::Quantized(_) => false,
    }
}

/// A value with zeros after the ends of its dimensions; a constant is padded while compiling.
fn pad(builder: &mut Builder, of: NodeId, by: &[usize]) -> Option<NodeId> {
    if by.iter().all(|&by| by == 0) {
        return Some(of);
    }
    let Node { op, element, dims, .. } = builder.node(of).clone();
    if let Op::Constant(tensor) = op {
        let tensor = padded_constant(tensor, by)?;
        let dims = tensor.dims().to_vec();
        return Some(builder.raw(Op::Constant(tensor), Vec::new(), element, dims));
    }
    let zero = builder.constant(Tensor::zeros(element, Shape::scalar()).ok()?);
    let high = by.iter().map(|&by| by as isize).collect();
    let dims: Vec<usize> = dims.iter().zip(by).map(|(size, by)| size + by).collect();
    let op = Op::Pad { low: vec![0; by.len()], high, interior: vec![0; by.len()] };
    Some(builder.raw(op, vec![of, zero], element, dims))
}

fn padded_constant(mut tensor: Tensor, by: &[usize]) -> Option<Tensor> {
    for (axis, &by) in by.iter().enumerate().filter(|(_, by)| **by > 0) {
        let mut dims = tensor.dims().to_vec();
        dims[axis] = by;
        let zeros = Tensor::zeros(tensor.element_type(), Shape::new(dims).ok()?).ok()?;
        tensor = concatenated(&[&tensor, &zeros], axis)?;
    }
    Some(tensor)
}
