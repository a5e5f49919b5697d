//! Joining and reordering.

use super::prelude::*;
use super::view::at_least;

pub(super) const TABLE: &[Op] = &[
    view("aten.broadcast_tensors.default", |cx, args| {
        let tensors = args.tensors("tensors")?;
        let wide = cx.broadcast_all(&tensors)?;
        let wide: Vec<Tensor> = tensors.iter().zip(&wide).map(|(x, wide)| cx.frozen_view(x, wide)).collect();
        Ok(vec![wide.into()])
    }),
    op("aten.cartesian_prod.default", |cx, args| {
        let tensors = args.tensors("tensors")?;
        if let [only] = tensors.as_slice() {
            return one(only.clone());
        }
        let grids = grids(cx, &tensors, false)?;
        let columns = grids.iter().map(|grid| cx.reshape(grid, &[grid.numel(), Size::Int(1)]));
        let columns: Vec<Tensor> = columns.collect::<Lowered<_>>()?;
        one(cx.concatenate(&columns, 1)?)
    }),
    op("aten.cat.default", cat).also(&["aten.concat.default", "aten.concatenate.default"]),
    op("aten.column_stack.default", |cx, args| {
        let tensors = args.tensors("tensors")?;
        let columns = tensors.iter().map(|x| match x.rank() {
            0 | 1 => cx.reshape(x, &[x.numel(), Size::Int(1)]),
            _ => Ok(x.clone()),
        });
        let columns: Vec<Tensor> = columns.collect::<Lowered<_>>()?;
        one(joined(cx, &columns, 1)?)
    }),
    op("aten.channel_shuffle.default", channel_shuffle).also(&["aten.native_channel_shuffle.default"]),
    op("aten.dstack.default", |cx, args| stacked(cx, args, 3, 2)),
    op("aten.flip.default", |cx, args| {
        let x = args.tensor("self")?;
        let axes = cx.axes(&args.ints("dims")?, x.rank())?;
        if axes.is_empty() || x.rank() == 0 {
            return one(x);
        }
        one(cx.reverse(&x, &axes)?)
    }),
    op("aten.fliplr.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.reverse(&x, &[1])?)
    }),
    op("aten.flipud.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.reverse(&x, &[0])?)
    }),
    op("aten.hstack.default", |cx, args| {
        let tensors = args.tensors("tensors")?;
        let axis = usize::from(tensors.first().is_some_and(|first| first.rank() > 1));
        let tensors = tensors.iter().map(|x| if x.rank() == 0 { cx.unsqueeze(x, 0) } else { Ok(x.clone()) });
        let tensors: Vec<Tensor> = tensors.collect::<Lowered<_>>()?;
        one(joined(cx, &tensors, axis)?)
    }),
    op("aten.meshgrid.default", |cx, args| meshgrid(cx, args, false)),
    op("aten.meshgrid.indexing", |cx, args| {
        let swapped = args.str_or("indexing", "ij")? == "xy";
        meshgrid(cx, args, swapped)
    }),
    op("aten.pad_sequence.default", pad_sequence),
    op("aten.pixel_shuffle.default", pixel_shuffle),
    op("aten.pixel_unshuffle.default", pixel_unshuffle),
    op("aten.roll.default", roll),
    op("aten.rot90.default", rot90),
    op("aten.stack.default", |cx, args| {
        let tensors = args.tensors("tensors")?;
        let Some(first) = tensors.first() else { return refuse("a stack of nothing") };
        let axis = cx.axis(args.int_or("dim", 0)?, first.rank() + 1)?;
        let rows: Vec<Tensor> = tensors.iter().map(|x| cx.unsqueeze(x, axis)).collect::<Lowered<_>>()?;
        one(joined(cx, &rows, axis)?)
    }),
    op("aten.tril.default", |cx, args| triangle(cx, args, Cmp::Le)),
    op("aten.triu.default", |cx, args| triangle(cx, args, Cmp::Ge)),
    op("aten.vstack.default", |cx, args| stacked(cx, args, 2, 0)),
];

/// Concatenates tensors, brought to their common type.
fn joined(cx: &mut Cx<'_>, tensors: &[Tensor], axis: usize) -> Lowered<Tensor> {
    let operands: Vec<Operand> = tensors.iter().map(Operand::from).collect();
    let dtype = result_type(&operands)?;
    let parts: Vec<Tensor> = tensors.iter().map(|x| cx.convert(x, dtype)).collect::<Lowered<_>>()?;
    cx.concatenate(&parts, axis)
}

/// Tensors of at least so many dimensions, one behind the other.
fn stacked(cx: &mut Cx<'_>, args: &Args<'_>, rank: usize, axis: usize) -> Lowered<Outcome> {
    let tensors = args.tensors("tensors")?;
    let wide: Vec<Tensor> = tensors.iter().map(|x| at_least(cx, x, rank)).collect::<Lowered<_>>()?;
    one(joined(cx, &wide, axis)?)
}

fn cat(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let tensors = args.tensors("tensors")?;
    // PyTorch skips tensors of shape [0] whatever the others have.
    let is_nothing = |x: &Tensor| x.rank() == 1 && x.dim(0).is(0);
    let rank = tensors.iter().filter(|x| !is_nothing(x)).map(Tensor::rank).max().unwrap_or(1);
    let operands: Vec<Operand> = tensors.iter().map(Operand::from).collect();
    let dtype = result_type(&operands)?;
    let axis = cx.axis(args.int_or("dim", 0)?, rank)?;
    let kept: Vec<Tensor> = tensors.iter().filter(|x| rank == 1 || !is_nothing(x)).cloned().collect();
    let parts: Vec<Tensor> = kept.iter().map(|x| cx.convert(x, dtype)).collect::<Lowered<_>>()?;
    one(cx.concatenate(&parts, axis)?)
}

/// Sequences made as long as the longest, side by side.
fn pad_sequence(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let sequences = args.tensors("sequences")?;
    let fill = args.float_or("padding_value", 0.0)?;
    let (first, left) =
        (args.bool_or("batch_first", false)?, args.str_or("padding_side", "right")? == "left");
    let lengths: Vec<Size> = sequences.iter().map(|sequence| sequence.dim(0)).collect();
    let lengths = cx.known(&lengths)?;
    let Some(longest) = lengths.iter().copied().max() else { return refuse("no sequences") };
    let mut rows = Vec::new();
    for (sequence, length) in sequences.iter().zip(lengths) {
        let (none, missing) = (Size::Int(0), Size::Int(longest - length));
        let (before, after) = if left { (&missing, &none) } else { (&none, &missing) };
        let value = match sequence.dtype {
            ElementType::Int(_) => Scalar::Int(fill as i128),
            ElementType::Bool => Scalar::Bool(fill != 0.0),
            _ => Scalar::Float(fill),
        };
        let padded = cx.pad_axis(sequence, 0, before, after, 0, value)?;
        rows.push(cx.unsqueeze(&padded, usize::from(!first))?);
    }
    one(joined(cx, &rows, usize::from(!first))?)
}

fn roll(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let shifts = args.sizes("shifts")?;
    let dims = args.opt_ints("dims")?.unwrap_or_default();
    if dims.is_empty() {
        let [shift] = shifts.as_slice() else { return refuse("several shifts of all elements") };
        let flat = cx.reshape(&x, &[x.numel()])?;
        let rolled = roll_axis(cx, &flat, 0, shift)?;
        return one(cx.reshape(&rolled, &x.dims)?);
    }
    if dims.len() != shifts.len() {
        return refuse("as many shifts as dimensions are needed");
    }
    let mut result = x.clone();
    for (dim, shift) in dims.iter().zip(&shifts) {
        let axis = cx.axis(*dim, x.rank())?;
        result = roll_axis(cx, &result, axis, shift)?;
    }
    one(result)
}

fn roll_axis(cx: &mut Cx<'_>, x: &Tensor, axis: usize, shift: &Size) -> Lowered<Tensor> {
    let size = x.dim(axis);
    if size.is(0) || x.rank() == 0 {
        return Ok(x.clone());
    }
    let Some(shift) = shift.modulo(&size) else { return Ok(x.clone()) };
    if shift.is(0) {
        return Ok(x.clone());
    }
    let cut = size.sub(&shift);
    let last = cx.slice(x, axis, &cut, &size, 1)?;
    let first = cx.slice(x, axis, &Size::Int(0), &cut, 1)?;
    cx.concatenate(&[last, first], axis)
}

fn rot90(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let turns = args.int_or("k", 1)?.rem_euclid(4);
    let dims = args.opt_ints("dims")?.unwrap_or(vec![0, 1]);
    let axes = cx.axes(&dims, x.rank())?;
    let &[first, second] = axes.as_slice() else { return refuse("a rotation needs two dimensions") };
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(first, second);
    one(match turns {
        0 => x,
        1 => {
            let reversed = cx.reverse(&x, &[second])?;
            cx.transpose(&reversed, &order)?
        }
        2 => cx.reverse(&x, &[first, second])?,
        _ => {
            let reversed = cx.reverse(&x, &[first])?;
            cx.transpose(&reversed, &order)?
        }
    })
}

fn meshgrid(cx: &mut Cx<'_>, args: &Args<'_>, swapped: bool) -> Lowered<Outcome> {
    let tensors = args.tensors("tensors")?;
    Ok(vec![grids(cx, &tensors, swapped)?.into()])
}

/// Each vector repeated along the dimensions of the others.
fn grids(cx: &mut Cx<'_>, tensors: &[Tensor], swapped: bool) -> Lowered<Vec<Tensor>> {
    let mut dims: Vec<Size> = tensors.iter().map(Tensor::numel).collect();
    let mut places: Vec<usize> = (0..tensors.len()).collect();
    if swapped && tensors.len() >= 2 {
        dims.swap(0, 1);
        places.swap(0, 1);
    }
    let grids = tensors.iter().zip(places).map(|(x, place)| {
        let flat = cx.reshape(x, &[x.numel()])?;
        cx.broadcast(&flat, &dims, &[place])
    });
    grids.collect()
}

fn triangle(cx: &mut Cx<'_>, args: &Args<'_>, how: Cmp) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let diagonal = args.size_or("diagonal", 0)?;
    let Some(rows) = x.rank().checked_sub(2) else {
        return refuse("a triangle of something that is no matrix");
    };
    let mask = cx.index_mask(&x.dims, rows, rows + 1, how, &diagonal)?;
    let zero = cx.splat_like(&x, Scalar::zero(x.dtype))?;
    one(cx.select(&mask, &x, &zero)?)
}

/// `[…, c·r·r, h, w]` to `[…, c, h·r, w·r]`.
fn pixel_shuffle(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let factor = Size::Int(args.int("upscale_factor")?);
    let Some(lead) = x.rank().checked_sub(3) else { return refuse("pixels need three dimensions") };
    let Some(channels) = x.dim(lead).floor_div(&factor.mul(&factor)) else { return refuse("a factor of 0") };
    let (height, width) = (x.dim(lead + 1), x.dim(lead + 2));
    let mut split = x.dims[..lead].to_vec();
    split.extend([channels.clone(), factor.clone(), factor.clone(), height.clone(), width.clone()]);
    let parts = cx.reshape(&x, &split)?;
    let mut order: Vec<usize> = (0..=lead).collect();
    order.extend([lead + 3, lead + 1, lead + 4, lead + 2]);
    let transposed = cx.transpose(&parts, &order)?;
    let mut dims = x.dims[..lead].to_vec();
    dims.extend([channels, height.mul(&factor), width.mul(&factor)]);
    one(cx.reshape(&transposed, &dims)?)
}

/// `[…, c, h·r, w·r]` to `[…, c·r·r, h, w]`.
fn pixel_unshuffle(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let factor = Size::Int(args.int("downscale_factor")?);
    let Some(lead) = x.rank().checked_sub(3) else { return refuse("pixels need three dimensions") };
    let channels = x.dim(lead);
    let (Some(height), Some(width)) =
        (x.dim(lead + 1).floor_div(&factor), x.dim(lead + 2).floor_div(&factor))
    else {
        return refuse("a factor of 0");
    };
    let mut split = x.dims[..lead].to_vec();
    split.extend([channels.clone(), height.clone(), factor.clone(), width.clone(), factor.clone()]);
    let parts = cx.reshape(&x, &split)?;
    let mut order: Vec<usize> = (0..=lead).collect();
    order.extend([lead + 2, lead + 4, lead + 1, lead + 3]);
    let transposed = cx.transpose(&parts, &order)?;
    let mut dims = x.dims[..lead].to_vec();
    dims.extend([channels.mul(&factor).mul(&factor), height, width]);
    one(cx.reshape(&transposed, &dims)?)
}

fn channel_shuffle(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let groups = Size::Int(args.int("groups")?);
    let Some(each) = x.dim(1).floor_div(&groups) else { return refuse("no groups") };
    let mut split = vec![x.dim(0), groups, each];
    split.extend_from_slice(x.dims.get(2..).unwrap_or_default());
    let parts = cx.reshape(&x, &split)?;
    let mut order: Vec<usize> = (0..split.len()).collect();
    order.swap(1, 2);
    let transposed = cx.transpose(&parts, &order)?;
    one(cx.reshape(&transposed, &x.dims)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn sequences_are_filled_on_the_side_that_is_asked_for() {
        for (side, expected) in [("right", [1.0, 2.0, 3.0, 9.0]), ("left", [1.0, 2.0, 9.0, 3.0])] {
            let arguments = vec![
                ("sequences", List(vec![Floats(&[2], vec![1.0, 2.0]), Floats(&[1], vec![3.0])])),
                ("batch_first", Plain(json!({"as_bool": true}))),
                ("padding_value", Plain(json!({"as_float": 9.0}))),
                ("padding_side", Plain(json!({"as_string": side}))),
            ];
            assert_eq!(evaluated("aten.pad_sequence.default", arguments, &[(F32, &[2, 2])]), [expected]);
        }
    }

    #[test]
    fn layers_are_put_behind_each_other() {
        let both = List(vec![Floats(&[2], vec![1.0, 2.0]), Floats(&[2], vec![5.0, 6.0])]);
        let found = evaluated("aten.dstack.default", vec![("tensors", both)], &[(F32, &[1, 2, 2])]);
        assert_eq!(found, [[1.0, 5.0, 2.0, 6.0]]);
    }

    #[test]
    fn a_product_has_every_pair() {
        let pair = List(vec![Floats(&[2], vec![1.0, 2.0]), Floats(&[3], vec![5.0, 6.0, 7.0])]);
        let found = evaluated("aten.cartesian_prod.default", vec![("tensors", pair)], &[(F32, &[6, 2])]);
        assert_eq!(found, [[1.0, 5.0, 1.0, 6.0, 1.0, 7.0, 2.0, 5.0, 2.0, 6.0, 2.0, 7.0]]);
    }
}
