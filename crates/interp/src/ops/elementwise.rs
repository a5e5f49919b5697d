//! Operations that work on one element at a time.

use warpforge_ir::{OpKind, TensorType};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::Evaluator;
use super::quantized::{dequantized, expressed, quantized};
use crate::Value;
use crate::cx::{Cx, one};
use crate::error::{Result, invalid, unsupported};
use crate::native;
use crate::scalar::kernel;

pub(super) const OPS: &[(OpKind, Evaluator)] = &[
    (OpKind::Abs, elementwise),
    (OpKind::Add, elementwise),
    (OpKind::And, elementwise),
    (OpKind::Atan2, elementwise),
    (OpKind::Cbrt, elementwise),
    (OpKind::Ceil, elementwise),
    (OpKind::Clamp, elementwise),
    (OpKind::Compare, elementwise),
    (OpKind::Complex, elementwise),
    (OpKind::Convert, elementwise),
    (OpKind::Cosine, elementwise),
    (OpKind::CountLeadingZeros, elementwise),
    (OpKind::Divide, elementwise),
    (OpKind::Exponential, elementwise),
    (OpKind::ExponentialMinusOne, elementwise),
    (OpKind::Floor, elementwise),
    (OpKind::Imag, elementwise),
    (OpKind::IsFinite, elementwise),
    (OpKind::Log, elementwise),
    (OpKind::LogPlusOne, elementwise),
    (OpKind::Logistic, elementwise),
    (OpKind::Maximum, elementwise),
    (OpKind::Minimum, elementwise),
    (OpKind::Multiply, elementwise),
    (OpKind::Negate, elementwise),
    (OpKind::Not, elementwise),
    (OpKind::Or, elementwise),
    (OpKind::Popcnt, elementwise),
    (OpKind::Power, elementwise),
    (OpKind::Real, elementwise),
    (OpKind::ReducePrecision, elementwise),
    (OpKind::Remainder, elementwise),
    (OpKind::RoundNearestAfz, elementwise),
    (OpKind::RoundNearestEven, elementwise),
    (OpKind::Rsqrt, elementwise),
    (OpKind::Select, elementwise),
    (OpKind::ShiftLeft, elementwise),
    (OpKind::ShiftRightArithmetic, elementwise),
    (OpKind::ShiftRightLogical, elementwise),
    (OpKind::Sign, elementwise),
    (OpKind::Sine, elementwise),
    (OpKind::Sqrt, elementwise),
    (OpKind::Subtract, elementwise),
    (OpKind::Tan, elementwise),
    (OpKind::Tanh, elementwise),
    (OpKind::Xor, elementwise),
];

/// Any element-wise operation. Quantized operands are dequantized first, and a quantized result is quantized last.
pub(super) fn elementwise(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.tensors(0..cx.operands.len())?;
    let types = (0..inputs.len()).map(|index| cx.operand_type(index)).collect::<Result<Vec<_>>>()?;
    one(apply(cx, &inputs, &types)?)
}

/// Applies the operation's kernel to tensors of one shape, scalars among them.
pub(super) fn apply(cx: &Cx<'_, '_, '_>, inputs: &[Tensor], types: &[&TensorType]) -> Result<Tensor> {
    let result = cx.result_type(0)?;
    let plain =
        inputs.iter().zip(types).map(|(input, ty)| dequantized(input, ty)).collect::<Result<Vec<_>>>()?;
    let output = expressed(result)?;
    if !cx.machine.options.general_only
        && let Some(computed) = native::elementwise::elementwise(cx.machine.threads, cx.op, &plain, output)?
    {
        return quantized(&computed, result);
    }
    let elements: Vec<ElementType> = plain.iter().map(Tensor::element_type).collect();
    let kernel = kernel(cx.op, &elements, output)
        .ok_or_else(|| unsupported(format!("{} on {elements:?}", cx.op.name())))?;
    let largest =
        plain.iter().max_by_key(|input| input.shape().rank()).ok_or_else(|| invalid("no operands"))?;
    let shape = largest.shape().clone();
    if let Some(odd) = plain.iter().find(|input| *input.shape() != shape && input.shape().rank() > 0) {
        return Err(invalid(format!("operands of shape {} and {shape}", odd.shape())));
    }
    let splat: Vec<bool> = plain.iter().map(|input| *input.shape() != shape).collect();
    let mut arguments = [Scalar::Bool(false); 3];
    let count = plain.len();
    let values = (0..shape.num_elements()).map(|position| {
        for (argument, (input, &splat)) in arguments.iter_mut().zip(plain.iter().zip(&splat)) {
            *argument = input.get(if splat { 0 } else { position });
        }
        kernel(&arguments[..count])
    });
    let computed = Tensor::from_scalars(output, shape.clone(), values)?;
    quantized(&computed, result)
}
