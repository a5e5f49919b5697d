//! `quantized_decomposed`: a scale and a zero point for each index of a dimension, or for groups of the last one.

use super::super::prelude::*;
use super::eager::{apply, clamped, dtype, inverse, rounded, widened};

pub(super) const TABLE: &[Op] = &[
    op("quantized_decomposed.dequantize_per_channel.default", dequantize),
    op("quantized_decomposed.dequantize_per_channel_group.default", dequantize_groups),
    op("quantized_decomposed.quantize_per_channel.default", quantize),
    op("quantized_decomposed.quantize_per_channel_group.default", quantize_groups),
];

/// One value for each index of a dimension, in dimensions that broadcast to a tensor.
pub(super) fn along(cx: &mut Cx<'_>, values: &Tensor, x: &Tensor, axis: usize) -> Lowered<Tensor> {
    let mut dims = vec![Size::Int(1); x.rank()];
    if values.rank() != 1 || axis >= x.rank() {
        return refuse("scales that are no list with one for each channel");
    }
    dims[axis] = values.dim(0);
    cx.reshape(values, &dims)
}

fn quantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, codes) = (args.tensor("input")?, dtype(args, "dtype")?);
    let axis = cx.axis(args.int("axis")?, x.rank())?;
    let (scales, zeros) = (args.tensor("scales")?, args.tensor("zero_points")?);
    let (scales, zeros) = (along(cx, &scales, &x, axis)?, along(cx, &zeros, &x, axis)?);
    let wide = widened(cx, &x)?;
    let inverse = inverse(cx, &scales)?;
    let steps = apply(cx, OpKind::Multiply, &wide, &inverse)?;
    let steps = rounded(cx, &steps)?;
    let moved = apply(cx, OpKind::Add, &steps, &zeros)?;
    let kept = clamped(cx, &moved, Some(&args.number("quant_min")?), Some(&args.number("quant_max")?))?;
    one(cx.convert(&kept, codes)?)
}

fn dequantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // What codes are and can be; the values do not depend on it.
    args.ignore(&["quant_min", "quant_max", "dtype"]);
    let codes = args.tensor("input")?;
    let axis = cx.axis(args.int("axis")?, codes.rank())?;
    let scales = args.tensor("scales")?;
    let scales = along(cx, &scales, &codes, axis)?;
    let mut value = codes.clone();
    if let Some(zeros) = args.opt_tensor("zero_points")? {
        let zeros = along(cx, &zeros, &codes, axis)?;
        value = apply(cx, OpKind::Subtract, &value, &zeros)?;
    }
    let value = apply(cx, OpKind::Multiply, &value, &scales)?;
    one(cx.convert(&value, args.opt_dtype("out_dtype")?.unwrap_or(ElementType::F32))?)
}

/// A matrix as rows of one group each, and the values of groups beside them.
fn grouped(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor) -> Lowered<(Tensor, Tensor, Option<Tensor>)> {
    let (scales, zeros) = (args.tensor("scales")?, args.opt_tensor("zero_points")?);
    if x.rank() != 2 {
        return refuse("groups of something that is no matrix");
    }
    let depth = cx.known(&[x.dim(1)])?[0];
    let mut group = args.int_or("group_size", 128)?;
    if group > depth && scales.dims.last().is_some_and(|last| last.is(1)) {
        group = depth;
    }
    if group <= 1 || depth % group != 0 {
        return refuse(format!("groups of {group} in rows of {depth}"));
    }
    let count = x.dim(0).mul(&Size::Int(depth / group));
    let split = cx.reshape(x, &[count.clone(), Size::Int(group)])?;
    let mut column = |values: &Tensor| cx.reshape(values, &[values.numel(), Size::Int(1)]);
    Ok((split, column(&scales)?, zeros.as_ref().map(column).transpose()?))
}

fn quantize_groups(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, codes) = (args.tensor("input")?, dtype(args, "dtype")?);
    let (split, scales, zeros) = grouped(cx, args, &x)?;
    let Some(zeros) = zeros else { return refuse("no zero points") };
    let inverse = inverse(cx, &scales)?;
    let steps = apply(cx, OpKind::Multiply, &split, &inverse)?;
    let moved = apply(cx, OpKind::Add, &steps, &zeros)?;
    let steps = rounded(cx, &moved)?;
    let kept = clamped(cx, &steps, Some(&args.number("quant_min")?), Some(&args.number("quant_max")?))?;
    let converted = cx.convert(&kept, codes)?;
    one(cx.reshape(&converted, &x.dims)?)
}

fn dequantize_groups(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // What codes are and can be; the values do not depend on it.
    args.ignore(&["quant_min", "quant_max", "dtype"]);
    let codes = args.tensor("input")?;
    let (mut value, scales, zeros) = grouped(cx, args, &codes)?;
    if let Some(zeros) = zeros {
        value = apply(cx, OpKind::Subtract, &value, &zeros)?;
    }
    let value = apply(cx, OpKind::Multiply, &value, &scales)?;
    let whole = cx.reshape(&value, &codes.dims)?;
    one(cx.convert(&whole, args.opt_dtype("output_dtype")?.unwrap_or(ElementType::F32))?)
}
