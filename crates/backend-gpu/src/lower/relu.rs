//! The gradient of ReLU over a product's result, and the bits that cuBLASLt takes for it.
//!
//! cuBLASLt's forward product could write such bits itself. They are not asked for: they are set wherever the sum is not below
//! zero, as CUTLASS computes them and NVIDIA's tests of the library expect, while a model's gradient passes only where the sum is
//! above zero. Rows of zeros, as padding is, would change the gradients of biases. So a kernel makes the bits by the model's own
//! comparison, exact in every type, zeros and NaN included. It reads one matrix; a kernel for the gradient reads two and writes one.
//! What the library makes of an infinite result whose bit is clear is not documented: `tests/device` holds it to zero.
//!
//! hipBLASLt takes no bits but a matrix, and its older versions do not know the gradient at all: it is not asked.

use warpforge_codegen::Options;
use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Epilogue, Operand};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Graph, Node, NodeId, Op, View};
use warpforge_ir::OpKind;
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use super::Task;
use super::epilogue::{converted, is_like_tile, is_zero};
use super::operands::Operands;

/// The library wants rows of a multiple of so many bits.
pub(super) const LINE: usize = 128;

/// Where a result passes and is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gate {
    /// What is compared with zero, a value that lies as the result does.
    of: NodeId,
    direction: ComparisonDirection,
    order: ComparisonType,
    /// Whether zero stands on the left.
    zero_first: bool,
    /// Whether the result passes where the comparison holds, rather than where it does not.
    passes: bool,
}

/// The gate that a step of an epilogue puts before the product's result, where it does nothing else.
pub(super) fn gradient(graph: &Graph, epilogue: &Epilogue, at: usize) -> Option<Gate> {
    let body = &epilogue.body;
    let (BodyOp::Elementwise(OpKind::Select), &[condition, yes, no]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
    else {
        return None;
    };
    let is_result = |at: usize| {
        let step = converted(body, at).map(|at| &body.steps[at].op);
        matches!(step, Some(BodyOp::Load(load)) if *load == epilogue.tile)
    };
    let passes = match (is_result(yes), is_result(no)) {
        (true, false) if is_zero(body, no) => true,
        (false, true) if is_zero(body, yes) => false,
        _ => return None,
    };
    let (&BodyOp::Compare(direction, order), &[left, right]) =
        (&body.steps[condition].op, body.steps[condition].inputs.as_slice())
    else {
        return None;
    };
    let zero_first = is_zero(body, left);
    let (zero, compared) = if zero_first { (left, right) } else { (right, left) };
    let BodyOp::Load(load) = body.steps[as_stored(body, compared)].op else { return None };
    let of = body.loads[load].value;
    let fits = is_zero(body, zero)
        // The order of all floats tells zeros apart by their signs.
        && order != ComparisonType::TotalOrder
        && load != epilogue.tile
        && is_like_tile(graph, epilogue, &body.loads[load])
        && is_float(graph.node(of).element);
    fits.then_some(Gate { of, direction, order, zero_first, passes })
}

/// The step behind conversions to f32, which compares with zero as they do.
fn as_stored(body: &Body, mut at: usize) -> usize {
    while let (BodyOp::Elementwise(OpKind::Convert), &[input]) =
        (&body.steps[at].op, body.steps[at].inputs.as_slice())
        && body.steps[at].element == ElementType::F32
        && is_float(body.steps[input].element)
    {
        at = input;
    }
    at
}

/// Whether the library has gradients of such results.
pub(super) fn is_float(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
}

/// Adds what computes the bits of a gate, a row of them for each of the result's, the first the lowest of its byte.
///
/// # Errors
///
/// When there is no kernel for it.
pub(super) fn bits(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    gate: &Gate,
    [rows, columns]: [usize; 2],
) -> Result<NodeId, String> {
    let (element, bytes) = (operands.graph.node(gate.of).element, ElementType::U8);
    let line = columns / 8;
    let dims = vec![rows, line, 8];
    let mut steps: Vec<BodyStep> = Vec::new();
    let mut step = |op: BodyOp, inputs: &[usize], element: ElementType| {
        steps.push(BodyStep { op, inputs: inputs.to_vec(), element });
        steps.len() - 1
    };
    let value = step(BodyOp::Load(0), &[], element);
    let zero = step(number(element, Scalar::Float(0.0))?, &[], element);
    let sides = if gate.zero_first { [zero, value] } else { [value, zero] };
    let condition = step(BodyOp::Compare(gate.direction, gate.order), &sides, ElementType::Bool);
    let along = View { offset: 0, dims: dims.clone(), strides: vec![0, 0, 1] };
    let place = step(BodyOp::Iota(along), &[], bytes);
    let one = step(number(bytes, Scalar::Int(1))?, &[], bytes);
    let bit = step(BodyOp::Elementwise(OpKind::ShiftLeft), &[one, place], bytes);
    let clear = step(number(bytes, Scalar::Int(0))?, &[], bytes);
    let [yes, no] = if gate.passes { [bit, clear] } else { [clear, bit] };
    let chosen = step(BodyOp::Elementwise(OpKind::Select), &[condition, yes, no], bytes);
    step(BodyOp::Reduce(ReduceKind::Or), &[chosen], bytes);
    let body = Body {
        reduced: vec![false, false, true],
        loads: vec![Operand { value: gate.of, view: View::dense(&dims) }],
        steps,
        output: View { offset: 0, dims: dims.clone(), strides: vec![line as isize, 1, 0] },
        dims,
    };
    let op = Op::Reduce(ReduceKind::Or, vec![2]);
    let node = Node { op, inputs: vec![gate.of], element: bytes, dims: vec![rows, line], origin: None };
    operands.add(tasks, options, node, body)
}

fn number(element: ElementType, value: Scalar) -> Result<BodyOp, String> {
    let tensor = Tensor::from_scalars(element, Shape::scalar(), [value]);
    tensor.map(BodyOp::Constant).map_err(|error| error.to_string())
}
