//! `quantized_decomposed`: one scale and zero point for a whole tensor, as numbers or as tensors of one element.

use super::super::prelude::*;
use super::eager::{apply, clamped, dtype, inverse, rounded, widened};

pub(super) const TABLE: &[Op] = &[
    op("quantized_decomposed.convert_element_type.no_fuse", |cx, args| {
        let (x, element) = (args.tensor("input")?, dtype(args, "dtype")?);
        one(cx.convert(&x, element)?)
    }),
    op("quantized_decomposed.dequantize_per_tensor.default", dequantize).also(&[
        "quantized_decomposed.dequantize_per_tensor.tensor",
        "quantized_decomposed.dequantize_per_tensor.tensor2",
    ]),
    op("quantized_decomposed.quantize_per_tensor.default", quantize).also(&[
        "quantized_decomposed.quantize_per_tensor.tensor",
        "quantized_decomposed.quantize_per_tensor.tensor2",
    ]),
];

/// A number, also where it is given as a tensor of one element.
pub(super) fn number(cx: &mut Cx<'_>, args: &Args<'_>, name: &str) -> Lowered<Number> {
    match args.get(name) {
        Some(Value::Tensor(tensor)) if tensor.numel().is(1) => {
            let tensor = tensor.clone();
            Ok(Number::Computed(cx.reshape(&tensor, &[])?.fresh()))
        }
        _ => args.number(name),
    }
}

/// `1.0 / scale` of Python floats: in double precision.
pub(super) fn inverse_number(cx: &mut Cx<'_>, scale: &Number) -> Lowered<Number> {
    match (scale, scale.as_f64()) {
        (_, Some(scale)) => Ok(Number::Float(1.0 / scale)),
        (Number::Computed(scale), None) => {
            let wide = cx.convert(scale, ElementType::F64)?;
            Ok(Number::Computed(inverse(cx, &wide)?))
        }
        _ => refuse("a scale that is no real number"),
    }
}

fn quantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, codes) = (args.tensor("input")?, dtype(args, "dtype")?);
    let (scale, zero) = (number(cx, args, "scale")?, number(cx, args, "zero_point")?);
    let (low, high) = (number(cx, args, "quant_min")?, number(cx, args, "quant_max")?);
    let wide = widened(cx, &x)?;
    let inverse = inverse_number(cx, &scale)?;
    let steps = apply(cx, OpKind::Multiply, &wide, inverse)?;
    let steps = rounded(cx, &steps)?;
    let moved = apply(cx, OpKind::Add, &steps, zero)?;
    let kept = clamped(cx, &moved, Some(&low), Some(&high))?;
    one(cx.convert(&kept, codes)?)
}

fn dequantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // What codes are and can be; the values do not depend on it.
    args.ignore(&["quant_min", "quant_max", "dtype"]);
    let codes = args.tensor("input")?;
    let (scale, zero) = (number(cx, args, "scale")?, number(cx, args, "zero_point")?);
    let element = args.opt_dtype("out_dtype")?.unwrap_or(ElementType::F32);
    let wide = cx.convert(&codes, element)?;
    let distance = apply(cx, OpKind::Subtract, &wide, zero)?;
    one(apply(cx, OpKind::Multiply, &distance, scale)?)
}
