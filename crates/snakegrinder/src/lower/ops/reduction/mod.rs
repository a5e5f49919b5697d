//! Reductions over dimensions, and cumulative ones.

mod cumulative;
mod extreme;
mod norm;
mod rank;
mod softmax;
mod sort;
mod sum;
mod variance;

use super::prelude::*;

pub(super) use self::cumulative::cumulative_sum;
pub(super) use self::norm::{norm_of, shortened};
pub(super) use self::softmax::{Kind as Softmax, softmax_of};
pub(super) use self::sum::mean_of;
pub(super) use self::variance::moments;

pub(super) const TABLES: &[&[Op]] = &[
    cumulative::TABLE,
    extreme::TABLE,
    norm::TABLE,
    rank::TABLE,
    softmax::TABLE,
    sort::TABLE,
    sum::TABLE,
    variance::TABLE,
];

/// The dimensions that an argument names; all of them where it is left out or empty.
fn reduced_axes(cx: &Cx<'_>, args: &Args<'_>, name: &str, rank: usize) -> Lowered<Vec<usize>> {
    match args.opt_ints(name)? {
        Some(dims) if !dims.is_empty() => {
            let axes = cx.axes(&dims, rank)?;
            // A scalar has one dimension to name and none to reduce.
            Ok(if rank == 0 { Vec::new() } else { axes })
        }
        _ => Ok((0..rank).collect()),
    }
}

/// A reduced tensor in the shape that `keepdim` asks for.
fn shaped(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor, reduced: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
    if args.bool_or("keepdim", false)? { cx.keep_dims(reduced, &x.dims, axes) } else { Ok(reduced.clone()) }
}

/// How many elements are reduced into one.
fn folded_count(x: &Tensor, axes: &[usize]) -> Size {
    axes.iter().fold(Size::Int(1), |count, &axis| count.mul(&x.dim(axis)))
}

/// A size as a tensor of an element type and shape.
fn size_like(cx: &mut Cx<'_>, size: &Size, like: &Tensor) -> Lowered<Tensor> {
    cx.fill(like.dtype, &like.dims, &Number::Int(size.clone()))
}
