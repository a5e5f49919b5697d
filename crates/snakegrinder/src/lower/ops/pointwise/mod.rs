//! Operations on single elements.

mod activation;
mod arithmetic;
mod bits;
mod clamp;
mod compare;
mod complex;
mod exponent;
mod select;
mod special;
mod unary;

use super::prelude::*;

pub(super) const TABLES: &[&[Op]] = &[
    activation::TABLE,
    arithmetic::TABLE,
    bits::TABLE,
    clamp::TABLE,
    compare::TABLE,
    complex::TABLE,
    exponent::TABLE,
    select::TABLE,
    special::TABLE,
    unary::TABLE,
];

/// Computes on operands brought to one shape and to the type that PyTorch computes in, and rounds the result once.
fn computed(
    cx: &mut Cx<'_>,
    operands: &[Operand],
    dtype: ElementType,
    compute: impl FnOnce(&mut Cx<'_>, &[Tensor]) -> Lowered<Tensor>,
) -> Lowered<Tensor> {
    let unified = cx.unify(operands, opmath(dtype))?;
    let result = compute(cx, &unified)?;
    cx.convert(&result, dtype)
}

/// As [`computed`], for two operands.
fn computed_pair(
    cx: &mut Cx<'_>,
    a: Operand,
    b: Operand,
    dtype: ElementType,
    compute: impl FnOnce(&mut Cx<'_>, &Tensor, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Tensor> {
    computed(cx, &[a, b], dtype, |cx, all| match all {
        [a, b] => compute(cx, a, b),
        _ => refuse("two operands are needed"),
    })
}
