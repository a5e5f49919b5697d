//! Choosing between values by a condition.

use super::super::prelude::*;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.masked_fill.Scalar", masked_fill).also(&["aten.masked_fill.Tensor"]),
    op("aten.where.Scalar", where_).also(&[
        "aten.where.ScalarOther",
        "aten.where.ScalarSelf",
        "aten.where.self",
    ]),
];

fn where_(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let condition = args.tensor("condition")?;
    let operands = [args.operand("self")?, args.operand("other")?];
    let dtype = result_type(&operands)?;
    let condition = cx.convert(&condition, ElementType::Bool)?;
    let [yes, no] = [&operands[0], &operands[1]].map(|operand| cx.as_tensor(operand, dtype));
    let (yes, no) = (yes?, no?);
    let dims = cx.broadcast_shape(&[&condition.dims, &yes.dims, &no.dims])?;
    let condition = cx.expand_to(&condition, &dims)?;
    let (yes, no) = (cx.expand_to(&yes, &dims)?, cx.expand_to(&no, &dims)?);
    one(cx.select(&condition, &yes, &no)?)
}

fn masked_fill(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, mask, value) = (args.tensor("self")?, args.tensor("mask")?, args.operand("value")?);
    let mask = cx.convert(&mask, ElementType::Bool)?;
    let value = cx.as_tensor(&value, x.dtype)?;
    let dims = cx.broadcast_shape(&[&x.dims, &mask.dims])?;
    let (x, mask, value) =
        (cx.expand_to(&x, &dims)?, cx.expand_to(&mask, &dims)?, cx.expand_to(&value, &dims)?);
    one(cx.select(&mask, &value, &x)?)
}
