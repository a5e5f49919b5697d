//! `quantized_decomposed`: a scale and a zero point for each row of the last dimension.

use super::super::prelude::*;
use super::eager::{apply, clamped, dtype, inverse, rounded};
use crate::lower::refusal::Refusal;

pub(super) const TABLE: &[Op] = &[
    op("quantized_decomposed.dequantize_per_token.default", dequantize),
    op("quantized_decomposed.quantize_per_token.default", quantize),
];

const CHOOSES: &str = "quantized_decomposed.choose_qparams_per_token.default";

/// The scales in the type that they have when PyTorch runs the graph: `choose_qparams_per_token` gives narrower ones than graphs record.
fn scales(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Tensor> {
    let scales = args.tensor("scales")?;
    match args.of_giver("scales", CHOOSES, "input") {
        Some(meta) => {
            let given = crate::graph::element_type(meta.dtype).map_err(Refusal)?;
            cx.convert(&scales, super::parameters::scale_type(given))
        }
        None => Ok(scales),
    }
}

fn quantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, zeros, codes) = (args.tensor("input")?, args.tensor("zero_points")?, dtype(args, "dtype")?);
    let scales = scales(cx, args)?;
    let inverse = inverse(cx, &scales)?;
    let steps = apply(cx, OpKind::Multiply, &x, &inverse)?;
    let moved = apply(cx, OpKind::Add, &steps, &zeros)?;
    let steps = rounded(cx, &moved)?;
    let kept = clamped(cx, &steps, Some(&args.number("quant_min")?), Some(&args.number("quant_max")?))?;
    one(cx.convert(&kept, codes)?)
}

fn dequantize(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // What codes are and can be; the values do not depend on it.
    args.ignore(&["quant_min", "quant_max", "dtype"]);
    let (codes, zeros) = (args.tensor("input")?, args.tensor("zero_points")?);
    let scales = scales(cx, args)?;
    let distance = apply(cx, OpKind::Subtract, &codes, &zeros)?;
    let value = apply(cx, OpKind::Multiply, &distance, &scales)?;
    one(cx.convert(&value, args.opt_dtype("output_dtype")?.unwrap_or(ElementType::F32))?)
}
