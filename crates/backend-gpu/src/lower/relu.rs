//! The bit mask of the gradient of ReLU, a GEMM epilogue of cuBLASLt.
//!
//! cuBLASLt can write such a mask in the forward GEMM, but it sets bits where the value is >= 0, while a model's
//! gradient passes only where it is > 0; rows of zeros (padding) would change bias gradients. So a kernel computes
//! the mask by the model's own comparison, exact for every type including zeros and NaN. What the library returns for
//! an infinite result with a clear bit is undocumented; `tests/device` checks that it is zero.
//!
//! hipBLASLt takes a matrix instead of bits, and older versions lack the gradient: it is not used.

use warpforge_codegen::Options;
use warpforge_fusion::cluster::{Body, BodyOp, BodyStep, Operand, ReluMask};
use warpforge_fusion::graph::ReduceKind;
use warpforge_fusion::{Node, NodeId, Op, View};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use super::operands::Operands;
use super::task::Task;

/// Columns must be a multiple of this number of bits.
pub(super) const LINE: usize = 128;

/// Whether the library supports this result type.
pub(super) fn is_float(element: ElementType) -> bool {
    matches!(element, ElementType::Float(FloatType::F32 | FloatType::Bf16 | FloatType::F16))
}

/// Adds the computation of the bit mask: one row per result row, least significant bit first.
///
/// # Errors
///
/// When there is no kernel for it.
pub(super) fn bits(
    operands: &mut Operands,
    tasks: &mut Vec<Task>,
    options: &Options,
    mask: &ReluMask,
    [rows, columns]: [usize; 2],
) -> Result<NodeId, String> {
    let (element, bytes) = (operands.graph.node(mask.of).element, ElementType::U8);
    let line = columns / 8;
    let dims = vec![rows, line, 8];
    let mut steps: Vec<BodyStep> = Vec::new();
    let mut step = |op: BodyOp, inputs: &[usize], element: ElementType| {
        steps.push(BodyStep { op, inputs: inputs.to_vec(), element });
        steps.len() - 1
    };
    let value = step(BodyOp::Load(0), &[], element);
    let zero = step(constant(element, Scalar::Float(0.0))?, &[], element);
    let sides = if mask.zero_first { [zero, value] } else { [value, zero] };
    let condition = step(BodyOp::Compare(mask.direction, mask.order), &sides, ElementType::Bool);
    let along = View { offset: 0, dims: dims.clone(), strides: vec![0, 0, 1] };
    let bit_index = step(BodyOp::Iota(along), &[], bytes);
    let one = step(constant(bytes, Scalar::Int(1))?, &[], bytes);
    let bit = step(BodyOp::Elementwise(Function::ShiftLeft), &[one, bit_index], bytes);
    let clear = step(constant(bytes, Scalar::Int(0))?, &[], bytes);
    let [yes, no] = if mask.passes { [bit, clear] } else { [clear, bit] };
    let chosen = step(BodyOp::Elementwise(Function::Select), &[condition, yes, no], bytes);
    step(BodyOp::Reduce(ReduceKind::Or), &[chosen], bytes);
    let body = Body {
        reduced: vec![false, false, true],
        loads: vec![Operand { value: mask.of, view: View::dense(&dims) }],
        steps,
        output: View { offset: 0, dims: dims.clone(), strides: vec![line as isize, 1, 0] },
        dims,
        also: Vec::new(),
    };
    let op = Op::Reduce(ReduceKind::Or, vec![2]);
    let node = Node { op, inputs: vec![mask.of], element: bytes, dims: vec![rows, line], origin: None };
    operands.add(tasks, options, node, body)
}

fn constant(element: ElementType, value: Scalar) -> Result<BodyOp, String> {
    let tensor = Tensor::from_scalars(element, Shape::scalar(), [value]);
    tensor.map(BodyOp::Constant).map_err(|error| error.to_string())
}
