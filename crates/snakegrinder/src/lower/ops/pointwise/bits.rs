//! Operations on bits.

use super::super::prelude::*;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.__and__.Scalar", |cx, args| bitwise(cx, args, OpKind::And)).also(&[
        "aten.__and__.Tensor",
        "aten.bitwise_and.Scalar",
        "aten.bitwise_and.Scalar_Tensor",
        "aten.bitwise_and.Tensor",
    ]),
    op("aten.__or__.Scalar", |cx, args| bitwise(cx, args, OpKind::Or)).also(&[
        "aten.__or__.Tensor",
        "aten.bitwise_or.Scalar",
        "aten.bitwise_or.Scalar_Tensor",
        "aten.bitwise_or.Tensor",
    ]),
    op("aten.__xor__.Scalar", |cx, args| bitwise(cx, args, OpKind::Xor)).also(&[
        "aten.__xor__.Tensor",
        "aten.bitwise_xor.Scalar",
        "aten.bitwise_xor.Scalar_Tensor",
        "aten.bitwise_xor.Tensor",
    ]),
    op("aten.__lshift__.Scalar", left_shift).also(&[
        "aten.__lshift__.Tensor",
        "aten.bitwise_left_shift.Tensor",
        "aten.bitwise_left_shift.Tensor_Scalar",
    ]),
    op("aten.__rshift__.Scalar", right_shift).also(&[
        "aten.__rshift__.Tensor",
        "aten.bitwise_right_shift.Tensor",
        "aten.bitwise_right_shift.Tensor_Scalar",
    ]),
    op("aten.bitwise_not.default", |cx, args| one(cx.not(&args.tensor("self")?)?)),
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
