//! Operations that StableHLO has in another form.

use super::cx::{Cx, Refusal};
use crate::attr::{Attribute, ComparisonDirection, ComparisonType};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{ElementType, Type};
use warpforge_tensor::Scalar;

pub(super) fn tan(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    Ok(vec![cx.b.unary(OpKind::Tan, operand)?])
}

pub(super) fn square(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    let ElementType::Complex(part) = cx.element()? else {
        return Ok(vec![cx.b.binary(OpKind::Multiply, operand, operand)?]);
    };
    // The real part is (x - y)(x + y), which is zero and not NaN where both squares overflow.
    let (x, y) = (cx.b.unary(OpKind::Real, operand)?, cx.b.unary(OpKind::Imag, operand)?);
    let (width, height) = (cx.b.unary(OpKind::Abs, x)?, cx.b.unary(OpKind::Abs, y)?);
    let equal = cx.b.compare(ComparisonDirection::Eq, width, height)?;
    let finite = cx.b.unary(OpKind::IsFinite, x)?;
    let cancels = cx.b.binary(OpKind::And, equal, finite)?;
    let (difference, sum) = (cx.b.binary(OpKind::Subtract, x, y)?, cx.b.binary(OpKind::Add, x, y)?);
    let product = cx.b.binary(OpKind::Multiply, difference, sum)?;
    let zero = cx.splat(ElementType::Float(part), 0.0)?;
    let real = cx.b.select(cancels, zero, product)?;
    let mixed = cx.b.binary(OpKind::Multiply, x, y)?;
    let two = cx.splat(ElementType::Float(part), 2.0)?;
    let imag = cx.b.binary(OpKind::Multiply, two, mixed)?;
    Ok(vec![cx.b.binary(OpKind::Complex, real, imag)?])
}

pub(super) fn conj(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    if !cx.element()?.is_complex() {
        return Ok(vec![operand]);
    }
    let (real, imag) = (cx.b.unary(OpKind::Real, operand)?, cx.b.unary(OpKind::Imag, operand)?);
    let imag = cx.b.unary(OpKind::Negate, imag)?;
    Ok(vec![cx.b.binary(OpKind::Complex, real, imag)?])
}

pub(super) fn is_inf(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    let magnitude = cx.b.unary(OpKind::Abs, operand)?;
    equals(cx, magnitude, f64::INFINITY)
}

pub(super) fn is_pos_inf(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    equals(cx, operand, f64::INFINITY)
}

pub(super) fn is_neg_inf(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let operand = cx.operand(0)?;
    equals(cx, operand, f64::NEG_INFINITY)
}

fn equals(cx: &mut Cx<'_, '_>, value: ValueId, number: f64) -> Result<Vec<ValueId>, Refusal> {
    let element = cx.element()?;
    let number = cx.splat(element, number)?;
    Ok(vec![cx.b.compare(ComparisonDirection::Eq, value, number)?])
}

pub(super) fn constant(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let value = cx.op().attr("value").cloned().ok_or_else(|| cx.refused())?;
    Ok(vec![cx.b.op(OpKind::Constant, &[], [("value", value)])?])
}

pub(super) fn constant_like(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let value = match cx.op().attr("value") {
        Some(Attribute::Int(value, _)) => Scalar::Int(*value),
        Some(Attribute::Float(value, _)) => Scalar::Float(*value),
        Some(Attribute::Bool(value)) => Scalar::Bool(*value),
        _ => return Err(cx.refused()),
    };
    let element = cx.element()?;
    Ok(vec![cx.splat(element, value)?])
}

/// The largest or smallest elements along the last dimension, by sorting all of them with their positions.
pub(super) fn top_k(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let (operand, ty, element) = (cx.operand(0)?, cx.tensor(0)?, cx.element()?);
    let largest = cx.op().attr_bool("largest").unwrap_or(true);
    let (Some(k), Some(shape)) = (cx.op().attr_i64("k"), ty.shape()) else { return Err(cx.refused()) };
    let counted = cx.op().result_tensor(1).and_then(|ty| ty.element().plain());
    let (Some(counted), Some(axis)) = (counted, ty.rank().checked_sub(1)) else { return Err(cx.refused()) };
    let axis = axis as i64;
    let positions = cx.b.iota(counted, &shape, axis)?;
    let direction = if largest { ComparisonDirection::Gt } else { ComparisonDirection::Lt };
    // Numbers in the order of their bits, so that what is no number has a place too.
    let order = match element {
        ElementType::Float(_) => ComparisonType::TotalOrder,
        ElementType::Int(int) if int.is_signed() => ComparisonType::Signed,
        ElementType::Int(_) | ElementType::Bool => ComparisonType::Unsigned,
        _ => return Err(cx.refused()),
    };
    let scalars = [element, element, counted, counted].map(|element| Type::tensor(&[], element));
    let body = cx.b.region::<Refusal>(&scalars, |b, values| {
        let attrs = [
            ("comparison_direction", Attribute::enumeration(direction)),
            ("compare_type", Attribute::enumeration(order)),
        ];
        Ok(vec![b.op(OpKind::Compare, &values[..2], attrs)?])
    })?;
    let attrs = [("dimension", Attribute::i64(axis)), ("is_stable", Attribute::Bool(true))];
    let sorted = cx.b.create(OpKind::Sort, &[operand, positions], attrs, vec![body], None)?;
    let mut limits: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
    if let Some(last) = limits.last_mut() {
        *last = k;
    }
    let (starts, strides) = (vec![0; limits.len()], vec![1; limits.len()]);
    let mut results = Vec::new();
    for value in cx.b.results(sorted) {
        results.push(cx.b.slice(value, &starts, &limits, &strides)?);
    }
    Ok(results)
}
