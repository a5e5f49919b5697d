//! The largest element of each window, and where it is.

use warpforge_ir::build::BuildError;

use super::super::prelude::*;
use super::{Windows, plane_index};
use crate::lower::cx::lowest;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten.max_pool1d.default", |cx, args| values(cx, args, 1)),
    op("aten.max_pool1d_with_indices.default", |cx, args| with_indices(cx, args, 1)),
    op("aten.max_pool2d.default", |cx, args| values(cx, args, 2)),
    op("aten.max_pool2d_with_indices.default", |cx, args| with_indices(cx, args, 2)),
    op("aten.max_pool3d.default", |cx, args| values(cx, args, 3)),
    op("aten.max_pool3d_with_indices.default", |cx, args| with_indices(cx, args, 3)),
];

fn values(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let windows = Windows::read(args, &x, spatial)?;
    one(windows.reduce(cx, &x, OpKind::Maximum, lowest(x.dtype))?)
}

fn with_indices(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let windows = Windows::read(args, &x, spatial)?;
    if !args.is_used(1) {
        let reduced = windows.reduce(cx, &x, OpKind::Maximum, lowest(x.dtype))?;
        return Ok(vec![reduced.into(), Value::None]);
    }
    let (mut values, places) = scan(cx, &x, &windows)?;
    // Gradients find the places themselves: then nothing needs the scan.
    if args.readers(1).all(|target| target.ends_with("_with_indices_backward.default")) {
        values = windows.reduce(cx, &x, OpKind::Maximum, lowest(x.dtype))?;
    }
    Ok(vec![values.into(), places.into()])
}

/// The gradient of the largest elements: each window's is added to the first of them, or to the last NaN. `None` where the operation for it has no such windows.
pub(in super::super) fn gradient(
    cx: &mut Cx<'_>,
    x: &Tensor,
    windows: &Windows,
    g: &Tensor,
) -> Lowered<Option<Tensor>> {
    if !windows.are_dense_in(x) {
        return Ok(None);
    }
    let x = cx.convert(x, g.dtype)?;
    let scalar = value_type(g.dtype, &[]);
    let stays = cx.b.region(&[scalar.clone(), scalar], |b, values| {
        let &[before, candidate] = values else { return Ok(Vec::new()) };
        let larger = b.compare(Cmp::Gt, candidate, before)?;
        let unknown = b.compare(Cmp::Ne, candidate, candidate)?;
        let replaces = b.op(OpKind::Or, &[larger, unknown], [])?;
        Ok::<_, BuildError>(vec![b.op(OpKind::Not, &[replaces], [])?])
    })?;
    let added = cx.b.reducer(OpKind::Add, g.dtype)?;
    let zero = cx.b.scalar(g.dtype, Scalar::zero(g.dtype))?;
    let attributes = windows.attributes(&x)?;
    let ty = value_type(g.dtype, &x.dims);
    let operands = [x.id, g.id, zero];
    let op = cx.b.create(OpKind::SelectAndScatter, &operands, attributes, vec![stays, added], Some(&[ty]))?;
    let result = cx.b.results(op).first().copied();
    Ok(result.map(|id| cx.tensor(id, g.dtype, x.dims.clone())))
}

/// Windows with more places than this no model has: each is several operations.
const MOST_PLACES: usize = 1 << 12;

/// Goes through the places of a window one after the other, for all windows at once, and keeps the first of the largest;
/// a later NaN replaces what was there.
fn scan(cx: &mut Cx<'_>, x: &Tensor, windows: &Windows) -> Lowered<(Tensor, Tensor)> {
    let spatial = windows.kernel.len();
    let lead = x.rank() - spatial;
    let sizes = cx.known(&x.dims[lead..])?;
    let output = cx.known(&windows.output)?;
    // The place of each element in its plane, padded as the elements are.
    let mut place = plane_index(cx, &x.dims[lead..], &sizes)?;
    let mut padded = x.clone();
    for at in 0..spatial {
        let (low, high) = (Size::Int(windows.padding[at]), Size::Int(windows.after[at]));
        padded = cx.pad_axis(&padded, lead + at, &low, &high, 0, lowest(x.dtype))?;
        place = cx.pad_axis(&place, at, &low, &high, 0, -1)?;
    }
    if cx.table_length(&windows.kernel)? > MOST_PLACES {
        return refuse(format!("a window of {:?} elements", windows.kernel));
    }
    let mut best: Option<(Tensor, Tensor)> = None;
    let mut offset = vec![0; spatial];
    loop {
        let (mut value, mut index) = (padded.clone(), place.clone());
        for at in 0..spatial {
            let start = offset[at] * windows.dilation[at];
            let limit = Size::Int(start + (output[at] - 1) * windows.strides[at] + 1);
            value = cx.slice(&value, lead + at, &Size::Int(start), &limit, windows.strides[at])?;
            index = cx.slice(&index, at, &Size::Int(start), &limit, windows.strides[at])?;
        }
        let index = cx.expand_to(&index, &value.dims)?;
        best = Some(match best {
            None => (value, index),
            Some((value_before, index_before)) => {
                let mut better = cx.compare(Cmp::Gt, &value, &value_before)?;
                if x.dtype.is_float() {
                    let unknown = cx.is_nan(&value)?;
                    better = cx.or(&better, &unknown)?;
                }
                // A place in the padding is beaten by every place inside, be it as small as can be.
                let outside = cx.compare_number(Cmp::Lt, &index_before, 0)?;
                let inside = cx.compare_number(Cmp::Ge, &index, 0)?;
                let better = cx.or(&better, &outside)?;
                let better = cx.and(&better, &inside)?;
                (cx.select(&better, &value, &value_before)?, cx.select(&better, &index, &index_before)?)
            }
        });
        if !advance(&mut offset, &windows.kernel) {
            break;
        }
    }
    best.map_or_else(|| refuse("an empty window"), Ok)
}

/// The next offset in row-major order; false after the last.
fn advance(offset: &mut [i64], sizes: &[i64]) -> bool {
    for at in (0..offset.len()).rev() {
        offset[at] += 1;
        if offset[at] < sizes[at] {
            return true;
        }
        offset[at] = 0;
    }
    false
}
