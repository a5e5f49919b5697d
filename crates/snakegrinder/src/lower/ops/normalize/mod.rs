//! Normalisation.

mod batch;
mod group;
mod layer;

use super::prelude::*;
use crate::graph::element_type;
use crate::lower::refusal::Refusal;

pub(super) const TABLES: &[&[Op]] = &[batch::TABLE, group::TABLE, layer::TABLE];

/// `1 / sqrt(variance + eps)`.
fn inverse_deviation(cx: &mut Cx<'_>, variance: &Tensor, eps: f64) -> Lowered<Tensor> {
    let shifted = cx.with_number(OpKind::Add, variance, eps)?;
    cx.unary(OpKind::Rsqrt, &shifted)
}

/// A result in the type that the archive records for it.
fn as_recorded(cx: &mut Cx<'_>, args: &Args<'_>, position: usize, x: &Tensor) -> Lowered<Tensor> {
    match args.output_meta(position) {
        Some(meta) => {
            let dtype = element_type(meta.dtype).map_err(Refusal)?;
            cx.convert(x, dtype)
        }
        None => Ok(x.clone()),
    }
}

/// `x * weight + bias` along some dimensions, where there are such.
fn scaled_and_shifted(
    cx: &mut Cx<'_>,
    x: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    map: &[usize],
) -> Lowered<Tensor> {
    let mut result = x.clone();
    for (kind, factor) in [(OpKind::Multiply, weight), (OpKind::Add, bias)] {
        if let Some(factor) = factor {
            let factor = cx.convert(factor, x.dtype)?;
            let factor = cx.broadcast(&factor, &x.dims.clone(), map)?;
            result = cx.binary(kind, &result, &factor)?;
        }
    }
    Ok(result)
}
