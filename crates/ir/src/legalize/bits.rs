//! What is computed on the bits of numbers.

use super::cx::{Cx, Refusal};
use crate::attr::ComparisonDirection::{Eq, Gt, Ne};
use crate::module::ValueId;
use crate::table::OpKind;
use crate::types::{ElementType, IntType, Type};
use warpforge_tensor::Scalar;

/// The number after `x` in the direction of `y`: its bits counted up or down.
pub(super) fn next_after(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let element = cx.element()?;
    let code = match (element.is_float(), element.bits()) {
        (true, 16) => ElementType::Int(IntType::U16),
        (true, 32) => ElementType::Int(IntType::U32),
        (true, 64) => ElementType::Int(IntType::U64),
        _ => return Err(cx.refused()),
    };
    let (float, codes) = (cx.tensor(0)?, cx.tensor(0)?.with_element(code));
    let one = cx.splat(code, 1)?;
    let negative = cx.splat(code, Scalar::Int((1 << (element.bits() - 1)) + 1))?;
    let zero = cx.splat(element, 0.0)?;
    let b = &mut *cx.b;
    let bits = b.op_as(OpKind::BitcastConvert, &[x], [], Type::Tensor(codes))?;
    let up = b.compare(Gt, y, x)?;
    let positive = b.compare(Gt, x, zero)?;
    let away = b.compare(Eq, up, positive)?;
    let (more, less) = (b.binary(OpKind::Add, bits, one)?, b.binary(OpKind::Subtract, bits, one)?);
    let neighbour = b.select(away, more, less)?;
    // On both sides of zero are the smallest numbers.
    let smallest = b.select(up, one, negative)?;
    let is_zero = b.compare(Eq, x, zero)?;
    let bits = b.select(is_zero, smallest, neighbour)?;
    let next = b.op_as(OpKind::BitcastConvert, &[bits], [], Type::Tensor(float))?;
    let equal = b.compare(Eq, x, y)?;
    let next = b.select(equal, y, next)?;
    let (no_x, no_y) = (b.compare(Ne, x, x)?, b.compare(Ne, y, y)?);
    let nan = b.binary(OpKind::Add, x, y)?;
    let unordered = b.binary(OpKind::Or, no_x, no_y)?;
    Ok(vec![b.select(unordered, nan, next)?])
}

/// The upper half of a product.
pub(super) fn mulhi(cx: &mut Cx<'_, '_>) -> Result<Vec<ValueId>, Refusal> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let ElementType::Int(int) = cx.element()? else { return Err(cx.refused()) };
    let wide = ElementType::Int(if int.is_signed() { IntType::I64 } else { IntType::U64 });
    let right = if int.is_signed() { OpKind::ShiftRightArithmetic } else { OpKind::ShiftRightLogical };
    if int.bits() < 64 {
        let width = cx.splat(wide, i64::from(int.bits()))?;
        let (x, y) = (cx.b.convert(x, wide)?, cx.b.convert(y, wide)?);
        let product = cx.b.binary(OpKind::Multiply, x, y)?;
        let upper = cx.b.binary(right, product, width)?;
        return Ok(vec![cx.b.convert(upper, ElementType::Int(int))?]);
    }
    // By halves, as by hand: the lower ones without a sign, the upper ones with theirs.
    let width = cx.splat(wide, 32)?;
    let mask = cx.splat(wide, (1i64 << 32) - 1)?;
    let b = &mut *cx.b;
    let (xl, yl) = (b.binary(OpKind::And, x, mask)?, b.binary(OpKind::And, y, mask)?);
    let (xh, yh) = (b.binary(right, x, width)?, b.binary(right, y, width)?);
    let low = b.binary(OpKind::Multiply, xl, yl)?;
    let carry = b.binary(OpKind::ShiftRightLogical, low, width)?;
    let cross = b.binary(OpKind::Multiply, xh, yl)?;
    let cross = b.binary(OpKind::Add, cross, carry)?;
    let lower = b.binary(OpKind::And, cross, mask)?;
    let upper = b.binary(right, cross, width)?;
    let other = b.binary(OpKind::Multiply, xl, yh)?;
    let other = b.binary(OpKind::Add, other, lower)?;
    let other = b.binary(right, other, width)?;
    let high = b.binary(OpKind::Multiply, xh, yh)?;
    let high = b.binary(OpKind::Add, high, upper)?;
    Ok(vec![b.binary(OpKind::Add, high, other)?])
}
