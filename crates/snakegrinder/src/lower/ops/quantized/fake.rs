//! Fake quantization: floats rounded to what codes can hold.

use super::super::prelude::*;
use super::channels::along;
use super::eager::{apply, clamped, inverse, rounded};
use super::tensors::{inverse_number, number};

pub(super) const TABLE: &[Op] = &[
    op("aten.fake_quantize_per_channel_affine.default", |cx, args| {
        per_channel(cx, args, "self", "scale", "zero_point")
    }),
    op("aten.fake_quantize_per_tensor_affine.default", per_tensor)
        .also(&["aten.fake_quantize_per_tensor_affine.tensor_qparams"]),
    op("quantized_decomposed.fake_quant_per_channel.default", |cx, args| {
        per_channel(cx, args, "input", "scales", "zero_points")
    }),
];

/// `(clamp(steps + zero) - zero) · scale`, in f32.
fn restored(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    steps: &Tensor,
    zero: &Operand,
    scale: &Operand,
) -> Lowered<Tensor> {
    let steps = rounded(cx, steps)?;
    let moved = apply(cx, OpKind::Add, &steps, zero.clone())?;
    let kept = clamped(cx, &moved, Some(&args.number("quant_min")?), Some(&args.number("quant_max")?))?;
    let distance = apply(cx, OpKind::Subtract, &kept, zero.clone())?;
    apply(cx, OpKind::Multiply, &distance, scale.clone())
}

fn per_tensor(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (scale, zero) = (number(cx, args, "scale")?, number(cx, args, "zero_point")?);
    let wide = super::eager::widened(cx, &x)?;
    let inverse = inverse_number(cx, &scale)?;
    let steps = apply(cx, OpKind::Multiply, &wide, inverse)?;
    let value = restored(cx, args, &steps, &zero.into(), &scale.into())?;
    one(cx.convert(&value, x.dtype)?)
}

fn per_channel(cx: &mut Cx<'_>, args: &Args<'_>, x: &str, scale: &str, zero: &str) -> Lowered<Outcome> {
    let (x, scale, zero) = (args.tensor(x)?, args.tensor(scale)?, args.tensor(zero)?);
    if zero.dtype.is_float() {
        return refuse("zero points that are no integers");
    }
    let axis = cx.axis(args.int("axis")?, x.rank())?;
    let scale = cx.convert(&scale, ElementType::F32)?;
    let (scale, zero) = (along(cx, &scale, &x, axis)?, along(cx, &zero, &x, axis)?);
    let wide = super::eager::widened(cx, &x)?;
    let inverse = inverse(cx, &scale)?;
    let steps = apply(cx, OpKind::Multiply, &wide, &inverse)?;
    let value = restored(cx, args, &steps, &zero.into(), &scale.into())?;
    one(cx.convert(&value, x.dtype)?)
}
