//! Gradients of pooling.

use super::super::indexing::scatter_along;
use super::super::matrix::{DotPairing, dot};
use super::super::pooling::{Windows, counts, ranges};
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten._adaptive_avg_pool2d_backward.default", |cx, args| adaptive_average(cx, args, 2)),
    op("aten._adaptive_avg_pool3d_backward.default", |cx, args| adaptive_average(cx, args, 3)),
    op("aten.adaptive_max_pool2d_backward.default", |cx, args| maximum(cx, args, 2))
        .also(&["aten.max_pool2d_with_indices_backward.default"]),
    op("aten.adaptive_max_pool3d_backward.default", |cx, args| maximum(cx, args, 3))
        .also(&["aten.max_pool3d_with_indices_backward.default"]),
    op("aten.avg_pool2d_backward.default", |cx, args| average(cx, args, 2)),
    op("aten.avg_pool3d_backward.default", |cx, args| average(cx, args, 3)),
];

/// Each window's gradient is added where its largest element was; the indices say where in its plane.
fn maximum(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x, indices) = (args.tensor("grad_output")?, args.tensor("self")?, args.tensor("indices")?);
    // The indices say all that the windows would.
    args.ignore(&["kernel_size", "stride", "padding", "dilation", "ceil_mode"]);
    let Some(lead) = x.rank().checked_sub(spatial) else { return refuse("an input of too few dimensions") };
    if g.rank() != x.rank() || indices.rank() != x.rank() {
        return refuse("a gradient of another number of dimensions than the input");
    }
    let planes = Size::product(&x.dims[..lead]);
    let flat = |cx: &mut Cx<'_>, tensor: &Tensor| {
        cx.reshape(tensor, &[planes.clone(), Size::product(&tensor.dims[lead..])])
    };
    let g = cx.convert(&g, opmath(x.dtype))?;
    let (updates, places) = (flat(cx, &g)?, flat(cx, &indices)?);
    let places = cx.convert(&places, ElementType::I64)?;
    let zeros = cx.splat(g.dtype, &[planes.clone(), Size::product(&x.dims[lead..])], 0.0)?;
    let total = scatter_along(cx, &zeros, 1, &places, &updates.into(), OpKind::Add)?;
    let total = cx.reshape(&total, &x.dims)?;
    one(cx.convert(&total, x.dtype)?)
}

/// Each window's gradient, divided by how many elements it has, is added to all of them.
fn average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
    let windows = Windows::read(args, &x, spatial)?;
    let include_padding = args.bool_or("count_include_pad", true)?;
    let divisor = args.opt_int("divisor_override")?;
    let wide = cx.convert(&g, opmath(g.dtype))?;
    let count = match divisor {
        Some(divisor) => cx.splat_like(&wide, divisor as f64)?,
        None => counts(cx, &x, &windows, include_padding, &wide)?,
    };
    let mut share = cx.div(&wide, &count)?;
    let lead = x.rank() - spatial;
    for (at, &kernel) in windows.kernel.iter().enumerate() {
        // An element gets what the windows that begin up to a kernel's length before it have.
        let stride = windows.strides[at];
        let low = kernel - 1 - windows.padding[at];
        let spread = g.dim(lead + at).sub(&Size::Int(1)).mul(&Size::Int(stride));
        let high = x.dim(lead + at).add(&Size::Int(kernel - 2 - low)).sub(&spread);
        share = cx.pad_axis(&share, lead + at, &Size::Int(low), &high, stride - 1, 0.0)?;
    }
    let dense = Windows::sliding(&windows.kernel, &x.dims[lead..]);
    let total = dense.reduce(cx, &share, OpKind::Add, Scalar::zero(share.dtype))?;
    one(cx.convert(&total, x.dtype)?)
}

/// The product with the transposed matrix of shares, along each dimension.
fn adaptive_average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (g, x) = (args.tensor("grad_output")?, args.tensor("self")?);
    let Some(lead) = x.rank().checked_sub(spatial) else { return refuse("an input of too few dimensions") };
    let mut total = cx.convert(&g, opmath(g.dtype))?;
    for axis in lead..x.rank() {
        let sizes = cx.known(&[x.dim(axis), g.dim(axis)])?;
        if sizes[0] == sizes[1] {
            continue;
        }
        cx.table_length(&sizes)?;
        let windows = ranges(sizes[0], sizes[1]);
        let shares: Vec<Scalar> = windows
            .iter()
            .flat_map(|&(start, end)| {
                let share = 1.0 / (end - start) as f64;
                (0..sizes[0])
                    .map(move |at| Scalar::Float(if (start..end).contains(&at) { share } else { 0.0 }))
            })
            .collect();
        let matrix = cx.constant(total.dtype, &[windows.len(), sizes[0] as usize], shares)?;
        let product = dot(cx, &total, &matrix, &DotPairing::summing(&[axis], &[0]))?;
        let last = x.rank() - 1;
        let mut order: Vec<usize> = (0..last).collect();
        order.insert(axis, last);
        total = cx.transpose(&product, &order)?;
    }
    one(cx.convert(&total, x.dtype)?)
}
