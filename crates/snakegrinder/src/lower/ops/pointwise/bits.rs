//! Operations on bits.

use super::super::prelude::*;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.__and__.Scalar", |cx, args| bitwise(cx, args, OpKind::And)),
    op("aten.__and__.Tensor", |cx, args| bitwise(cx, args, OpKind::And)),
    op("aten.__or__.Scalar", |cx, args| bitwise(cx, args, OpKind::Or)),
    op("aten.__or__.Tensor", |cx, args| bitwise(cx, args, OpKind::Or)),
    op("aten.__xor__.Scalar", |cx, args| bitwise(cx, args, OpKind::Xor)),
    op("aten.__xor__.Tensor", |cx, args| bitwise(cx, args, OpKind::Xor)),
    op("aten.__lshift__.Scalar", left_shift),
    op("aten.__lshift__.Tensor", left_shift),
    op("aten.__rshift__.Scalar", right_shift),
    op("aten.__rshift__.Tensor", right_shift),
    op("aten.bitwise_and.Scalar", |cx, args| bitwise(cx, args, OpKind::And)),
    op("aten.bitwise_and.Scalar_Tensor", |cx, args| bitwise(cx, args, OpKind::And)),
    op("aten.bitwise_and.Tensor", |cx, args| bitwise(cx, args, OpKind::And)),
    op("aten.bitwise_left_shift.Tensor", left_shift),
    op("aten.bitwise_left_shift.Tensor_Scalar", left_shift),
    op("aten.bitwise_not.default", |cx, args| one(cx.not(&args.tensor("self")?)?)),
    op("aten.bitwise_or.Scalar", |cx, args| bitwise(cx, args, OpKind::Or)),
    op("aten.bitwise_or.Scalar_Tensor", |cx, args| bitwise(cx, args, OpKind::Or)),
    op("aten.bitwise_or.Tensor", |cx, args| bitwise(cx, args, OpKind::Or)),
    op("aten.bitwise_right_shift.Tensor", right_shift),
    op("aten.bitwise_right_shift.Tensor_Scalar", right_shift),
    op("aten.bitwise_xor.Scalar", |cx, args| bitwise(cx, args, OpKind::Xor)),
    op("aten.bitwise_xor.Scalar_Tensor", |cx, args| bitwise(cx, args, OpKind::Xor)),
    op("aten.bitwise_xor.Tensor", |cx, args| bitwise(cx, args, OpKind::Xor)),
];

fn bitwise(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let operands = [args.operand("self")?, args.operand("other")?];
    let dtype = result_type(&operands)?;
    if dtype.is_float() || dtype.is_complex() {
        return refuse(format!("bits of {dtype}"));
    }
    let unified = cx.unify(&operands, dtype)?;
    one(cx.binary(kind, &unified[0], &unified[1])?)
}

fn left_shift(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    bitwise(cx, args, OpKind::ShiftLeft)
}

fn right_shift(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let signed = matches!(args.tensor("self")?.dtype, ElementType::Int(int) if int.is_signed());
    bitwise(cx, args, if signed { OpKind::ShiftRightArithmetic } else { OpKind::ShiftRightLogical })
}
