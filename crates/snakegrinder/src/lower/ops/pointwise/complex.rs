//! Complex numbers and their parts.

use super::super::prelude::*;
use crate::lower::value::value_type;

pub(in super::super) const TABLE: &[Op] = &[
    op("aten.angle.default", angle),
    op("aten.complex.default", |cx, args| {
        let (real, imaginary) = (args.tensor("real")?, args.tensor("imag")?);
        one(join(cx, &real, &imaginary)?)
    }),
    op("aten.conj.default", conj).also(&[
        "aten._conj.default",
        "aten.conj_physical.default",
        "aten._conj_physical.default",
    ]),
    op("aten.imag.default", |cx, args| one(part(cx, &args.tensor("self")?, OpKind::Imag)?)),
    op("aten.isreal.default", |cx, args| {
        let x = args.tensor("self")?;
        if !x.dtype.is_complex() {
            return one(cx.splat(ElementType::Bool, &x.dims.clone(), true)?);
        }
        let imaginary = part(cx, &x, OpKind::Imag)?;
        one(cx.compare_number(Cmp::Eq, &imaginary, 0.0)?)
    }),
    op("aten.polar.default", polar),
    op("aten.real.default", |cx, args| one(part(cx, &args.tensor("self")?, OpKind::Real)?)),
    op("aten.resolve_conj.default", |_, args| one(args.tensor("self")?)).also(&["aten.resolve_neg.default"]),
    op("aten.view_as_complex.default", view_as_complex),
    op("aten.view_as_real.default", view_as_real),
];

fn join(cx: &mut Cx<'_>, real: &Tensor, imaginary: &Tensor) -> Lowered<Tensor> {
    let ElementType::Float(part) = real.dtype else { return refuse("a complex number of no floats") };
    let both = cx.broadcast_all(&[real.clone(), imaginary.clone()])?;
    let dtype = ElementType::Complex(part);
    let ty = value_type(dtype, &both[0].dims);
    let id = cx.b.op_as(OpKind::Complex, &[both[0].id, both[1].id], [], ty)?;
    Ok(cx.tensor(id, dtype, both[0].dims.clone()))
}

/// The real or imaginary part; a real number is its own real part.
pub(in super::super) fn part(cx: &mut Cx<'_>, x: &Tensor, kind: OpKind) -> Lowered<Tensor> {
    match x.dtype {
        ElementType::Complex(part) => cx.unary_to(kind, x, ElementType::Float(part)),
        _ if kind == OpKind::Real => Ok(x.clone()),
        _ => refuse("the imaginary part of a real tensor"),
    }
}

fn conj(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if !x.dtype.is_complex() {
        return one(x);
    }
    let (real, imaginary) = (part(cx, &x, OpKind::Real)?, part(cx, &x, OpKind::Imag)?);
    let opposite = cx.neg(&imaginary)?;
    one(join(cx, &real, &opposite)?)
}

/// The angle of a complex number; that of a negative one is half a turn, NaN stays NaN.
fn angle(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.dtype.is_complex() {
        let (real, imaginary) = (part(cx, &x, OpKind::Real)?, part(cx, &x, OpKind::Imag)?);
        return one(cx.binary(OpKind::Atan2, &imaginary, &real)?);
    }
    let x = cx.convert(&x, to_inexact(x.dtype))?;
    let (half_turn, zero) = (cx.splat_like(&x, std::f64::consts::PI)?, cx.splat_like(&x, 0.0)?);
    let negative = cx.compare(Cmp::Lt, &x, &zero)?;
    let turn = cx.select(&negative, &half_turn, &zero)?;
    let unknown = cx.is_nan(&x)?;
    one(cx.select(&unknown, &x, &turn)?)
}

fn polar(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let both = cx.broadcast_all(&[args.tensor("abs")?, args.tensor("angle")?])?;
    let (cosine, sine) = (cx.unary(OpKind::Cosine, &both[1])?, cx.unary(OpKind::Sine, &both[1])?);
    let (real, imaginary) = (cx.mul(&both[0], &cosine)?, cx.mul(&both[0], &sine)?);
    one(join(cx, &real, &imaginary)?)
}

fn view_as_real(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let parts = [OpKind::Real, OpKind::Imag].map(|kind| {
        let part = part(cx, &x, kind)?;
        cx.unsqueeze(&part, x.rank())
    });
    let [real, imaginary] = parts;
    one(cx.concatenate(&[real?, imaginary?], x.rank())?)
}

fn view_as_complex(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let Some(last) = x.rank().checked_sub(1) else { return refuse("a complex view of a scalar") };
    let parts = [0, 1].map(|at| {
        let part = cx.slice(&x, last, &Size::Int(at), &Size::Int(at + 1), 1)?;
        cx.reshape(&part, &x.dims[..last])
    });
    let [real, imaginary] = parts;
    one(join(cx, &real?, &imaginary?)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn angles_of_real_numbers_are_none_or_half_a_turn() {
        let numbers = Floats(&[4], vec![-2.0, -0.0, 3.0, f32::NAN]);
        let found = evaluated("aten.angle.default", vec![("self", numbers)], &[(F32, &[4])]);
        assert_eq!(found[0][..3], [f64::from(std::f32::consts::PI), 0.0, 0.0]);
        assert!(found[0][3].is_nan());
    }
}
