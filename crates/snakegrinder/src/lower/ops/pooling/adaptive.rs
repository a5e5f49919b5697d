//! Pooling to a size that is asked for: windows of nearly equal lengths.

use super::super::matrix::{DotPairing, dot};
use super::super::prelude::*;
use super::super::reduction::mean_of;
use super::plane_index;

pub(super) const TABLE: &[Op] = &[
    op("aten._adaptive_avg_pool2d.default", |cx, args| average(cx, args, 2))
        .also(&["aten.adaptive_avg_pool2d.default"]),
    op("aten._adaptive_avg_pool3d.default", |cx, args| average(cx, args, 3))
        .also(&["aten.adaptive_avg_pool3d.default"]),
    op("aten.adaptive_avg_pool1d.default", |cx, args| average(cx, args, 1)),
    op("aten.adaptive_max_pool1d.default", |cx, args| maximum(cx, args, 1)),
    op("aten.adaptive_max_pool2d.default", |cx, args| maximum(cx, args, 2)),
    op("aten.adaptive_max_pool3d.default", |cx, args| maximum(cx, args, 3)),
];

/// Start and end of each window along a dimension.
pub(in super::super) fn ranges(size: i64, output: i64) -> Vec<(i64, i64)> {
    (0..output).map(|at| (at * size / output, ((at + 1) * size + output - 1) / output)).collect()
}

fn output_sizes(args: &Args<'_>, x: &Tensor, spatial: usize) -> Lowered<(usize, Vec<Size>)> {
    let mut output = args.sizes("output_size")?;
    if output.len() == 1 {
        output = vec![output[0].clone(); spatial];
    }
    match x.rank().checked_sub(spatial) {
        Some(lead) if output.len() == spatial => Ok((lead, output)),
        _ => refuse("an output size of another number of dimensions"),
    }
}

fn average(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (lead, output) = output_sizes(args, &x, spatial)?;
    let mut mean = cx.convert(&x, opmath(x.dtype))?;
    if output.iter().all(|size| size.is(1)) {
        let axes: Vec<usize> = (lead..x.rank()).collect();
        let reduced = mean_of(cx, &mean, &axes)?;
        let reduced = cx.keep_dims(&reduced, &x.dims, &axes)?;
        return one(cx.convert(&reduced, x.dtype)?);
    }
    // The mean over a box is the mean of means along each dimension: a product with a matrix of shares.
    for (at, size) in output.iter().enumerate() {
        let axis = lead + at;
        if *size == x.dim(axis) {
            continue;
        }
        let sizes = cx.known(&[x.dim(axis), size.clone()])?;
        cx.table_length(&sizes)?;
        let windows = ranges(sizes[0], sizes[1]);
        let shares = windows.iter().flat_map(|&(start, end)| {
            let share = 1.0 / (end - start) as f64;
            (0..sizes[0])
                .map(move |index| Scalar::Float(if (start..end).contains(&index) { share } else { 0.0 }))
        });
        let shares: Vec<Scalar> = shares.collect();
        let matrix = cx.constant(mean.dtype, &[windows.len(), sizes[0] as usize], shares)?;
        let reduced = dot(cx, &mean, &matrix, &DotPairing::summing(&[axis], &[1]))?;
        let last = x.rank() - 1;
        let mut order: Vec<usize> = (0..last).collect();
        order.insert(axis, last);
        mean = cx.transpose(&reduced, &order)?;
    }
    one(cx.convert(&mean, x.dtype)?)
}

/// The largest element of each window and its place in its plane, window by window.
fn maximum(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (lead, output) = output_sizes(args, &x, spatial)?;
    let (sizes, output) = (cx.known(&x.dims[lead..])?, cx.known(&output)?);
    let count = cx.table_length(&output)?;
    let windows: Vec<Vec<(i64, i64)>> =
        sizes.iter().zip(&output).map(|(&size, &output)| ranges(size, output)).collect();
    if count > 4096 {
        return refuse(format!("{count} windows of different sizes"));
    }
    let place = plane_index(cx, &x.dims[lead..], &sizes)?;
    let place = cx.expand_to(&place, &x.dims)?;
    let axes: Vec<usize> = (lead..x.rank()).collect();
    let (mut values, mut places) = (Vec::new(), Vec::new());
    for window in 0..count as i64 {
        let (mut part, mut index, mut rest) = (x.clone(), place.clone(), window);
        for at in (0..spatial).rev() {
            let (start, end) = windows[at][(rest % output[at]) as usize];
            rest /= output[at];
            part = cx.slice(&part, lead + at, &Size::Int(start), &Size::Int(end), 1)?;
            index = cx.slice(&index, lead + at, &Size::Int(start), &Size::Int(end), 1)?;
        }
        let top = cx.maximum_of(&part, &axes)?;
        let spread = cx.spread(&top, &part.dims, &axes)?;
        let mut hit = cx.compare(Cmp::Eq, &part, &spread)?;
        if x.dtype.is_float() {
            let unknown = cx.is_nan(&part)?;
            hit = cx.or(&hit, &unknown)?;
        }
        let beyond = cx.splat_like(&index, i64::MAX)?;
        let index = cx.select(&hit, &index, &beyond)?;
        let first = cx.minimum_of(&index, &axes)?;
        values.push(cx.unsqueeze(&top, lead)?);
        places.push(cx.unsqueeze(&first, lead)?);
    }
    let mut dims = x.dims[..lead].to_vec();
    dims.extend(output.iter().map(|&size| Size::Int(size)));
    let [values, places] = [values, places].map(|parts| {
        let joined = cx.concatenate(&parts, lead)?;
        cx.reshape(&joined, &dims)
    });
    Ok(vec![values?.into(), places?.into()])
}
