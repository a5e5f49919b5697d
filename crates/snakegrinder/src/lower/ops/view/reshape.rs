//! Shapes and orders of dimensions.

use super::super::prelude::*;
use crate::lower::alias::View;
use crate::lower::strides::can_view;

pub(super) const TABLE: &[Op] = &[
    view("aten.adjoint.default", adjoint).also(&["aten.mH.default", "aten.matrix_H.default"]),
    view("aten.alias.default", same).also(&[
        "aten.detach.default",
        "aten.detach_.default",
        "aten.lift_fresh.default",
    ]),
    view("aten.atleast_1d.Sequence", |cx, args| all_at_least(cx, args, 1)),
    view("aten.atleast_1d.default", |cx, args| one(at_least(cx, &args.tensor("self")?, 1)?)),
    view("aten.atleast_2d.Sequence", |cx, args| all_at_least(cx, args, 2)),
    view("aten.atleast_2d.default", |cx, args| one(at_least(cx, &args.tensor("self")?, 2)?)),
    view("aten.atleast_3d.Sequence", |cx, args| all_at_least(cx, args, 3)),
    view("aten.atleast_3d.default", |cx, args| one(at_least(cx, &args.tensor("self")?, 3)?)),
    view("aten.broadcast_to.default", expand).also(&["aten.expand.default"]),
    view("aten.expand_as.default", expand_as),
    view("aten.flatten.using_ints", flatten),
    view("aten.mT.default", |cx, args| swap(cx, args, -2, -1)),
    view("aten.moveaxis.int", movedim).also(&[
        "aten.moveaxis.intlist",
        "aten.movedim.int",
        "aten.movedim.intlist",
    ]),
    view("aten.numpy_T.default", reversed),
    view("aten.permute.default", permute),
    view("aten.ravel.default", |cx, args| {
        let x = args.tensor("self")?;
        let dims = [x.numel()];
        reshaped(cx, args, &x, &dims)
    }),
    view("aten.reshape.default", |cx, args| {
        let x = args.tensor("self")?;
        let dims = inferred(&x, &args.sizes("shape")?)?;
        reshaped(cx, args, &x, &dims)
    }),
    view("aten.reshape_as.default", |cx, args| {
        let (x, other) = (args.tensor("self")?, args.tensor("other")?);
        reshaped(cx, args, &x, &other.dims)
    }),
    view("aten.squeeze.default", |cx, args| {
        let x = args.tensor("self")?;
        let all: Vec<usize> = (0..x.rank()).collect();
        squeeze(cx, &x, &all)
    }),
    view("aten.squeeze.dim", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        squeeze(cx, &x, &[axis])
    }),
    view("aten.squeeze.dims", |cx, args| {
        let x = args.tensor("self")?;
        let axes = cx.axes(&args.ints("dim")?, x.rank())?;
        squeeze(cx, &x, &axes)
    }),
    view("aten.swapaxes.default", |cx, args| swap(cx, args, args.int("axis0")?, args.int("axis1")?)),
    view("aten.swapdims.default", |cx, args| swap(cx, args, args.int("dim0")?, args.int("dim1")?))
        .also(&["aten.transpose.int"]),
    view("aten.t.default", transpose_matrix),
    view("aten.unflatten.int", unflatten),
    op("aten._unsafe_view.default", view_as_size),
    view("aten.unsqueeze.default", unsqueeze),
    view("aten.view.default", view_as_size),
    view("aten.view_as.default", |cx, args| {
        let (x, other) = (args.tensor("self")?, args.tensor("other")?);
        one(cx.view(&x, View::Reshape(other.dims.to_vec()))?)
    }),
    view("aten._reshape_alias.default", |cx, args| {
        args.ignore(&["stride"]);
        view_as_size(cx, args)
    }),
];

fn same(_: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    one(args.tensor("self")?)
}

/// A shape with its -1 replaced.
pub(in super::super) fn inferred(x: &Tensor, dims: &[Size]) -> Lowered<Vec<Size>> {
    let Some(open) = dims.iter().position(|size| size.is(-1)) else { return Ok(dims.to_vec()) };
    let rest: Vec<Size> =
        dims.iter().enumerate().filter(|(at, _)| *at != open).map(|(_, size)| size.clone()).collect();
    let Some(size) = x.numel().floor_div(&Size::product(&rest)) else {
        return refuse(format!("a shape {:?} does not fit {dims:?}", x.dims));
    };
    let mut dims = dims.to_vec();
    dims[open] = size;
    Ok(dims)
}

fn view_as_size(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dims = inferred(&x, &args.sizes("size")?)?;
    one(cx.view(&x, View::Reshape(dims))?)
}

/// A view where the memory allows it, a copy where it does not.
fn reshaped(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor, dims: &[Size]) -> Lowered<Outcome> {
    let layouts = args.meta("self").zip(args.output_meta(0));
    let layouts = layouts.and_then(|(from, to)| cx.recorded_layout(from).zip(cx.recorded_layout(to)));
    let shares = layouts.is_some_and(|((sizes, strides), (new, _))| can_view(&sizes, &strides, &new));
    let x = if shares { x.clone() } else { x.fresh() };
    one(cx.view(&x, View::Reshape(dims.to_vec()))?)
}

fn flatten(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let start = cx.axis(args.int_or("start_dim", 0)?, x.rank())?;
    let end = cx.axis(args.int_or("end_dim", -1)?, x.rank())?;
    if x.rank() == 0 {
        return reshaped(cx, args, &x, &[Size::Int(1)]);
    }
    if start > end {
        return refuse("it flattens from a later dimension to an earlier one");
    }
    let mut dims = x.dims[..start].to_vec();
    dims.push(Size::product(&x.dims[start..=end]));
    dims.extend_from_slice(&x.dims[end + 1..]);
    reshaped(cx, args, &x, &dims)
}

fn unflatten(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    cx.require_axis(&x, axis)?;
    let sizes = args.sizes("sizes")?;
    let mut dims = x.dims[..axis].to_vec();
    let part = cx.tensor(x.id, x.dtype, [x.dim(axis)]);
    dims.extend(inferred(&part, &sizes)?);
    dims.extend_from_slice(&x.dims[axis + 1..]);
    one(cx.view(&x, View::Reshape(dims))?)
}

fn unsqueeze(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank() + 1)?;
    let mut dims = x.dims.to_vec();
    dims.insert(axis, Size::Int(1));
    one(cx.view(&x, View::Reshape(dims))?)
}

fn squeeze(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize]) -> Lowered<Outcome> {
    let kept = x.dims.iter().enumerate().filter(|(axis, size)| !(axes.contains(axis) && size.is(1)));
    let dims: Vec<Size> = kept.map(|(_, size)| size.clone()).collect();
    one(cx.view(x, View::Reshape(dims))?)
}

/// A tensor of at least so many dimensions: new ones come first, the third one last.
pub(in super::super) fn at_least(cx: &mut Cx<'_>, x: &Tensor, rank: usize) -> Lowered<Tensor> {
    let mut dims = x.dims.to_vec();
    while dims.len() < rank.min(2) {
        dims.insert(0, Size::Int(1));
    }
    while dims.len() < rank {
        dims.push(Size::Int(1));
    }
    cx.view(x, View::Reshape(dims))
}

fn all_at_least(cx: &mut Cx<'_>, args: &Args<'_>, rank: usize) -> Lowered<Outcome> {
    let tensors = args.tensors("tensors")?;
    let wide: Vec<Tensor> = tensors.iter().map(|x| at_least(cx, x, rank)).collect::<Lowered<_>>()?;
    Ok(vec![wide.into()])
}

fn permute(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let order = cx.axes(&args.ints("dims")?, x.rank())?;
    if order.len() != x.rank() {
        return refuse("an order of another number of dimensions");
    }
    one(cx.view(&x, View::Permute(order))?)
}

fn swap(cx: &mut Cx<'_>, args: &Args<'_>, first: i64, second: i64) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.rank() == 0 {
        return one(x);
    }
    let (first, second) = (cx.axis(first, x.rank())?, cx.axis(second, x.rank())?);
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(first, second);
    one(cx.view(&x, View::Permute(order))?)
}

/// The transposed matrices of real numbers; complex ones would also be conjugated.
fn adjoint(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    if args.tensor("self")?.dtype.is_complex() {
        return refuse("an adjoint of complex numbers as a view");
    }
    swap(cx, args, -2, -1)
}

fn transpose_matrix(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    match args.tensor("self")?.rank() {
        0 | 1 => same(cx, args),
        _ => swap(cx, args, 0, 1),
    }
}

fn reversed(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    one(cx.view(&x, View::Permute((0..x.rank()).rev().collect()))?)
}

fn movedim(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let from = cx.axes(&args.ints("source")?, x.rank())?;
    let to = cx.axes(&args.ints("destination")?, x.rank())?;
    if from.len() != to.len() {
        return refuse("as many dimensions must move as there are places");
    }
    let mut order: Vec<Option<usize>> = vec![None; x.rank()];
    for (&from, &to) in from.iter().zip(&to) {
        order[to] = Some(from);
    }
    let mut rest = (0..x.rank()).filter(|axis| !from.contains(axis));
    let order = order.into_iter().map(|slot| slot.or_else(|| rest.next()).unwrap_or(0)).collect();
    one(cx.view(&x, View::Permute(order))?)
}

fn expand(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    args.ignore(&["implicit"]);
    let mut dims = args.sizes("size")?;
    let Some(extra) = dims.len().checked_sub(x.rank()) else {
        return refuse("it expands to fewer dimensions");
    };
    for (at, size) in dims.iter_mut().enumerate() {
        if size.is(-1) {
            let Some(own) = at.checked_sub(extra) else { return refuse("a new dimension of size -1") };
            *size = x.dim(own);
        }
    }
    one(cx.view(&x, View::Expand(dims))?)
}

fn expand_as(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, other) = (args.tensor("self")?, args.tensor("other")?);
    one(cx.view(&x, View::Expand(other.dims.to_vec()))?)
}
