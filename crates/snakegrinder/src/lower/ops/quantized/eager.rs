//! Eager operations of PyTorch: operands promoted and broadcast, the result rounded to their common type.

use super::super::prelude::*;
use crate::lower::refusal::Refusal;

/// An arithmetic operation; a quotient of integers is a float.
pub(super) fn apply(
    cx: &mut Cx<'_>,
    kind: OpKind,
    a: impl Into<Operand>,
    b: impl Into<Operand>,
) -> Lowered<Tensor> {
    let operands = [a.into(), b.into()];
    let mut dtype = result_type(&operands)?;
    if kind == OpKind::Divide {
        dtype = to_inexact(dtype);
    }
    let unified = cx.unify(&operands, opmath(dtype))?;
    let [a, b] = unified.as_slice() else { return refuse("two operands are needed") };
    let result = cx.binary(kind, a, b)?;
    cx.convert(&result, dtype)
}

/// `1.0 / x`.
pub(super) fn inverse(cx: &mut Cx<'_>, x: impl Into<Operand>) -> Lowered<Tensor> {
    apply(cx, OpKind::Divide, Number::Float(1.0), x)
}

/// The nearest whole numbers, even ones where two are as near; integers as they are.
pub(super) fn rounded(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    if x.dtype.is_float() { cx.unary(OpKind::RoundNearestEven, x) } else { Ok(x.clone()) }
}

/// Values kept in a range, in their own type; NaN stays.
pub(super) fn clamped(
    cx: &mut Cx<'_>,
    x: &Tensor,
    low: Option<&Number>,
    high: Option<&Number>,
) -> Lowered<Tensor> {
    let mut result = x.clone();
    for (kind, bound) in [(OpKind::Maximum, low), (OpKind::Minimum, high)] {
        if let Some(bound) = bound {
            let bound = cx.fill(x.dtype, &x.dims.clone(), bound)?;
            result = cx.binary(kind, &result, &bound)?;
        }
    }
    Ok(result)
}

/// The smaller (or larger) of each element and zero.
pub(super) fn with_zero(cx: &mut Cx<'_>, kind: OpKind, x: &Tensor) -> Lowered<Tensor> {
    cx.with_number(kind, x, Scalar::zero(x.dtype))
}

/// The values in the element type that the archive records for an output: that of the operator's meta kernel, which some operators do not
/// keep to when they run.
pub(super) fn as_recorded(cx: &mut Cx<'_>, args: &Args<'_>, output: usize, x: &Tensor) -> Lowered<Tensor> {
    match args.output_meta(output) {
        Some(meta) => {
            let dtype = crate::graph::element_type(meta.dtype).map_err(Refusal)?;
            cx.convert(x, dtype)
        }
        None => Ok(x.clone()),
    }
}

/// A narrow float in f32, as `torch.ao` widens what it quantizes.
pub(super) fn widened(cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
    match opmath(x.dtype) {
        ElementType::F32 => cx.convert(x, ElementType::F32),
        _ => refuse(format!("quantization of {}", x.dtype)),
    }
}

/// The element type that an argument names.
pub(super) fn dtype(args: &Args<'_>, name: &str) -> Lowered<ElementType> {
    args.opt_dtype(name)?.ok_or_else(|| Refusal(format!("argument `{name}` is missing")))
}
