//! torchao's scaled floats of 8 bits: a scale for each block of a tensor, no zero point.

use warpforge_tensor::FloatType;

use super::super::prelude::*;
use super::affine::Blocks;
use super::eager::{apply, clamped, rounded};

pub(super) const TABLE: &[Op] = &[
    op("torchao.choose_scale_float8.default", choose),
    op("torchao.dequantize_affine_float8_non_decomposed.default", dequantize),
    op("torchao.quantize_affine_float8_non_decomposed.default", quantize),
];

const E4M3: ElementType = ElementType::Float(FloatType::F8E4M3Fn);

/// The element type of codes, e4m3 where the argument is left out, and its largest value.
fn codes(args: &Args<'_>) -> Lowered<(ElementType, f64)> {
    match args.opt_dtype("float8_dtype")?.unwrap_or(E4M3) {
        element @ ElementType::Float(float) if element.byte_width() == 1 => {
            Ok((element, float.format().max_finite()))
        }
        other => refuse(format!("scaled floats of 8 bits as {other}")),
    }
}

fn choose(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("tensor")?;
    let (_, most) = codes(args)?;
    let blocks = Blocks::new(&x.dims, &args.sizes("block_size")?)?;
    if blocks.inside.is_empty() {
        return refuse("blocks of one element");
    }
    let split = cx.reshape(&x, &blocks.split)?;
    let size = cx.unary(OpKind::Abs, &split)?;
    let largest = cx.maximum_of(&size, &blocks.inside)?;
    let bounds = [args.opt_float("hp_value_lb")?, args.opt_float("hp_value_ub")?]
        .map(|bound| bound.map(Number::Float));
    let largest = clamped(cx, &largest, bounds[0].as_ref(), bounds[1].as_ref())?;
    let scale = apply(cx, OpKind::Divide, &largest, Number::Float(most))?;
    let mut scale = cx.reshape(&scale, &blocks.counts)?;
    match args.opt_dtype("scale_dtype")? {
        None | Some(ElementType::F32) => {}
        Some(ElementType::Float(FloatType::F8E8M0Fnu)) => scale = power_of_two(cx, &scale)?,
        Some(other) => return refuse(format!("scales of {other}")),
    }
    one(cx.convert(&scale, ElementType::F32)?)
}

/// The nearest powers of two, by their exponents.
fn power_of_two(cx: &mut Cx<'_>, scale: &Tensor) -> Lowered<Tensor> {
    let wide = cx.convert(scale, opmath(scale.dtype))?;
    let logarithm = cx.unary(OpKind::Log, &wide)?;
    let exponent = cx.with_number(OpKind::Divide, &logarithm, std::f64::consts::LN_2)?;
    let exponent = cx.convert(&exponent, scale.dtype)?;
    let exponent = rounded(cx, &exponent)?;
    let two = cx.splat_like(&exponent, 2.0)?;
    cx.binary(OpKind::Power, &two, &exponent)
}

/// The scales and a tensor in dimensions that broadcast: scales of blocks are repeated inside of them.
fn aligned(cx: &mut Cx<'_>, x: &Tensor, scale: &Tensor) -> Lowered<(Tensor, Tensor)> {
    let numpy = scale.rank() <= x.rank()
        && scale.dims.iter().rev().zip(x.dims.iter().rev()).all(|(own, size)| own.is(1) || own == size);
    if numpy {
        return Ok((x.clone(), scale.clone()));
    }
    if scale.rank() != x.rank() {
        return refuse(format!("scales of {} dimensions for a tensor of {}", scale.rank(), x.rank()));
    }
    let block = x.dims.iter().zip(scale.dims.iter()).map(|(size, count)| size.floor_div(count));
    let Some(block) = block.collect::<Option<Vec<_>>>() else { return refuse("no scales") };
    let blocks = Blocks::new(&x.dims, &block)?;
    let split = cx.reshape(x, &blocks.split)?;
    Ok((split, blocks.aligned(cx, scale)?))
}

fn quantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, scale) = (args.tensor("tensor")?, args.tensor("scale")?);
    let (element, most) = codes(args)?;
    let wide = cx.convert(&x, ElementType::F32)?;
    let (wide, scale) = aligned(cx, &wide, &scale)?;
    let steps = apply(cx, OpKind::Divide, &wide, &scale)?;
    let kept = clamped(cx, &steps, Some(&Number::Float(-most)), Some(&Number::Float(most)))?;
    let whole = cx.reshape(&kept, &x.dims)?;
    one(cx.convert(&whole, element)?)
}

fn dequantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, scale) = (args.tensor("tensor")?, args.tensor("scale")?);
    let element = args.opt_dtype("output_dtype")?.unwrap_or(ElementType::F32);
    let wide = cx.convert(&x, ElementType::F32)?;
    let (wide, scale) = aligned(cx, &wide, &scale)?;
    let value = apply(cx, OpKind::Multiply, &wide, &scale)?;
    let whole = cx.reshape(&value, &x.dims)?;
    one(cx.convert(&whole, element)?)
}
