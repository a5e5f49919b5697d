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

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::Abs
        | OpKind::Add
        | OpKind::And
        | OpKind::Atan2
        | OpKind::Cbrt
        | OpKind::Ceil
        | OpKind::Clamp
        | OpKind::Compare
        | OpKind::Complex
        | OpKind::Convert
        | OpKind::Cosine
        | OpKind::CountLeadingZeros
        | OpKind::Divide
        | OpKind::Exponential
        | OpKind::ExponentialMinusOne
        | OpKind::Floor
        | OpKind::Imag
        | OpKind::IsFinite
        | OpKind::Log
        | OpKind::LogPlusOne
        | OpKind::Logistic
        | OpKind::Maximum
        | OpKind::Minimum
        | OpKind::Multiply
        | OpKind::Negate
        | OpKind::Not
        | OpKind::Or
        | OpKind::Popcnt
        | OpKind::Power
        | OpKind::Real
        | OpKind::ReducePrecision
        | OpKind::Remainder
        | OpKind::RoundNearestAfz
        | OpKind::RoundNearestEven
        | OpKind::Rsqrt
        | OpKind::Select
        | OpKind::ShiftLeft
        | OpKind::ShiftRightArithmetic
        | OpKind::ShiftRightLogical
        | OpKind::Sign
        | OpKind::Sine
        | OpKind::Sqrt
        | OpKind::Subtract
        | OpKind::Tan
        | OpKind::Tanh
        | OpKind::Xor => elementwise,
        _ => return None,
    })
}

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
