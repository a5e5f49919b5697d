//! Largest and smallest elements, and where they are.

use super::super::prelude::*;
use super::{reduced_axes, shaped};

pub(super) const TABLE: &[Op] = &[
    op("aten.amax.default", |cx, args| plain(cx, args, Extreme::Largest)).also(&["aten.max.default"]),
    op("aten.amin.default", |cx, args| plain(cx, args, Extreme::Smallest)).also(&["aten.min.default"]),
    op("aten.aminmax.default", |cx, args| {
        let x = args.tensor("self")?;
        let axes = match args.opt_int("dim")? {
            Some(dim) => reduced(cx, &x, dim)?,
            None => (0..x.rank()).collect(),
        };
        let [low, high] = [Extreme::Smallest, Extreme::Largest].map(|which| {
            let found = value(cx, &x, &axes, which)?;
            shaped(cx, args, &x, &found, &axes)
        });
        Ok(vec![low?.into(), high?.into()])
    }),
    op("aten.argmax.default", |cx, args| place(cx, args, Extreme::Largest)),
    op("aten.argmin.default", |cx, args| place(cx, args, Extreme::Smallest)),
    op("aten.max.dim", |cx, args| both(cx, args, Extreme::Largest)),
    op("aten.max.other", |cx, args| pairwise(cx, args, OpKind::Maximum)),
    op("aten.min.dim", |cx, args| both(cx, args, Extreme::Smallest)),
    op("aten.min.other", |cx, args| pairwise(cx, args, OpKind::Minimum)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Largest,
    Smallest,
}

fn reduced(cx: &Cx<'_>, x: &Tensor, dim: i64) -> Lowered<Vec<usize>> {
    let axis = cx.axis(dim, x.rank())?;
    Ok(if x.rank() == 0 { Vec::new() } else { vec![axis] })
}

fn value(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize], which: Extreme) -> Lowered<Tensor> {
    match which {
        Extreme::Largest => cx.maximum_of(x, axes),
        Extreme::Smallest => cx.minimum_of(x, axes),
    }
}

/// The first place of the extreme along a dimension; a NaN counts as the extreme.
fn first_place(cx: &mut Cx<'_>, x: &Tensor, axis: usize, extreme: &Tensor) -> Lowered<Tensor> {
    let spread = cx.spread(extreme, &x.dims, &[axis])?;
    let mut hit = cx.compare(Cmp::Eq, x, &spread)?;
    if x.dtype.is_float() {
        let unknown = cx.is_nan(x)?;
        hit = cx.or(&hit, &unknown)?;
    }
    let index = cx.iota(ElementType::I64, &x.dims, axis)?;
    let beyond = cx.splat_like(&index, i64::MAX)?;
    let places = cx.select(&hit, &index, &beyond)?;
    cx.minimum_of(&places, &[axis])
}

fn plain(cx: &mut Cx<'_>, args: &Args<'_>, which: Extreme) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let found = value(cx, &x, &axes, which)?;
    one(shaped(cx, args, &x, &found, &axes)?)
}

fn both(cx: &mut Cx<'_>, args: &Args<'_>, which: Extreme) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axes = reduced(cx, &x, args.int("dim")?)?;
    let &[axis] = axes.as_slice() else {
        args.ignore(&["keepdim"]);
        let zero = cx.splat(ElementType::I64, &[], 0)?;
        return Ok(vec![x.into(), zero.into()]);
    };
    let found = value(cx, &x, &axes, which)?;
    let place = first_place(cx, &x, axis, &found)?;
    let (found, place) = (shaped(cx, args, &x, &found, &axes)?, shaped(cx, args, &x, &place, &axes)?);
    Ok(vec![found.into(), place.into()])
}

fn place(cx: &mut Cx<'_>, args: &Args<'_>, which: Extreme) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    match args.opt_int("dim")? {
        Some(dim) => {
            let axes = reduced(cx, &x, dim)?;
            let &[axis] = axes.as_slice() else {
                args.ignore(&["keepdim"]);
                return one(cx.splat(ElementType::I64, &[], 0)?);
            };
            let found = value(cx, &x, &axes, which)?;
            let place = first_place(cx, &x, axis, &found)?;
            one(shaped(cx, args, &x, &place, &axes)?)
        }
        None => {
            let flat = cx.reshape(&x, &[x.numel()])?;
            let found = value(cx, &flat, &[0], which)?;
            let place = first_place(cx, &flat, 0, &found)?;
            let all: Vec<usize> = (0..x.rank()).collect();
            one(shaped(cx, args, &x, &place, &all)?)
        }
    }
}

fn pairwise(cx: &mut Cx<'_>, args: &Args<'_>, kind: OpKind) -> Lowered<Outcome> {
    let operands = [args.operand("self")?, args.operand("other")?];
    let dtype = result_type(&operands)?;
    let unified = cx.unify(&operands, dtype)?;
    one(cx.binary(kind, &unified[0], &unified[1])?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code, Code::F32, Given::*, evaluated};

    #[test]
    fn a_number_has_a_dimension_to_keep() {
        for target in ["aten.max.dim", "aten.min.dim"] {
            let keep = Plain(json!({"as_bool": true}));
            let arguments = vec![
                ("self", Floats(&[], vec![3.0])),
                ("dim", Plain(json!({"as_int": 0}))),
                ("keepdim", keep),
            ];
            assert_eq!(evaluated(target, arguments, &[(F32, &[]), (Code::I64, &[])]), [[3.0], [0.0]]);
        }
    }
}
