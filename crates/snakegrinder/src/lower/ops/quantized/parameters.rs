//! `quantized_decomposed`: scales and zero points by the range of values.

use super::super::prelude::*;
use super::eager::{apply, as_recorded, clamped, dtype, rounded, with_zero};

pub(super) const TABLE: &[Op] = &[
    op("quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default", per_token_asymmetric)
        .also(&["quantized_decomposed.choose_qparams_per_token_asymmetric.default"]),
    op("quantized_decomposed.choose_qparams.tensor", |cx, args| per_tensor(cx, args, false)),
    op("quantized_decomposed.choose_qparams_per_token.default", per_token),
    op("quantized_decomposed.choose_qparams_symmetric.tensor", |cx, args| per_tensor(cx, args, true)),
];

/// Scales and zero points as the archive records them.
fn chosen(cx: &mut Cx<'_>, args: &Args<'_>, scale: &Tensor, zero: &Tensor) -> Lowered<Outcome> {
    Ok(vec![as_recorded(cx, args, 0, scale)?.into(), as_recorded(cx, args, 1, zero)?.into()])
}

/// One scale for a tensor: lists of one element.
fn per_tensor(cx: &mut Cx<'_>, args: &Args<'_>, symmetric: bool) -> Lowered<Outcome> {
    let (x, codes) = (args.tensor("input")?, dtype(args, "dtype")?);
    let bound = |name: &str| {
        args.opt_float(name)?.map_or_else(|| refuse(format!("argument `{name}` is missing")), Ok)
    };
    let (low, high, least) = (bound("quant_min")?, bound("quant_max")?, bound("eps")?);
    if !x.dtype.is_float() || x.numel().is(0) {
        return refuse("the range of integers, or of nothing");
    }
    let all: Vec<usize> = (0..x.rank()).collect();
    let (smallest, largest) = (cx.minimum_of(&x, &all)?, cx.maximum_of(&x, &all)?);
    let (below, above) =
        (with_zero(cx, OpKind::Minimum, &smallest)?, with_zero(cx, OpKind::Maximum, &largest)?);
    let (span, steps) = if symmetric {
        let size = cx.neg(&below)?;
        (cx.max(&size, &above)?, (high - low) / 2.0)
    } else {
        (apply(cx, OpKind::Subtract, &above, &below)?, high - low)
    };
    let scale = apply(cx, OpKind::Divide, &span, Number::Float(steps))?;
    // The least scale is a list of one f32, which makes the scale one too.
    let list = [Size::Int(1)];
    let scale = cx.reshape(&scale, &list)?;
    let scale = cx.convert(&scale, ElementType::F32)?;
    let scale = cx.with_number(OpKind::Maximum, &scale, f64::from(least as f32))?;
    let zero = if symmetric {
        let middle = if codes == ElementType::U8 { 128 } else { 0 };
        cx.splat(ElementType::I64, &list, middle)?
    } else {
        let steps = apply(cx, OpKind::Divide, &below, &scale)?;
        let steps = rounded(cx, &steps)?;
        let steps = cx.convert(&steps, ElementType::I32)?;
        let zero = apply(cx, OpKind::Subtract, Number::Int(Size::Int(low as i64)), &steps)?;
        clamped(cx, &zero, Some(&Number::Float(low)), Some(&Number::Float(high)))?
    };
    chosen(cx, args, &scale, &zero)
}

/// The element type of the scales that `choose_qparams_per_token` gives for inputs of one.
pub(super) fn scale_type(input: ElementType) -> ElementType {
    if input == ElementType::F16 { ElementType::F32 } else { input }
}

/// A scale for each row by its largest magnitude, for codes of i8.
fn per_token(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, codes) = (args.tensor("input")?, dtype(args, "dtype")?);
    if codes != ElementType::I8 || x.rank() == 0 {
        return refuse(format!("codes of {codes} for each row of {} dimensions", x.rank()));
    }
    let (size, last) = (cx.unary(OpKind::Abs, &x)?, x.rank() - 1);
    let largest = cx.maximum_of(&size, &[last])?;
    let largest = cx.keep_dims(&largest, &x.dims, &[last])?;
    let largest = cx.convert(&largest, scale_type(x.dtype))?;
    let kept = clamped(cx, &largest, Some(&Number::Float(1e-5)), None)?;
    let scale = apply(cx, OpKind::Divide, &kept, Number::Float(127.0))?;
    let zero = cx.splat_like(&scale, 0.0)?;
    chosen(cx, args, &scale, &zero)
}

/// A scale and a zero point for each row, for codes of i8; the zero point is the one of the end that is nearer.
fn per_token_asymmetric(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("input")?;
    // The range of codes is that of i8, whatever the argument is.
    args.ignore(&["dtype"]);
    if x.rank() == 0 {
        return refuse("the rows of a number");
    }
    let [low, high] = [-128.0, 127.0];
    let last = x.rank() - 1;
    let mut end = |kind: OpKind| {
        let found = match kind {
            OpKind::Minimum => cx.minimum_of(&x, &[last])?,
            _ => cx.maximum_of(&x, &[last])?,
        };
        let found = cx.keep_dims(&found, &x.dims, &[last])?;
        with_zero(cx, kind, &found)
    };
    let (below, above) = (end(OpKind::Minimum)?, end(OpKind::Maximum)?);
    let span = apply(cx, OpKind::Subtract, &above, &below)?;
    let scale = apply(cx, OpKind::Divide, &span, Number::Float(high - low))?;
    let scale = clamped(cx, &scale, Some(&Number::Float(f64::from(f32::EPSILON))), None)?;
    let (steps_below, steps_above) =
        (apply(cx, OpKind::Divide, &below, &scale)?, apply(cx, OpKind::Divide, &above, &scale)?);
    let from_below = apply(cx, OpKind::Add, &steps_below, Number::Float(low))?;
    let from_above = apply(cx, OpKind::Add, &steps_above, Number::Float(high))?;
    let both = apply(cx, OpKind::Add, &from_below, &from_above)?;
    let nearer = cx.compare_number(Cmp::Gt, &both, 0.0)?;
    let zero_below = apply(cx, OpKind::Subtract, Number::Float(low), &steps_below)?;
    let zero_above = apply(cx, OpKind::Subtract, Number::Float(high), &steps_above)?;
    let zero = cx.select(&nearer, &zero_below, &zero_above)?;
    let zero = clamped(cx, &zero, Some(&Number::Float(low)), Some(&Number::Float(high)))?;
    let zero = rounded(cx, &zero)?;
    chosen(cx, args, &scale, &zero)
}
