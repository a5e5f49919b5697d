//! Parts of a tensor.

use super::super::prelude::*;
use crate::lower::alias::View;

pub(super) const TABLE: &[Op] = &[
    view("aten.chunk.default", chunk).also(&["aten.unsafe_chunk.default"]),
    view("aten.diagonal.default", |cx, args| diagonal(cx, args, "self", (0, 1))),
    view("aten.dsplit.array", |cx, args| split_along(cx, args, 2)).also(&["aten.dsplit.int"]),
    view("aten.hsplit.array", |cx, args| split_along(cx, args, 1)).also(&["aten.hsplit.int"]),
    view("aten.linalg_diagonal.default", |cx, args| diagonal(cx, args, "A", (-2, -1))),
    view("aten.narrow.default", narrow),
    view("aten.select.int", select),
    op("aten.select_scatter.default", select_scatter),
    view("aten.slice.Tensor", slice),
    op("aten.slice_scatter.default", slice_scatter),
    view("aten.split.Tensor", split),
    view("aten.split.sizes", split_with_sizes).also(&["aten.split_with_sizes.default"]),
    view("aten.tensor_split.indices", tensor_split_indices),
    view("aten.tensor_split.sections", tensor_split_sections),
    view("aten.unbind.int", unbind),
    op("aten.unsafe_split.Tensor", split),
    op("aten.unsafe_split_with_sizes.default", split_with_sizes),
    view("aten.vsplit.array", |cx, args| split_along(cx, args, 0)).also(&["aten.vsplit.int"]),
];

/// An index counted from the end where it is negative.
fn wrapped(index: &Size, size: &Size) -> Size {
    match index.as_int() {
        Some(known) if known < 0 => index.add(size),
        _ => index.clone(),
    }
}

/// Start and limit of a slice, inside the dimension, as Python has them.
fn bounds(cx: &Cx<'_>, size: &Size, start: Option<Size>, end: Option<Size>) -> (Size, Size) {
    let inside = |bound: Size| -> Size {
        let bound = wrapped(&bound, size);
        let (low, high) = cx.symbols.bounds(&bound);
        let (room_low, _) = cx.symbols.bounds(&size.sub(&bound));
        let bound = if high < 0 {
            Size::Int(0)
        } else if low >= 0 {
            bound
        } else {
            bound.larger(&Size::Int(0))
        };
        if room_low >= 0 { bound } else { bound.smaller(size) }
    };
    let start = start.map_or(Size::Int(0), inside);
    let end = match end {
        // Python's "to the end" is the largest integer.
        None | Some(Size::Int(i64::MAX)) => size.clone(),
        Some(end) => inside(end),
    };
    let length_low = cx.symbols.bounds(&end.sub(&start)).0;
    let end = if length_low >= 0 { end } else { end.larger(&start) };
    (start, end)
}

struct Range {
    axis: usize,
    start: Size,
    limit: Size,
    step: i64,
}

fn range(cx: &Cx<'_>, args: &Args<'_>, x: &Tensor) -> Lowered<Range> {
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    let step = args.int_or("step", 1)?;
    if step < 1 {
        return refuse(format!("a slice with step {step}"));
    }
    let (start, limit) = bounds(cx, &x.dim(axis), args.opt_size("start")?, args.opt_size("end")?);
    Ok(Range { axis, start, limit, step })
}

fn slice(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let Range { axis, start, limit, step } = range(cx, args, &x)?;
    one(cx.view(&x, View::Slice { axis, start, limit, step })?)
}

fn slice_scatter(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, source) = (args.tensor("self")?, args.tensor("src")?);
    let Range { axis, start, limit, step } = range(cx, args, &x)?;
    let source = cx.convert(&source, x.dtype)?;
    let mut dims = x.dims.to_vec();
    let Some(length) = limit.sub(&start).add(&Size::Int(step - 1)).floor_div(&Size::Int(step)) else {
        return refuse("a slice with step 0");
    };
    cx.require_axis(&x, axis)?;
    dims[axis] = length;
    let source = cx.expand_to(&source, &dims)?;
    one(cx.slice_scatter(&x, &source, axis, &start, &limit, step)?)
}

fn narrow(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let start = wrapped(&args.size("start")?, &x.dim(axis));
    let limit = start.add(&args.size("length")?);
    one(cx.view(&x, View::Slice { axis, start, limit, step: 1 })?)
}

fn select(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    if x.rank() == 0 {
        return refuse("an element of a scalar");
    }
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let index = match args.number("index")? {
        Number::Computed(index) => return select_computed(cx, &x, axis, &index),
        _ => wrapped(&args.size("index")?, &x.dim(axis)),
    };
    one(cx.view(&x, View::Select { axis, index })?)
}

/// An element at an index that is known only at run time.
fn select_computed(cx: &mut Cx<'_>, x: &Tensor, axis: usize, index: &Tensor) -> Lowered<Outcome> {
    let index = cx.convert(index, ElementType::I64)?;
    let size = cx.size_value(&x.dim(axis))?;
    let shifted = cx.add(&index, &size)?;
    let negative = cx.compare_number(Cmp::Lt, &index, 0)?;
    let index = cx.select(&negative, &shifted, &index)?;
    let rows = cx.reshape(&index, &[Size::Int(1)])?;
    let taken = super::super::indexing::take_rows(cx, x, axis, &rows)?;
    let mut dims = x.dims.to_vec();
    dims.remove(axis);
    let value = cx.reshape(&taken, &dims)?;
    one(cx.frozen_view(x, &value))
}

fn select_scatter(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, source) = (args.tensor("self")?, args.tensor("src")?);
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    cx.require_axis(&x, axis)?;
    let index = wrapped(&args.size("index")?, &x.dim(axis));
    let mut dims = x.dims.to_vec();
    dims[axis] = Size::Int(1);
    let row = cx.convert(&source, x.dtype)?;
    let row = cx.reshape(&row, &dims)?;
    one(cx.slice_scatter(&x, &row, axis, &index, &index.add(&Size::Int(1)), 1)?)
}

/// Views of consecutive ranges with these lengths.
fn pieces(cx: &mut Cx<'_>, x: &Tensor, axis: usize, lengths: &[Size]) -> Lowered<Outcome> {
    let mut start = Size::Int(0);
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let limit = start.add(length);
        let (from, to) = (start.clone(), limit.clone());
        parts.push(cx.view(x, View::Slice { axis, start: from, limit: to, step: 1 })?);
        start = limit;
    }
    Ok(vec![parts.into()])
}

fn split(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    let step = args.size("split_size")?;
    // A dynamic dimension split by a dynamic size in a fixed number of parts.
    let parts = match args.node.outputs.first() {
        Some(crate::graph::schema::Argument::AsTensors(names)) => names.len() as i64,
        _ => return refuse("it gives no list"),
    };
    let lengths = even_lengths(&x.dim(axis), &step, parts)?;
    pieces(cx, &x, axis, &lengths)
}

/// More parts than this no model cuts a tensor in: each is a value of its own.
const MOST_PARTS: i64 = 1 << 16;

/// `parts` lengths of `step`, the last of which is what is left.
fn even_lengths(whole: &Size, step: &Size, parts: i64) -> Lowered<Vec<Size>> {
    if !(1..=MOST_PARTS).contains(&parts) {
        return refuse(format!("a split in {parts} parts"));
    }
    let mut lengths = vec![step.clone(); parts as usize - 1];
    lengths.push(whole.sub(&step.mul(&Size::Int(parts - 1))));
    if lengths.iter().any(|length| length.as_int().is_some_and(|known| known < 0)) {
        return refuse(format!("{parts} parts of {step} are more than {whole}"));
    }
    Ok(lengths)
}

fn chunk(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    let chunks = args.int("chunks")?;
    let whole = x.dim(axis);
    let Some(step) = whole.add(&Size::Int(chunks - 1)).floor_div(&Size::Int(chunks)) else {
        return refuse("no chunks");
    };
    let parts = match (whole.as_int(), step.as_int()) {
        (Some(0), _) => chunks,
        (Some(whole), Some(step)) if step > 0 => (whole + step - 1) / step,
        _ => chunks,
    };
    let lengths = even_lengths(&whole, &step, parts)?;
    pieces(cx, &x, axis, &lengths)
}

fn split_with_sizes(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    let name = if args.get("split_sizes").is_some() { "split_sizes" } else { "split_size" };
    let lengths = args.sizes(name)?;
    pieces(cx, &x, axis, &lengths)
}

/// Cut along columns, rows or layers, in equal parts or at indices; columns of a vector are its elements.
fn split_along(cx: &mut Cx<'_>, args: &Args<'_>, axis: usize) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = if axis == 1 && x.rank() == 1 { 0 } else { axis };
    cx.require_axis(&x, axis)?;
    match args.opt_int("sections")? {
        Some(sections) => cut_in(cx, &x, axis, sections),
        None => cut_at(cx, &x, axis, args.sizes("indices")?),
    }
}

fn tensor_split_sections(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    cut_in(cx, &x, axis, args.int("sections")?)
}

/// So many parts, the first of which are longer by one where they cannot be equal.
fn cut_in(cx: &mut Cx<'_>, x: &Tensor, axis: usize, sections: i64) -> Lowered<Outcome> {
    let whole = cx.known(&[x.dim(axis)])?[0];
    if !(1..=MOST_PARTS).contains(&sections) {
        return refuse(format!("a split in {sections} parts"));
    }
    let lengths: Vec<Size> =
        (0..sections).map(|at| Size::Int(whole / sections + i64::from(at < whole % sections))).collect();
    pieces(cx, x, axis, &lengths)
}

fn tensor_split_indices(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    cut_at(cx, &x, axis, args.sizes("indices")?)
}

/// Parts that begin at these indices, and what is before the first.
fn cut_at(cx: &mut Cx<'_>, x: &Tensor, axis: usize, indices: Vec<Size>) -> Lowered<Outcome> {
    let mut ends: Vec<Option<Size>> = indices.into_iter().map(Some).collect();
    ends.push(None);
    let mut start: Option<Size> = None;
    let mut parts = Vec::new();
    for end in ends {
        let (from, to) = bounds(cx, &x.dim(axis), start, end.clone());
        parts.push(cx.view(x, View::Slice { axis, start: from, limit: to, step: 1 })?);
        start = end;
    }
    Ok(vec![parts.into()])
}

fn unbind(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int_or("dim", 0)?, x.rank())?;
    let count = cx.known(&[x.dim(axis)])?[0];
    if count > MOST_PARTS {
        return refuse(format!("a split in {count} parts"));
    }
    let parts: Vec<Tensor> = (0..count)
        .map(|index| cx.view(&x, View::Select { axis, index: Size::Int(index) }))
        .collect::<Lowered<_>>()?;
    Ok(vec![parts.into()])
}

/// The elements whose two indices differ by an offset, as the last dimension.
fn diagonal(cx: &mut Cx<'_>, args: &Args<'_>, name: &str, dims: (i64, i64)) -> Lowered<Outcome> {
    let x = args.tensor(name)?;
    let offset = args.int_or("offset", 0)?;
    let first = cx.axis(args.int_or("dim1", dims.0)?, x.rank())?;
    let second = cx.axis(args.int_or("dim2", dims.1)?, x.rank())?;
    if first == second {
        return refuse("a diagonal of one dimension");
    }
    let value = diagonal_of(cx, &x, first, second, offset)?;
    one(cx.frozen_view(&x, &value))
}

/// The diagonals of two dimensions, as the last one.
pub(in super::super) fn diagonal_of(
    cx: &mut Cx<'_>,
    x: &Tensor,
    first: usize,
    second: usize,
    offset: i64,
) -> Lowered<Tensor> {
    let sizes = cx.known(&[x.dim(first), x.dim(second)])?;
    let (start_first, start_second) = ((-offset).max(0), offset.max(0));
    let length = (sizes[0] - start_first).min(sizes[1] - start_second).max(0);
    let mut order: Vec<usize> = (0..x.rank()).filter(|axis| *axis != first && *axis != second).collect();
    order.extend([first, second]);
    let transposed = cx.transpose(x, &order)?;
    let rank = x.rank();
    if length == 0 {
        let mut dims = transposed.dims[..rank - 2].to_vec();
        dims.push(Size::Int(0));
        return cx.splat(x.dtype, &dims, Scalar::zero(x.dtype));
    }
    let square =
        cx.slice(&transposed, rank - 2, &Size::Int(start_first), &Size::Int(start_first + length), 1)?;
    let square =
        cx.slice(&square, rank - 1, &Size::Int(start_second), &Size::Int(start_second + length), 1)?;
    let mask = cx.index_mask(&square.dims.clone(), rank - 2, rank - 1, Cmp::Eq, &Size::Int(0))?;
    let zero = cx.splat_like(&square, Scalar::zero(x.dtype))?;
    let kept = cx.select(&mask, &square, &zero)?;
    if x.dtype == ElementType::Bool {
        return cx.reduce(OpKind::Or, &kept, &[rank - 1], Scalar::Bool(false));
    }
    cx.sum(&kept, &[rank - 1])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn the_diagonal_of_a_matrix_is_its_last_two_dimensions() {
        let matrices = Floats(&[2, 2, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let arguments = vec![("A", matrices), ("offset", Plain(json!({"as_int": -1})))];
        assert_eq!(evaluated("aten.linalg_diagonal.default", arguments, &[(F32, &[2, 1])]), [[3.0, 7.0]]);
    }
}
