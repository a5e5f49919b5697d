//! torchao's affine quantization: a scale and a zero point for each block of a tensor.

use super::super::prelude::*;
use super::eager::{apply, clamped, dtype, inverse, rounded, with_zero};

pub(super) const TABLE: &[Op] = &[
    op("torchao.choose_qparams_affine.default", choose),
    op("torchao.dequantize_affine.default", dequantize),
    op("torchao.quantize_affine.default", quantize),
];

/// A tensor cut into blocks: each dimension that has several has two, which of them and which in it.
pub(super) struct Blocks {
    /// The sizes after cutting.
    pub(super) split: Vec<Size>,
    /// The dimensions inside of blocks.
    pub(super) inside: Vec<usize>,
    /// How many blocks there are along each dimension of the tensor.
    pub(super) counts: Vec<Size>,
}

impl Blocks {
    pub(super) fn new(dims: &[Size], block: &[Size]) -> Lowered<Self> {
        if dims.len() != block.len() {
            return refuse(format!("blocks of {} dimensions in a tensor of {}", block.len(), dims.len()));
        }
        let (mut split, mut inside, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (size, block) in dims.iter().zip(block) {
            let count = match size.modulo(block) {
                Some(rest) if rest.is(0) || rest.as_int().is_none() => size.floor_div(block),
                _ => None,
            };
            let Some(count) = count else {
                return refuse(format!("a dimension of {size} in blocks of {block}"));
            };
            if size != block && !block.is(1) {
                split.push(count.clone());
                inside.push(split.len());
                split.push(block.clone());
            } else {
                if !block.is(1) {
                    inside.push(split.len());
                }
                split.push(size.clone());
            }
            counts.push(count);
        }
        Ok(Self { split, inside, counts })
    }

    /// One value for each block, in dimensions that broadcast to the blocks.
    pub(super) fn aligned(&self, cx: &mut Cx<'_>, values: &Tensor) -> Lowered<Tensor> {
        let one =
            |(at, size): (usize, &Size)| if self.inside.contains(&at) { Size::Int(1) } else { size.clone() };
        let dims: Vec<Size> = self.split.iter().enumerate().map(one).collect();
        let (blocks, given) = (Size::product(&dims), values.numel());
        if let (Some(blocks), Some(given)) = (blocks.as_int(), given.as_int())
            && blocks != given
        {
            return refuse(format!("{given} values for {blocks} blocks"));
        }
        cx.reshape(values, &dims)
    }
}

/// The range of codes: the arguments, or all that an element type holds.
fn range(args: &Args<'_>, element: ElementType) -> Lowered<[f64; 2]> {
    let whole = match element {
        ElementType::Int(int) => [int.min() as f64, int.max() as f64],
        ElementType::Float(float) => [-float.format().max_finite(), float.format().max_finite()],
        other => return refuse(format!("codes of {other}")),
    };
    Ok([args.opt_float("quant_min")?.unwrap_or(whole[0]), args.opt_float("quant_max")?.unwrap_or(whole[1])])
}

fn quantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, scale, zero) = (args.tensor("input")?, args.tensor("scale")?, args.tensor("zero_point")?);
    let codes = dtype(args, "output_dtype")?;
    let [low, high] = range(args, codes)?;
    let blocks = Blocks::new(&x.dims, &args.sizes("block_size")?)?;
    let (scale, zero) = (blocks.aligned(cx, &scale)?, blocks.aligned(cx, &zero)?);
    let split = cx.reshape(&x, &blocks.split)?;
    let inverse = inverse(cx, &scale)?;
    let steps = apply(cx, OpKind::Multiply, &split, &inverse)?;
    let steps = rounded(cx, &steps)?;
    let moved = apply(cx, OpKind::Add, &steps, &zero)?;
    let kept = clamped(cx, &moved, Some(&Number::Float(low)), Some(&Number::Float(high)))?;
    let whole = cx.reshape(&kept, &x.dims)?;
    one(cx.convert(&whole, codes)?)
}

fn dequantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // The range says what codes can be; the values do not depend on it.
    args.ignore(&["input_dtype", "quant_min", "quant_max"]);
    let (codes, scale, zero) = (args.tensor("input")?, args.tensor("scale")?, args.opt_tensor("zero_point")?);
    let wide = args.opt_dtype("output_dtype")?.unwrap_or(ElementType::F32);
    let blocks = Blocks::new(&codes.dims, &args.sizes("block_size")?)?;
    let scale = blocks.aligned(cx, &scale)?;
    let split = cx.reshape(&codes, &blocks.split)?;
    let mut value = cx.convert(&split, wide)?;
    if let Some(zero) = zero {
        let zero = cx.convert(&zero, wide)?;
        let zero = blocks.aligned(cx, &zero)?;
        value = apply(cx, OpKind::Subtract, &value, &zero)?;
    }
    let value = apply(cx, OpKind::Multiply, &value, &scale)?;
    let whole = cx.reshape(&value, &codes.dims)?;
    one(cx.convert(&whole, wide)?)
}

fn choose(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("input")?;
    let ElementType::Float(float) = x.dtype else { return refuse(format!("scales of {}", x.dtype)) };
    let blocks = Blocks::new(&x.dims, &args.sizes("block_size")?)?;
    if blocks.inside.is_empty() {
        return refuse("blocks of one element");
    }
    let [low, high] = range(args, dtype(args, "target_dtype")?)?;
    let least = args.opt_float("eps")?.unwrap_or(float.format().min_normal());
    let split = cx.reshape(&x, &blocks.split)?;
    let (smallest, largest) =
        (cx.minimum_of(&split, &blocks.inside)?, cx.maximum_of(&split, &blocks.inside)?);
    let (below, above) =
        (with_zero(cx, OpKind::Minimum, &smallest)?, with_zero(cx, OpKind::Maximum, &largest)?);
    let least = Number::Float(least);
    let (scale, zero, zero_type) = match args.str_or("mapping_type", "")? {
        "ASYMMETRIC" => {
            let span = apply(cx, OpKind::Subtract, &above, &below)?;
            let scale = apply(cx, OpKind::Divide, &span, Number::Float(high - low))?;
            let scale = clamped(cx, &scale, Some(&least), None)?;
            let steps = apply(cx, OpKind::Divide, &below, &scale)?;
            let steps = rounded(cx, &steps)?;
            let zero = apply(cx, OpKind::Subtract, Number::Float(low), &steps)?;
            let zero = clamped(cx, &zero, Some(&Number::Float(low)), Some(&Number::Float(high)))?;
            (scale, zero, ElementType::I32)
        }
        mapping @ ("SYMMETRIC" | "SYMMETRIC_NO_CLIPPING_ERR") => {
            let scale = if mapping == "SYMMETRIC" {
                let size = cx.neg(&below)?;
                let size = cx.max(&size, &above)?;
                apply(cx, OpKind::Divide, &size, Number::Float((high - low) / 2.0))?
            } else {
                // A range that begins at zero makes the first quotient NaN or infinite, as PyTorch's.
                let from_below = apply(cx, OpKind::Divide, &below, Number::Float(low))?;
                let from_above = apply(cx, OpKind::Divide, &above, Number::Float(high))?;
                let larger = cx.compare(Cmp::Gt, &from_below, &from_above)?;
                cx.select(&larger, &from_below, &from_above)?
            };
            let zero = cx.splat_like(&scale, ((high + low + 1.0) / 2.0).trunc())?;
            (clamped(cx, &scale, Some(&least), None)?, zero, scale.dtype)
        }
        other => return refuse(format!("mapping `{other}`")),
    };
    let (mut scale, mut zero) = (scale, zero);
    if args.bool_or("keepdim", false)? {
        scale = cx.reshape(&scale, &blocks.counts)?;
        zero = cx.reshape(&zero, &blocks.counts)?;
    }
    let scale_type = args.opt_dtype("scale_dtype")?.unwrap_or(x.dtype);
    let zero_type = args.opt_dtype("zero_point_dtype")?.unwrap_or(zero_type);
    Ok(vec![cx.convert(&scale, scale_type)?.into(), cx.convert(&zero, zero_type)?.into()])
}
