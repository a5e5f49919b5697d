//! Conversion to and from quantized numbers.

use warpforge_ir::{Element, OpKind, TensorType};
use warpforge_tensor::element::QuantizedType;
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::Evaluator;
use crate::Value;
use crate::cx::{Cx, one, storage};
use crate::error::{Result, invalid};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::UniformDequantize | OpKind::UniformQuantize => requantize,
        _ => return None,
    })
}

/// From any of real and quantized numbers to the other.
fn requantize(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let real = dequantized(cx.tensor(0)?, cx.operand_type(0)?)?;
    one(quantized(&real, cx.result_type(0)?)?)
}

/// The element type that a tensor type's elements stand for.
pub(super) fn expressed(ty: &TensorType) -> Result<ElementType> {
    match ty.element() {
        Element::Quantized(quantized) => Ok(ElementType::Float(quantized.expressed)),
        other => storage(other),
    }
}

/// The real numbers that a tensor of a type stands for; a tensor that is not quantized is what it is.
pub(super) fn dequantized(tensor: &Tensor, ty: &TensorType) -> Result<Tensor> {
    let Element::Quantized(quantized) = ty.element() else { return Ok(tensor.clone()) };
    let format = quantized.expressed.format();
    convert_each(tensor, quantized, ElementType::Float(quantized.expressed), |stored, scale, zero_point| {
        let offset = format.round(stored.to_f64() - zero_point as f64);
        Scalar::Float(format.round(offset * format.round(scale)))
    })
}

/// The tensor of a type that stands for real numbers; a type that is not quantized leaves them as they are.
pub(super) fn quantized(tensor: &Tensor, ty: &TensorType) -> Result<Tensor> {
    let Element::Quantized(quantized) = ty.element() else { return Ok(tensor.clone()) };
    let format = quantized.expressed.format();
    let (low, high) = (quantized.storage_min as f64, quantized.storage_max as f64);
    convert_each(tensor, quantized, ElementType::Int(quantized.storage), |real, scale, zero_point| {
        let scaled = format.round(real.to_f64() / format.round(scale));
        let shifted = format.round(scaled + format.round(zero_point as f64));
        // NaN has no place among integers and becomes zero.
        let kept = if shifted.is_nan() { 0.0 } else { shifted.clamp(low, high) };
        Scalar::Int(kept.round_ties_even() as i128)
    })
}

/// Applies a conversion that depends on each element's scale and zero point.
fn convert_each(
    tensor: &Tensor,
    quantized: &QuantizedType,
    to: ElementType,
    convert: impl Fn(Scalar, f64, i64) -> Scalar,
) -> Result<Tensor> {
    let mut result = Tensor::zeros(to, tensor.shape().clone())?;
    let mut indices = tensor.shape().indices();
    let mut position = 0;
    while let Some(index) = indices.advance() {
        let parameters = quantized
            .parameters_at(tensor.dims(), index)
            .ok_or_else(|| invalid("the quantized type has too few scales for the tensor"))?;
        result.set(position, convert(tensor.get(position), parameters.scale, parameters.zero_point));
        position += 1;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use warpforge_tensor::{FloatType, IntType};

    #[test]
    fn quantizing_rounds_to_even_and_saturates() {
        let element = QuantizedType::per_tensor(IntType::I8, FloatType::F32, 0.5, 10);
        let ty = TensorType::fixed(&[5], Element::Quantized(Arc::new(element)));
        let real = Tensor::from_slice(&[5], &[0.0f32, 0.25, 0.75, 1e9, f32::NAN]).expect("fits");
        let stored = quantized(&real, &ty).expect("quantizable");
        assert_eq!(stored.as_slice::<i8>().expect("i8"), [10, 10, 12, 127, 0]);
        let back = dequantized(&stored, &ty).expect("quantized");
        assert_eq!(back.as_slice::<f32>().expect("f32")[..3], [0.0, 0.0, 1.0]);
    }
}
