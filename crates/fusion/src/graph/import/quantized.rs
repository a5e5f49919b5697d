//! Operations on StableHLO's quantized types, in the arithmetic that the specification defines them by.
//!
//! The graph has the stored integers. An operation that computes reads what they express, `(stored - zero point) · scale`, computes with
//! floats and quantizes its result; one that only moves elements moves the integers. Scales are those of a tensor or of an axis; other
//! granularities are the reference's.

use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_ir::{OpKind, OpRef, Type};
use warpforge_tensor::element::{Granularity, QuantParameters, QuantizedType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::element::{fast, storage};
use super::lowered::lowered;
use crate::graph::NodeId;
use crate::graph::build::Builder;

/// Bits of stored integers that f32 holds exactly, with any zero point subtracted.
const EXACT_BITS: u32 = 16;

/// Whether a value of the operation is quantized.
pub(super) fn is_quantized(op: OpRef<'_>) -> bool {
    op.operand_types().chain(op.result_types()).any(|ty| quantized(ty).is_some())
}

fn quantized(ty: &Type) -> Option<&QuantizedType> {
    Some(ty.as_tensor()?.element().quantized()?)
}

/// The operation in the graph's form; none where it is the reference's.
pub(super) fn of_quantized(b: &mut Builder, op: OpRef<'_>, given: Vec<NodeId>) -> Option<NodeId> {
    let kind = op.kind()?;
    let result = op.result_type(0).filter(|_| op.result_count() == 1)?;
    let (stored, dims) = storage(result)?;
    if !op.operand_types().chain([result]).all(is_whole_bytes) {
        return None;
    }
    if moves(kind) {
        let mut types = op.operand_types().filter(|ty| quantized(ty).is_some()).chain([result]);
        let first = types.next()?;
        let same = types.all(|ty| same_parameters(first, ty));
        return same.then(|| lowered(b, op, given, stored, dims))?;
    }
    if !computes(kind) {
        return None;
    }
    let expressed = |ty: &Type| quantized(ty).map(|quantized| ElementType::Float(quantized.expressed));
    let mut real = Vec::with_capacity(given.len());
    for (id, ty) in given.into_iter().zip(op.operand_types()) {
        real.push(match quantized(ty) {
            Some(quantized) => dequantize(b, id, quantized)?,
            None => id,
        });
    }
    let computed = match kind {
        OpKind::UniformQuantize | OpKind::UniformDequantize => *real.first()?,
        _ => lowered(b, op, real, expressed(result).unwrap_or(stored), dims)?,
    };
    match quantized(result) {
        Some(quantized) => quantize(b, computed, quantized),
        None => Some(computed),
    }
}

/// Whether the graph's operations take the numbers or stored integers of a type.
fn is_whole_bytes(ty: &Type) -> bool {
    match quantized(ty) {
        Some(quantized) => quantized.storage.bits() >= 8 && quantized.expressed.format().bits() >= 16,
        None => fast(ty).is_some(),
    }
}

/// Operations whose results have elements of their operands, in types with the same scales.
fn moves(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::BroadcastInDim
            | OpKind::Concatenate
            | OpKind::Constant
            | OpKind::DynamicSlice
            | OpKind::DynamicUpdateSlice
            | OpKind::Gather
            | OpKind::Reshape
            | OpKind::Reverse
            | OpKind::Slice
            | OpKind::Transpose
    )
}

/// Operations that are defined by what their operands express.
fn computes(kind: OpKind) -> bool {
    match kind {
        OpKind::UniformQuantize
        | OpKind::UniformDequantize
        | OpKind::Convolution
        | OpKind::Dot
        | OpKind::DotGeneral
        | OpKind::Clamp
        | OpKind::Compare
        | OpKind::Select => true,
        OpKind::BitcastConvert | OpKind::Convert => false,
        _ => Function::of_op(kind.name()).is_some(),
    }
}

/// Whether stored integers mean the same in two types. Axes may have moved: integers move with their scales.
fn same_parameters(a: &Type, b: &Type) -> bool {
    match (quantized(a), quantized(b)) {
        (Some(a), Some(b)) => {
            a.storage == b.storage && a.expressed == b.expressed && a.parameters == b.parameters
        }
        (None, None) => true,
        _ => false,
    }
}

/// A number for each element of a value, from one for the tensor or for each index of an axis.
fn factors(
    b: &mut Builder,
    quantized: &QuantizedType,
    like: NodeId,
    number: impl Fn(&QuantParameters) -> f64,
) -> Option<NodeId> {
    let (element, dims) = (b.node(like).element, b.node(like).dims.clone());
    let numbers: Vec<Scalar> = quantized.parameters.iter().map(|one| Scalar::Float(number(one))).collect();
    match &quantized.granularity {
        Granularity::PerTensor => b.splat(element, *numbers.first()?, dims),
        Granularity::PerAxis(axis) => {
            if dims.get(*axis) != Some(&numbers.len()) {
                return None;
            }
            let shape = warpforge_tensor::Shape::new(vec![numbers.len()]).ok()?;
            let list = b.constant(Tensor::from_scalars(element, shape, numbers).ok()?);
            Some(b.broadcast(list, dims, &[*axis]))
        }
        _ => None,
    }
}

/// `(stored - zero point) · scale`.
fn dequantize(b: &mut Builder, stored: NodeId, quantized: &QuantizedType) -> Option<NodeId> {
    let expressed = ElementType::Float(quantized.expressed);
    let moved = quantized.parameters.iter().any(|one| one.zero_point != 0);
    // The difference is rounded once.
    let exact = quantized.storage.bits() <= EXACT_BITS && expressed == ElementType::F32;
    let wide = if exact || !moved { expressed } else { ElementType::F64 };
    let mut value = convert(b, stored, wide);
    if moved {
        let zero = factors(b, quantized, value, |one| one.zero_point as f64)?;
        value = b.map(Function::Subtract, vec![value, zero]);
        value = convert(b, value, expressed);
    }
    let scale = factors(b, quantized, value, |one| one.scale)?;
    Some(b.map(Function::Multiply, vec![value, scale]))
}

/// The integer nearest to `real / scale + zero point` in the range of stored ones; NaN is zero.
fn quantize(b: &mut Builder, real: NodeId, quantized: &QuantizedType) -> Option<NodeId> {
    let scale = factors(b, quantized, real, |one| one.scale)?;
    let steps = b.map(Function::Divide, vec![real, scale]);
    let zero = factors(b, quantized, steps, |one| one.zero_point as f64)?;
    let shifted = b.map(Function::Add, vec![steps, zero]);
    // The ends of wide ranges are no numbers of narrower floats.
    let exact =
        quantized.storage.bits() <= EXACT_BITS && quantized.expressed == warpforge_tensor::FloatType::F32;
    let wide = if exact { b.node(shifted).element } else { ElementType::F64 };
    let shifted = convert(b, shifted, wide);
    let dims = b.node(shifted).dims.clone();
    let number = |value: f64| Scalar::Float(value);
    let nothing = b.splat(wide, number(0.0), dims.clone())?;
    let low = b.splat(wide, number(quantized.storage_min as f64), dims.clone())?;
    let high = b.splat(wide, number(quantized.storage_max as f64), dims)?;
    let is_number = b.compare(ComparisonDirection::Eq, ComparisonType::Float, shifted, shifted);
    let known = b.map(Function::Select, vec![is_number, shifted, nothing]);
    let raised = b.map(Function::Maximum, vec![known, low]);
    let kept = b.map(Function::Minimum, vec![raised, high]);
    let rounded = b.map(Function::RoundNearestEven, vec![kept]);
    Some(convert(b, rounded, ElementType::Int(quantized.storage)))
}

fn convert(b: &mut Builder, of: NodeId, element: ElementType) -> NodeId {
    let dims = b.node(of).dims.clone();
    b.add(crate::graph::op::Op::Elementwise(Function::Convert), vec![of], element, dims)
}

#[cfg(test)]
mod tests {
    use warpforge_tensor::Scalar;

    use crate::graph::Op;
    use crate::testing::graph;

    /// Whether the reference has to evaluate a part of a function, and what its outputs are where nothing is given.
    fn imported(body: &str, result: &str) -> (bool, Vec<f64>) {
        let graph = graph(&format!("func.func @main() -> {result} {{ {body} }}"));
        let known = graph.constant(graph.outputs[0]);
        let values = known.map(|tensor| tensor.iter().map(Scalar::to_f64).collect());
        (graph.nodes.iter().any(|node| matches!(node.op, Op::Opaque(_))), values.unwrap_or_default())
    }

    const TENSOR: &str = "tensor<2x!quant.uniform<i8:f32, 0.5:10>>";
    const AXIS: &str = "tensor<2x!quant.uniform<i8:f32:0, {0.5:10, 2.0:-3}>>";

    #[test]
    fn numbers_are_quantized_and_restored_by_tensor_and_by_axis() {
        for (ty, expected) in [(TENSOR, [11.0, 15.0]), (AXIS, [11.0, -2.0])] {
            let body = format!(
                "%x = stablehlo.constant dense<[0.75, 2.5]> : tensor<2xf32>
                %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> {ty}
                return %q : {ty}"
            );
            // 11.5 is as near to 12 as to 11: the even one.
            let expected = [expected[0] + 1.0, expected[1]];
            assert_eq!(imported(&body, ty), (false, expected.to_vec()));
        }
        let body = format!(
            "%q = stablehlo.constant() {{value = dense<[12, -3]> : tensor<2xi8>}} : () -> {AXIS}
            %x = stablehlo.uniform_dequantize %q : ({AXIS}) -> tensor<2xf32>
            return %x : tensor<2xf32>"
        );
        assert_eq!(imported(&body, "tensor<2xf32>"), (false, vec![1.0, 0.0]));
    }

    #[test]
    fn sums_are_those_of_the_numbers_and_integers_of_four_bits_are_the_references() {
        let body = |ty: &str| {
            format!(
                "%x = stablehlo.constant dense<[0.5, 100.0]> : tensor<2xf32>
                %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> {ty}
                %s = stablehlo.add %q, %q : {ty}
                return %s : {ty}"
            )
        };
        assert_eq!(imported(&body(TENSOR), TENSOR), (false, vec![12.0, 127.0]));
        let narrow = "tensor<2x!quant.uniform<i4:f32, 0.5:1>>";
        assert!(imported(&body(narrow), narrow).0);
    }
}
