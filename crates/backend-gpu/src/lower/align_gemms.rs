//! Pads the operands of large GEMMs whose rows are not aligned: kernels that read and write vectors need rows of a multiple of eight
//! elements, and the others take several times as long. Vocabularies are the usual case.

use std::collections::HashMap;

use warpforge_fusion::graph::{Builder, Dot};
use warpforge_fusion::view::LayoutOp;
use warpforge_fusion::{Graph, Node, NodeId, Op, Precision};
use warpforge_tensor::{ElementType, FloatType, Shape, Tensor};

use super::byte_gemm::ALIGNED_BYTES;
use super::merge_gemms::concatenated;

/// What sizes of a GEMM are made multiples of.
#[derive(Debug, Clone, Copy)]
struct Alignment {
    columns: usize,
    depth: usize,
    /// Whether both operands will have the depth in their rows: quantized weights are laid out so.
    depth_in_rows: bool,
}

/// 16 bytes of the narrowest type of floats.
const FLOATS: Alignment = Alignment { columns: 8, depth: 8, depth_in_rows: false };

/// Of operands that are rounded to 8 bits.
const BYTES: Alignment = Alignment { columns: ALIGNED_BYTES, depth: ALIGNED_BYTES, depth_in_rows: true };

/// Of weights that are quantized alone. Their groups divide the depth as it is.
const WEIGHTS: Alignment = Alignment { depth: 1, ..BYTES };

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
    let paddings: HashMap<NodeId, Padding> = graph
        .ids()
        .filter_map(|id| Some((id, padding(&graph, id, alignment(&graph, id, precision)?)?)))
        .filter(|(id, padding)| pays(&graph, *id, padding))
        .collect();
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

/// What aligns the rows of a GEMM's operands and of its result; none where they are aligned, where it is a batch of GEMMs, or not for tensor cores.
fn padding(graph: &Graph, id: NodeId, alignment: Alignment) -> Option<Padding> {
    let node = graph.node(id);
    let Op::Dot(Dot { lhs_batch, lhs_contract, rhs_contract, keeps_precision: false, .. }) = &node.op else {
        return None;
    };
    let (&[lhs, rhs], &[left_k], &[right_k]) =
        (node.inputs.as_slice(), lhs_contract.as_slice(), rhs_contract.as_slice())
    else {
        return None;
    };
    let (contract, sizes) =
        ([left_k, right_k], [lhs, rhs].map(|operand| graph.node(operand).dims.as_slice()));
    if !lhs_batch.is_empty() || sizes[1].len() != 2 {
        return None;
    }
    let last = sizes.map(|dims| dims.len() - 1);
    let missing = |size: usize, multiple: usize| size.next_multiple_of(multiple) - size;
    let mut sides = sizes.map(|dims| vec![0; dims.len()]);
    // The result's rows, which are columns of the right operand.
    sides[1][1 - right_k] = missing(sizes[1][1 - right_k], alignment.columns);
    if alignment.depth_in_rows || left_k == last[0] || right_k == last[1] {
        let k = missing(sizes[0][left_k], alignment.depth);
        (sides[0][left_k], sides[1][right_k]) = (k, k);
    }
    if left_k != last[0] && !alignment.depth_in_rows {
        sides[0][last[0]] = missing(sizes[0][last[0]], alignment.columns);
    }
    let mut dims = node.dims.clone();
    let free =
        |at: usize| (0..sizes[at].len()).filter(move |&dim| dim != contract[at]).map(move |dim| (at, dim));
    for (size, (at, dim)) in dims.iter_mut().zip(free(0).chain(free(1))) {
        *size += sides[at][dim];
    }
    sides.iter().flatten().any(|&by| by > 0).then_some(Padding { sides, dims })
}

/// Whether aligned rows save more than padding copies.
fn pays(graph: &Graph, id: NodeId, padding: &Padding) -> bool {
    let node = graph.node(id);
    let elements: usize = node.dims.iter().product();
    let columns = node.dims.last().copied().unwrap_or(1);
    if elements == 0 || columns.min(elements / columns) < LEAST_ROWS {
        return false;
    }
    let sides = node.inputs.iter().zip(&padding.sides);
    let copies = |(operand, by): &(&NodeId, &Vec<usize>)| {
        by.iter().any(|&by| by > 0) && graph.constant(**operand).is_none()
    };
    let operands: usize = sides.filter(copies).map(|(operand, _)| graph.node(*operand).bytes()).sum();
    let result = if padding.dims == node.dims { 0 } else { node.bytes() };
    let lhs = graph.node(node.inputs[0]);
    let k = lhs.dims.iter().product::<usize>() / (elements / columns);
    2 * elements * k / FLOPS_PER_COPIED_BYTE >= operands + result
}

/// What a product that tensor cores compute needs: one of 16-bit floats, of f32 where these may be rounded, or with weights that are quantized.
fn alignment(graph: &Graph, id: NodeId, precision: Precision) -> Option<Alignment> {
    let node = graph.node(id);
    let is = |accepted: &dyn Fn(ElementType) -> bool| {
        node.inputs.iter().all(|&input| accepted(graph.node(input).element))
    };
    let narrow = |element| matches!(element, ElementType::Float(FloatType::Bf16 | FloatType::F16));
    match precision {
        Precision::Model => is(&narrow).then_some(FLOATS),
        Precision::Tf32 | Precision::Bf16 | Precision::F16 => {
            (is(&narrow) || is(&|element| element == ElementType::F32)).then_some(FLOATS)
        }
        Precision::Quantized(recipe) => {
            let weights = node.inputs.last().is_some_and(|&weights| graph.constant(weights).is_some());
            let alignment = if recipe.quantizes_activations() { BYTES } else { WEIGHTS };
            (weights && is(&ElementType::is_float)).then_some(alignment)
        }
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

#[cfg(test)]
mod tests {
    use warpforge_fusion::View;
    use warpforge_interp::{Interpreter, Options, Value};

    use super::*;

    /// A GEMM of arguments of these sizes that sums over these dimensions, and the arguments.
    fn gemm(lhs: (&[usize], usize), rhs: ([usize; 2], usize)) -> (Graph, [Tensor; 2]) {
        let mut builder = Builder::default();
        let operands = [(lhs.0.to_vec(), lhs.1), (rhs.0.to_vec(), rhs.1)];
        let element = ElementType::F32;
        let arguments =
            [0, 1].map(|at| builder.raw(Op::Argument(at), vec![], element, operands[at].0.clone()));
        let free = operands.iter().flat_map(|(sizes, k)| {
            sizes.iter().enumerate().filter(move |(dim, _)| dim != k).map(|(_, &size)| size)
        });
        let dot = Dot { lhs_contract: vec![lhs.1], rhs_contract: vec![rhs.1], ..Dot::default() };
        let dims = free.collect();
        let product = builder.raw(Op::Dot(dot), arguments.to_vec(), element, dims);
        // Integers, so that sums are exact in any order.
        let tensors = operands.map(|(sizes, _)| {
            let values: Vec<f32> =
                (0..sizes.iter().product()).map(|at: usize| (at * 7 % 11) as f32 - 5.0).collect();
            Tensor::from_slice(&sizes, &values).unwrap()
        });
        (builder.finish(vec![product], vec![]), tensors)
    }

    /// What a graph computes of its arguments, by the reference.
    fn computed(graph: &Graph, arguments: &[Tensor]) -> Tensor {
        let mut values: Vec<Tensor> = Vec::new();
        for id in graph.ids() {
            let node = graph.node(id);
            let inputs: Vec<Tensor> = node.inputs.iter().map(|input| values[input.index()].clone()).collect();
            values.push(match &node.op {
                Op::Argument(at) => arguments[*at].clone(),
                Op::Constant(tensor) => tensor.clone(),
                Op::Layout(step) => {
                    let view = View::dense(inputs[0].dims()).after(step).unwrap();
                    inputs[0].strided(Shape::new(node.dims.clone()).unwrap(), 0, &view.strides).unwrap()
                }
                _ => {
                    let op = graph.reference(id).unwrap();
                    let inputs = inputs.into_iter().map(Value::Tensor).collect();
                    let run =
                        Interpreter::new(&op.slice.module, Options::default()).run(&op.function, inputs);
                    run.unwrap()[0].as_tensor().unwrap().clone()
                }
            });
        }
        values[graph.outputs[0].index()].clone()
    }

    #[test]
    fn padded_gemms_compute_the_same() {
        let cases: [(&[usize], usize, [usize; 2], usize); 6] = [
            (&[9, 16], 1, [11, 16], 1),
            (&[9, 13], 1, [13, 24], 0),
            (&[9, 13], 1, [8, 13], 1),
            (&[13, 9], 0, [13, 11], 0),
            (&[13, 9], 0, [11, 13], 1),
            (&[2, 13, 5], 1, [3, 13], 1),
        ];
        for (lhs, left_k, rhs, right_k) in cases {
            let (graph, arguments) = gemm((lhs, left_k), (rhs, right_k));
            let product = graph.outputs[0];
            let padding = padding(&graph, product, FLOATS).unwrap();
            let aligned = with_paddings(&graph, &HashMap::from([(product, padding)])).unwrap();
            for node in aligned.nodes.iter().filter(|node| matches!(node.op, Op::Dot(_))) {
                let rows = node.inputs.iter().map(|&input| aligned.node(input)).chain([node]);
                for row in rows.map(|node| *node.dims.last().unwrap()) {
                    assert_eq!(row % FLOATS.columns, 0, "{lhs:?} {rhs:?}");
                }
            }
            let (found, expected) = (computed(&aligned, &arguments), computed(&graph, &arguments));
            assert_eq!(found.dims(), expected.dims());
            assert_eq!(
                found.as_slice::<f32>().unwrap(),
                expected.as_slice::<f32>().unwrap(),
                "{lhs:?} {rhs:?}"
            );
        }
        let (graph, _) = gemm((&[9, 16], 1), ([16, 8], 0));
        assert!(
            padding(&graph, graph.outputs[0], FLOATS).is_none(),
            "nine rows of sixteen elements are aligned"
        );
    }
}
