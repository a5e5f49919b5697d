//! Sorting, and what is found by sorting.

use warpforge_ir::Attribute;
use warpforge_ir::build::BuildError;

use super::super::prelude::*;
use super::shaped;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten.argsort.default", |cx, args| Ok(vec![sort(cx, args)?.1.into()])).also(&["aten.argsort.stable"]),
    op("aten.kthvalue.default", |cx, args| {
        let k = args.int("k")?;
        ranked(cx, args, move |_| k - 1)
    }),
    op("aten.msort.default", |cx, args| {
        let x = args.tensor("self")?;
        one(sort_along(cx, &x, 0, false)?.0)
    }),
    op("aten.sort.default", |cx, args| {
        sort(cx, args).map(|(values, places)| vec![values.into(), places.into()])
    })
    .also(&["aten.sort.stable"]),
    op("aten.topk.default", topk),
];

fn sort(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<(Tensor, Tensor)> {
    let x = args.tensor("self")?;
    // Every sort here is stable.
    args.ignore(&["stable"]);
    let descending = args.bool_or("descending", false)?;
    let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
    sort_along(cx, &x, axis, descending)
}

/// The sorted elements along a dimension and the places they had; NaN counts as the largest.
pub(super) fn sort_along(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    descending: bool,
) -> Lowered<(Tensor, Tensor)> {
    if x.rank() == 0 {
        let zero = cx.splat(ElementType::I64, &[], 0)?;
        return Ok((x.clone(), zero));
    }
    let places = cx.iota(ElementType::I64, &x.dims, axis)?;
    let scalar = value_type(x.dtype, &[]);
    let index = value_type(ElementType::I64, &[]);
    let float = x.dtype.is_float();
    let how = if descending { Cmp::Gt } else { Cmp::Lt };
    let region = cx.b.region(&[scalar.clone(), scalar, index.clone(), index], |b, values| {
        let &[left, right, ..] = values else { return Ok(Vec::new()) };
        let mut before = b.compare(how, left, right)?;
        if float {
            // The one that is NaN comes last, or first when descending.
            let (large, small) = if descending { (left, right) } else { (right, left) };
            let unknown = b.compare(Cmp::Ne, large, large)?;
            let known = b.compare(Cmp::Eq, small, small)?;
            let only = b.binary(OpKind::And, unknown, known)?;
            before = b.binary(OpKind::Or, before, only)?;
        }
        Ok::<_, BuildError>(vec![before])
    })?;
    let attrs = [("dimension", Attribute::i64(axis as i64)), ("is_stable", Attribute::Bool(true))];
    let types = [value_type(x.dtype, &x.dims), value_type(ElementType::I64, &x.dims)];
    let op = cx.b.create(OpKind::Sort, &[x.id, places.id], attrs, vec![region], Some(&types))?;
    match cx.b.results(op).as_slice() {
        &[values, places] => Ok((
            cx.tensor(values, x.dtype, x.dims.clone()),
            cx.tensor(places, ElementType::I64, x.dims.clone()),
        )),
        _ => refuse("a sort without results"),
    }
}

fn topk(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let count = args.size("k")?;
    let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
    let largest = args.bool_or("largest", true)?;
    // Sorted is a legal answer when any order will do.
    args.ignore(&["sorted"]);
    let (values, places) = sort_along(cx, &x, axis, largest)?;
    if x.rank() == 0 {
        return Ok(vec![values.into(), places.into()]);
    }
    let values = cx.slice(&values, axis, &Size::Int(0), &count, 1)?;
    let places = cx.slice(&places, axis, &Size::Int(0), &count, 1)?;
    Ok(vec![values.into(), places.into()])
}

/// The element of a rank along a dimension, and the place it had.
pub(super) fn ranked(cx: &mut Cx<'_>, args: &Args<'_>, rank: impl Fn(i64) -> i64) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
    if x.rank() == 0 {
        args.ignore(&["keepdim"]);
        let zero = cx.splat(ElementType::I64, &[], 0)?;
        return Ok(vec![x.into(), zero.into()]);
    }
    let count = cx.known(&[x.dim(axis)])?[0];
    let at = Size::Int(rank(count));
    let (values, places) = sort_along(cx, &x, axis, false)?;
    let found = [values, places].map(|sorted| {
        let found = cx.slice(&sorted, axis, &at, &at.add(&Size::Int(1)), 1)?;
        let mut dims = x.dims.to_vec();
        dims.remove(axis);
        let found = cx.reshape(&found, &dims)?;
        shaped(cx, args, &x, &found, &[axis])
    });
    let [values, places] = found;
    Ok(vec![values?.into(), places?.into()])
}
