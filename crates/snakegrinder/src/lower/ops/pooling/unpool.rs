//! The opposite of maximum pooling: each element back to the place that it was found at.

use super::super::indexing::scatter_along;
use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[
    op("aten.max_unpool2d.default", |cx, args| unpool(cx, args, 2)),
    op("aten.max_unpool3d.default", |cx, args| {
        // The sizes say all that these would.
        args.ignore(&["stride", "padding"]);
        unpool(cx, args, 3)
    }),
];

fn unpool(cx: &mut Cx<'_>, args: &Args<'_>, spatial: usize) -> Lowered<Outcome> {
    let (x, places) = (args.tensor("self")?, args.tensor("indices")?);
    let sizes = args.sizes("output_size")?;
    let Some(lead) = x.rank().checked_sub(spatial).filter(|_| sizes.len() == spatial) else {
        return refuse("an input of too few dimensions");
    };
    let flat = |inner: Size| -> Vec<Size> { x.dims[..lead].iter().cloned().chain([inner]).collect() };
    let inner = flat(Size::product(&x.dims[lead..]));
    let values = cx.reshape(&x, &inner)?;
    let places = cx.reshape(&places, &inner)?;
    let nothing = cx.splat(x.dtype, &flat(Size::product(&sizes)), Scalar::zero(x.dtype))?;
    let planes = scatter_along(cx, &nothing, lead, &places, &values.into(), OpKind::Return)?;
    let dims: Vec<Size> = x.dims[..lead].iter().cloned().chain(sizes).collect();
    one(cx.reshape(&planes, &dims)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn elements_return_to_their_places_among_zeros() {
        let arguments = vec![
            ("self", Floats(&[1, 1, 2], vec![5.0, 7.0])),
            ("indices", Ints(&[1, 1, 2], vec![3, 1])),
            ("output_size", Plain(json!({"as_ints": [2, 2]}))),
        ];
        let found = evaluated("aten.max_unpool2d.default", arguments, &[(F32, &[1, 2, 2])]);
        assert_eq!(found, [[0.0, 7.0, 0.0, 5.0]]);
    }
}
