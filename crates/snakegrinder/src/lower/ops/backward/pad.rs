//! Gradients of padding by reflection and repetition.

use super::super::indexing::put_rows;
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.reflection_pad1d_backward.default", |cx, args| backward(cx, args, reflected))
        .also(&["aten.reflection_pad2d_backward.default", "aten.reflection_pad3d_backward.default"]),
    op("aten.replication_pad1d_backward.default", |cx, args| backward(cx, args, repeated))
        .also(&["aten.replication_pad2d_backward.default", "aten.replication_pad3d_backward.default"]),
];

/// The element that a place outside shows again.
fn reflected(place: i64, size: i64) -> i64 {
    let mirrored = place.abs();
    if mirrored >= size { 2 * (size - 1) - mirrored } else { mirrored }
}

fn repeated(place: i64, size: i64) -> i64 {
    place.min(size - 1).max(0)
}

/// Each element's gradient is the sum of those of the places that show it.
fn backward(cx: &mut Cx<'_>, args: &Args<'_>, shown: fn(i64, i64) -> i64) -> Lowered<Outcome> {
    let (g, x, padding) = (args.tensor("grad_output")?, args.tensor("self")?, args.ints("padding")?);
    if padding.len() % 2 != 0 || padding.len() > 2 * x.rank() || g.rank() != x.rank() {
        return refuse(format!("{} paddings of {} dimensions", padding.len(), x.rank()));
    }
    let mut total = cx.convert(&g, opmath(g.dtype))?;
    for (at, pair) in padding.chunks_exact(2).enumerate() {
        let axis = x.rank() - 1 - at;
        let sizes = cx.known(&[x.dim(axis), total.dim(axis)])?;
        cx.table_length(&sizes)?;
        if pair.iter().any(|amount| amount.unsigned_abs() > sizes[1].unsigned_abs()) {
            return refuse(format!("a padding of {pair:?} gives more than {} places", sizes[1]));
        }
        let places: Vec<i64> = (0..sizes[1]).map(|place| shown(place - pair[0], sizes[0])).collect();
        if places.iter().any(|place| !(0..sizes[0]).contains(place)) {
            return refuse(format!("a padding of {pair:?} for a dimension of {}", sizes[0]));
        }
        let places = cx.i64s(&places)?;
        let mut dims = total.dims.to_vec();
        dims[axis] = x.dim(axis);
        let zeros = cx.splat(total.dtype, &dims, 0.0)?;
        total = put_rows(cx, &zeros, axis, &places, &total, OpKind::Add)?;
    }
    one(cx.convert(&total, x.dtype)?)
}
