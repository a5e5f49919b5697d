//! Repeating: whole tensors, slices, one tensor in each place of another.

use super::indexing::take_rows;
use super::prelude::*;
use super::reduction::cumulative_sum;

pub(super) const TABLE: &[Op] = &[
    op("aten.kron.default", kron),
    op("aten.repeat.default", |cx, args| {
        let x = args.tensor("self")?;
        let repeats = args.sizes("repeats")?;
        one(repeat(cx, &x, &repeats)?)
    }),
    op("aten.repeat_interleave.Tensor", |cx, args| {
        let counts = args.tensor("repeats")?;
        one(repeated_places(cx, args, &counts)?)
    }),
    op("aten.repeat_interleave.self_Tensor", repeat_each),
    op("aten.repeat_interleave.self_int", repeat_interleave),
    op("aten.tile.default", |cx, args| {
        let x = args.tensor("self")?;
        let mut repeats = args.sizes("dims")?;
        while repeats.len() < x.rank() {
            repeats.insert(0, Size::Int(1));
        }
        one(repeat(cx, &x, &repeats)?)
    }),
];

/// Each dimension repeated as a whole; new dimensions in front.
fn repeat(cx: &mut Cx<'_>, x: &Tensor, repeats: &[Size]) -> Lowered<Tensor> {
    let Some(extra) = repeats.len().checked_sub(x.rank()) else {
        return refuse("fewer repeats than dimensions");
    };
    let mut wide = Vec::new();
    let mut map = Vec::new();
    let mut dims = Vec::new();
    for (at, count) in repeats.iter().enumerate() {
        wide.push(count.clone());
        let size = at.checked_sub(extra).map(|own| x.dim(own));
        if let Some(size) = &size {
            map.push(wide.len());
            wide.push(size.clone());
        }
        dims.push(count.mul(&size.unwrap_or(Size::Int(1))));
    }
    let spread = cx.broadcast(x, &wide, &map)?;
    cx.reshape(&spread, &dims)
}

/// Each element repeated in its place.
fn repeat_interleave(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let count = args.size("repeats")?;
    args.ignore(&["output_size"]);
    let (x, axis) = match args.opt_int("dim")? {
        Some(dim) => {
            let axis = cx.axis(dim, x.rank())?;
            (x, axis)
        }
        None => (cx.reshape(&x, &[x.numel()])?, 0),
    };
    cx.require_axis(&x, axis)?;
    let mut wide = x.dims.to_vec();
    wide.insert(axis + 1, count.clone());
    let map: Vec<usize> = (0..x.rank()).map(|at| if at <= axis { at } else { at + 1 }).collect();
    let spread = cx.broadcast(&x, &wide, &map)?;
    let mut dims = x.dims.to_vec();
    dims[axis] = dims[axis].mul(&count);
    one(cx.reshape(&spread, &dims)?)
}

/// Each slice along a dimension as often as a tensor says for it.
fn repeat_each(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, counts) = (args.tensor("self")?, args.tensor("repeats")?);
    let (x, axis) = match args.opt_int("dim")? {
        Some(dim) => {
            let axis = cx.axis(dim, x.rank())?;
            (x, axis)
        }
        None => (cx.reshape(&x, &[x.numel()])?, 0),
    };
    let flat = cx.reshape(&counts, &[counts.numel()])?;
    let counts = cx.expand_to(&flat, &[x.dim(axis)])?;
    let places = repeated_places(cx, args, &counts)?;
    one(take_rows(cx, &x, axis, &places)?)
}

/// The index of each number as often as the number says, where the archive knows how many that are in all.
fn repeated_places(cx: &mut Cx<'_>, args: &Args<'_>, counts: &Tensor) -> Lowered<Tensor> {
    let Some(total) = args.opt_size("output_size")? else {
        return refuse("repeats whose total depends on the data");
    };
    let counts = cx.convert(counts, ElementType::I64)?;
    let ends = cumulative_sum(cx, &counts, 0)?;
    // A place belongs to the first number whose end is behind it: as many ends are not behind it as there are before.
    let dims = [total, counts.dim(0)];
    let place = cx.iota(ElementType::I64, &dims, 0)?;
    let ends = cx.broadcast(&ends, &dims, &[1])?;
    let before = cx.compare(Cmp::Le, &ends, &place)?;
    let before = cx.convert(&before, ElementType::I64)?;
    cx.sum(&before, &[1])
}

/// Every element of one tensor times the whole of another, in its place.
fn kron(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = (args.tensor("self")?, args.tensor("other")?);
    let dtype = result_type(&[Operand::from(&a), Operand::from(&b)])?;
    let rank = a.rank().max(b.rank());
    let aligned = |x: &Tensor| -> Vec<Size> {
        let missing = std::iter::repeat_n(Size::Int(1), rank - x.rank());
        missing.chain(x.dims.iter().cloned()).collect()
    };
    let (outer, inner) = (aligned(&a), aligned(&b));
    let wide: Vec<Size> = outer.iter().zip(&inner).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    let dims: Vec<Size> = outer.iter().zip(&inner).map(|(a, b)| a.mul(b)).collect();
    let mut parts = Vec::new();
    for (x, own, first) in [(&a, &outer, 0), (&b, &inner, 1)] {
        let x = cx.convert(x, dtype)?;
        let x = cx.reshape(&x, own)?;
        let map: Vec<usize> = (0..rank).map(|at| 2 * at + first).collect();
        parts.push(cx.broadcast(&x, &wide, &map)?);
    }
    let product = if dtype == ElementType::Bool {
        cx.and(&parts[0], &parts[1])?
    } else {
        cx.mul(&parts[0], &parts[1])?
    };
    one(cx.reshape(&product, &dims)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn slices_are_repeated_as_often_as_a_tensor_says() {
        let arguments = vec![
            ("self", Floats(&[3, 1], vec![5.0, 6.0, 7.0])),
            ("repeats", Ints(&[3], vec![2, 0, 1])),
            ("dim", Plain(json!({"as_int": 0}))),
            ("output_size", Plain(json!({"as_int": 3}))),
        ];
        let found = evaluated("aten.repeat_interleave.self_Tensor", arguments, &[(F32, &[3, 1])]);
        assert_eq!(found, [[5.0, 5.0, 7.0]]);
    }

    #[test]
    fn a_kronecker_product_has_one_tensor_in_each_place_of_the_other() {
        let arguments = vec![
            ("self", Floats(&[2], vec![2.0, 3.0])),
            ("other", Floats(&[2, 2], vec![1.0, 0.0, 0.0, -1.0])),
        ];
        let found = evaluated("aten.kron.default", arguments, &[(F32, &[2, 4])]);
        assert_eq!(found, [[2.0, 0.0, 3.0, 0.0, 0.0, -2.0, 0.0, -3.0]]);
    }
}
