//! Gradients of interpolation: what each element of the result was made of gets its share back.

use super::super::indexing::put_rows;
use super::super::prelude::*;
use super::super::resize::{Filter, factors, taps};

pub(super) const TABLE: &[Op] = &[
    op("aten._upsample_bicubic2d_aa_backward.default", |cx, args| backward(cx, args, 2, Filter::SmoothCubic)),
    op("aten._upsample_bilinear2d_aa_backward.default", |cx, args| {
        backward(cx, args, 2, Filter::SmoothLinear)
    }),
    op("aten._upsample_nearest_exact1d_backward.default", |cx, args| {
        backward(cx, args, 1, Filter::NearestExact)
    }),
    op("aten._upsample_nearest_exact2d_backward.default", |cx, args| {
        backward(cx, args, 2, Filter::NearestExact)
    }),
    op("aten._upsample_nearest_exact3d_backward.default", |cx, args| {
        backward(cx, args, 3, Filter::NearestExact)
    }),
    op("aten.upsample_bicubic2d_backward.default", |cx, args| backward(cx, args, 2, Filter::Cubic)),
    op("aten.upsample_bilinear2d_backward.default", |cx, args| backward(cx, args, 2, Filter::Linear)),
    op("aten.upsample_linear1d_backward.default", |cx, args| backward(cx, args, 1, Filter::Linear)),
    op("aten.upsample_nearest1d_backward.default", |cx, args| backward(cx, args, 1, Filter::Nearest)),
    op("aten.upsample_nearest2d_backward.default", |cx, args| backward(cx, args, 2, Filter::Nearest)),
    op("aten.upsample_nearest3d_backward.default", |cx, args| backward(cx, args, 3, Filter::Nearest)),
    op("aten.upsample_trilinear3d_backward.default", |cx, args| backward(cx, args, 3, Filter::Linear)),
];

fn backward(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize, filter: Filter) -> Lowered<Outcome> {
    let g = args.tensor("grad_output")?;
    let dims = args.sizes("input_size")?;
    args.ignore(&["output_size"]);
    let corners = args.bool_or("align_corners", false)?;
    let factors = factors(args, spatial)?;
    if g.rank() != spatial + 2 || dims.len() != g.rank() {
        return refuse(format!("the gradient of an interpolation of {} dimensions", g.rank()));
    }
    let mut total = cx.convert(&g, opmath(g.dtype))?;
    for (at, &factor) in factors.iter().enumerate().take(spatial) {
        let axis = at + 2;
        let sizes = cx.known(&[dims[axis].clone(), g.dim(axis)])?;
        if sizes[0] < 1 || sizes[1] < 1 {
            return refuse("an empty image");
        }
        let taps = taps(cx, filter, total.dtype, (sizes[0], sizes[1]), factor, corners)?;
        let mut smaller = total.dims.to_vec();
        smaller[axis] = dims[axis].clone();
        let mut sum = cx.splat(total.dtype, &smaller, 0.0)?;
        for (tap, indices) in taps.indices.iter().enumerate() {
            let places = cx.i64s(indices)?;
            let part = taps.share(cx, &total, axis, tap)?;
            sum = put_rows(cx, &sum, axis, &places, &part, OpKind::Add)?;
        }
        total = sum;
    }
    one(cx.convert(&total, g.dtype)?)
}
