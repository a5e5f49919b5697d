//! Comparisons and tests.

use super::super::prelude::*;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.eq.Scalar", |cx, args| compared(cx, args, Cmp::Eq)).also(&["aten.eq.Tensor"]),
    op("aten.ge.Scalar", |cx, args| compared(cx, args, Cmp::Ge)).also(&[
        "aten.ge.Tensor",
        "aten.greater_equal.Scalar",
        "aten.greater_equal.Tensor",
    ]),
    op("aten.gt.Scalar", |cx, args| compared(cx, args, Cmp::Gt)).also(&[
        "aten.gt.Tensor",
        "aten.greater.Scalar",
        "aten.greater.Tensor",
    ]),
    op("aten.isclose.default", isclose),
    op("aten.isfinite.default", |cx, args| {
        tested(cx, args, true, |cx, x| cx.unary_to(OpKind::IsFinite, x, ElementType::Bool))
    }),
    op("aten.isinf.default", |cx, args| {
        tested(cx, args, false, |cx, x| {
            let size = cx.unary(OpKind::Abs, x)?;
            cx.compare_number(Cmp::Eq, &size, f64::INFINITY)
        })
    }),
    op("aten.isnan.default", |cx, args| tested(cx, args, false, |cx, x| cx.is_nan(x))),
    op("aten.isneginf.default", |cx, args| {
        tested(cx, args, false, |cx, x| cx.compare_number(Cmp::Eq, x, f64::NEG_INFINITY))
    }),
    op("aten.isposinf.default", |cx, args| {
        tested(cx, args, false, |cx, x| cx.compare_number(Cmp::Eq, x, f64::INFINITY))
    }),
    op("aten.le.Scalar", |cx, args| compared(cx, args, Cmp::Le)).also(&[
        "aten.le.Tensor",
        "aten.less_equal.Scalar",
        "aten.less_equal.Tensor",
    ]),
    op("aten.less.Scalar", |cx, args| compared(cx, args, Cmp::Lt)).also(&[
        "aten.less.Tensor",
        "aten.lt.Scalar",
        "aten.lt.Tensor",
    ]),
    op("aten.logical_and.default", |cx, args| logical(cx, args, OpKind::And)),
    op("aten.logical_not.default", |cx, args| {
        let x = cx.convert(&args.tensor("self")?, ElementType::Bool)?;
        one(cx.not(&x)?)
    }),
    op("aten.logical_or.default", |cx, args| logical(cx, args, OpKind::Or)),
    op("aten.logical_xor.default", |cx, args| logical(cx, args, OpKind::Xor)),
    op("aten.ne.Scalar", |cx, args| compared(cx, args, Cmp::Ne)).also(&[
        "aten.ne.Tensor",
        "aten.not_equal.Scalar",
        "aten.not_equal.Tensor",
    ]),
    op("aten.signbit.default", signbit),
];

fn compared(cx: &mut Cx<'_>, args: &Args<'_>, how: Cmp) -> Lowered<Outcome> {
    let operands = [args.operand("self")?, args.operand("other")?];
    let dtype = result_type(&operands)?;
    let unified = cx.unify(&operands, dtype)?;
    one(cx.compare(how, &unified[0], &unified[1])?)
}

fn logical(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let operands = [args.operand("self")?, args.operand("other")?];
    let unified = cx.unify(&operands, ElementType::Bool)?;
    one(cx.binary(kind, &unified[0], &unified[1])?)
}

/// A test of floats; integers give the same answer everywhere.
fn tested(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    of_integers: bool,
    test: fn(&mut Cx<'_>, &Tensor) -> Lowered<Tensor>,
) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    match x.dtype {
        ElementType::Float(_) => one(test(cx, &x)?),
        ElementType::Complex(_) => refuse("tests of complex numbers"),
        _ => one(cx.splat(ElementType::Bool, &x.dims.clone(), of_integers)?),
    }
}

fn signbit(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.dtype.is_float() {
        return one(super::arithmetic::sign_bit(cx, &x)?);
    }
    one(cx.compare_number(Cmp::Lt, &x, Scalar::zero(x.dtype))?)
}

/// `|self - other| <= atol + rtol * |other|`, or equal.
fn isclose(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let operands = [args.operand("self")?, args.operand("other")?];
    let (rtol, atol) = (args.float_or("rtol", 1e-5)?, args.float_or("atol", 1e-8)?);
    let equal_nan = args.bool_or("equal_nan", false)?;
    let dtype = result_type(&operands)?;
    if !dtype.is_float() {
        return refuse("isclose of integers");
    }
    let unified = cx.unify(&operands, dtype)?;
    let (a, b) = (&unified[0], &unified[1]);
    let equal = cx.compare(Cmp::Eq, a, b)?;
    let difference = cx.sub(a, b)?;
    let distance = cx.unary(OpKind::Abs, &difference)?;
    let size = cx.unary(OpKind::Abs, b)?;
    let allowed = cx.with_number(OpKind::Multiply, &size, rtol)?;
    let allowed = cx.with_number(OpKind::Add, &allowed, atol)?;
    let near = cx.compare(Cmp::Le, &distance, &allowed)?;
    let finite = cx.unary_to(OpKind::IsFinite, &distance, ElementType::Bool)?;
    let near = cx.and(&near, &finite)?;
    let mut close = cx.or(&equal, &near)?;
    if equal_nan {
        let (no_a, no_b) = (cx.is_nan(a)?, cx.is_nan(b)?);
        let both = cx.and(&no_a, &no_b)?;
        close = cx.or(&close, &both)?;
    }
    one(close)
}
