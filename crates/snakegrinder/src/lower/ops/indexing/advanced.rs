//! `x[i, :, j]` with tensors of indices, read and written.

use warpforge_ir::attr::{GatherDims, ScatterDims};

use super::super::prelude::*;
use super::rows::{gather, scatter, wrap_negative};

pub(super) const TABLE: &[Op] = &[
    op("aten.index.Tensor", index).also(&["aten._unsafe_index.Tensor"]),
    op("aten.index_put.default", index_put).also(&["aten._unsafe_index_put.default"]),
    op("aten._unsafe_masked_index.default", masked_index),
    op("aten._unsafe_masked_index_put_accumulate.default", masked_index_put),
    op("aten.masked_scatter.default", masked_scatter),
    op("aten.put.default", put),
    op("aten.take.default", take),
];

/// Index tensors of one shape, and the dimensions that they index.
struct Indices {
    axes: Vec<usize>,
    /// The indices with the component of each axis last.
    stacked: Tensor,
    /// The shape that the index tensors have together.
    shape: Vec<Size>,
    /// Where that shape goes in the result: at the indexed dimensions when they are neighbours, else at the front.
    at: usize,
}

impl Indices {
    /// The shape of what is indexed.
    fn result(&self, x: &Tensor) -> Vec<Size> {
        let mut dims: Vec<Size> = self.rest(x).map(|axis| x.dim(axis)).collect();
        dims.splice(self.at..self.at, self.shape.iter().cloned());
        dims
    }

    /// The dimensions that are not indexed.
    fn rest<'a>(&'a self, x: &Tensor) -> impl Iterator<Item = usize> + 'a {
        (0..x.rank()).filter(|axis| !self.axes.contains(axis))
    }

    /// The dimensions of the result that come from dimensions that are not indexed.
    fn windows(&self, x: &Tensor) -> Vec<i64> {
        let (rest, width) = (x.rank() - self.axes.len(), self.shape.len());
        (0..rest).map(|at| if at < self.at { at } else { at + width } as i64).collect()
    }
}

fn indices(cx: &mut Cx<'_>, x: &Tensor, list: &[Option<Tensor>]) -> Lowered<Indices> {
    let mut axes = Vec::new();
    let mut tensors = Vec::new();
    for (axis, tensor) in list.iter().enumerate() {
        let Some(tensor) = tensor else { continue };
        if tensor.dtype == ElementType::Bool || tensor.dtype == ElementType::U8 {
            return refuse("indexing by a mask gives a shape that depends on the data");
        }
        if axis >= x.rank() {
            return refuse("more indices than dimensions");
        }
        axes.push(axis);
        tensors.push(wrap_negative(cx, tensor, &x.dim(axis))?);
    }
    let tensors = cx.broadcast_all(&tensors)?;
    let Some(first) = tensors.first() else { return refuse("indexing by nothing") };
    let shape = first.dims.to_vec();
    let columns: Vec<Tensor> =
        tensors.iter().map(|tensor| cx.unsqueeze(tensor, tensor.rank())).collect::<Lowered<_>>()?;
    let stacked = cx.concatenate(&columns, shape.len())?;
    let neighbours = axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let at = if neighbours { axes.first().copied().unwrap_or(0) } else { 0 };
    Ok(Indices { axes, stacked, shape, at })
}

fn index(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    one(read_at(cx, &x, &args.opt_tensors("indices")?)?)
}

fn read_at(cx: &mut Cx<'_>, x: &Tensor, list: &[Option<Tensor>]) -> Lowered<Tensor> {
    let found = indices(cx, x, list)?;
    let mut sizes = x.dims.to_vec();
    found.axes.iter().for_each(|&axis| sizes[axis] = Size::Int(1));
    let axes: Vec<i64> = found.axes.iter().map(|&axis| axis as i64).collect();
    let numbers = GatherDims {
        offset_dims: found.windows(x),
        collapsed_slice_dims: axes.clone(),
        start_index_map: axes,
        index_vector_dim: found.shape.len() as i64,
        ..GatherDims::default()
    };
    let dims = found.result(x);
    gather(cx, x, &found.stacked, numbers, &sizes, &dims)
}

/// Indices brought inside the dimensions that they index.
fn within(cx: &mut Cx<'_>, x: &Tensor, list: &[Option<Tensor>]) -> Lowered<Vec<Option<Tensor>>> {
    let mut inside = Vec::new();
    for (axis, index) in list.iter().enumerate() {
        let Some(index) = index else {
            inside.push(None);
            continue;
        };
        let size = cx.known(&[x.dim(axis)])?[0];
        let index = cx.convert(index, ElementType::I64)?;
        let index = cx.with_number(OpKind::Maximum, &index, -size)?;
        inside.push(Some(cx.with_number(OpKind::Minimum, &index, size - 1)?));
    }
    Ok(inside)
}

/// `x[i, j]` where a mask holds, a number elsewhere; there the indices may be outside.
fn masked_index(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, mask, fill) = (args.tensor("self")?, args.tensor("mask")?, args.number("fill")?);
    let list = within(cx, &x, &args.opt_tensors("indices")?)?;
    let found = read_at(cx, &x, &list)?;
    let mask = cx.expand_to(&mask, &found.dims)?;
    let fill = cx.fill(found.dtype, &found.dims, &fill)?;
    one(cx.select(&mask, &found, &fill)?)
}

/// `x[i, j] += values` where a mask holds.
fn masked_index_put(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, mask, values) = (args.tensor("self")?, args.tensor("mask")?, args.tensor("values")?);
    let list = within(cx, &x, &args.opt_tensors("indices")?)?;
    let values = cx.convert(&values, x.dtype)?;
    let mask = cx.expand_to(&mask, &values.dims)?;
    let nothing = cx.splat_like(&values, Scalar::zero(x.dtype))?;
    let values = cx.select(&mask, &values, &nothing)?;
    one(written_at(cx, &x, &list, &values, true)?)
}

fn index_put(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, list, values) = (args.tensor("self")?, args.opt_tensors("indices")?, args.tensor("values")?);
    let accumulate = args.bool_or("accumulate", false)?;
    args.ignore(&["unsafe"]);
    let values = cx.convert(&values, x.dtype)?;
    if let Some(result) = put_by_mask(cx, &x, &list, &values, accumulate)? {
        return one(result);
    }
    one(written_at(cx, &x, &list, &values, accumulate)?)
}

fn written_at(
    cx: &mut Cx<'_>,
    x: &Tensor,
    list: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Lowered<Tensor> {
    let found = indices(cx, x, list)?;
    let dims = found.result(x);
    let updates = cx.expand_to(values, &dims)?;
    let axes: Vec<i64> = found.axes.iter().map(|&axis| axis as i64).collect();
    let numbers = ScatterDims {
        update_window_dims: found.windows(x),
        inserted_window_dims: axes.clone(),
        scatter_dims_to_operand_dims: axes,
        index_vector_dim: found.shape.len() as i64,
        ..ScatterDims::default()
    };
    let combine = match (accumulate, x.dtype) {
        (false, _) => OpKind::Return,
        (true, ElementType::Bool) => OpKind::Or,
        (true, _) => OpKind::Add,
    };
    scatter(cx, x, &found.stacked, &updates, numbers, combine)
}

/// `x[mask] = value` where the value does not depend on how many elements the mask has.
fn put_by_mask(
    cx: &mut Cx<'_>,
    x: &Tensor,
    list: &[Option<Tensor>],
    values: &Tensor,
    accumulate: bool,
) -> Lowered<Option<Tensor>> {
    let masks: Vec<(usize, &Tensor)> =
        list.iter().enumerate().filter_map(|(at, tensor)| Some((at, tensor.as_ref()?))).collect();
    let [(at, mask)] = masks.as_slice() else { return Ok(None) };
    if mask.dtype != ElementType::Bool {
        return Ok(None);
    }
    // The mask takes the place of its own number of dimensions; the value must not vary along them.
    let rest: Vec<Size> = x.dims.iter().skip(at + mask.rank()).cloned().collect();
    let fits = values.rank() <= rest.len()
        || values.dims[..values.rank() - rest.len()].iter().all(|size| size.is(1));
    if !fits || *at != 0 {
        return refuse("writing by a mask values whose number depends on the data");
    }
    let tail = values.dims[values.rank().saturating_sub(rest.len())..].to_vec();
    let value = cx.reshape(values, &tail)?;
    let value = cx.expand_to(&value, &x.dims)?;
    let map: Vec<usize> = (0..mask.rank()).collect();
    let mask = cx.broadcast(mask, &x.dims.clone(), &map)?;
    let new = if accumulate { cx.add(x, &value)? } else { value };
    cx.select(&mask, &new, x).map(Some)
}

/// Elements where a mask holds replaced by the next elements of another tensor, in order.
fn masked_scatter(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, mask, source) = (args.tensor("self")?, args.tensor("mask")?, args.tensor("source")?);
    let dims = cx.broadcast_shape(&[&x.dims, &mask.dims])?;
    let (x, mask) = (cx.expand_to(&x, &dims)?, cx.expand_to(&mask, &dims)?);
    let count = Size::product(&dims);
    let flat = cx.reshape(&mask, &[count])?;
    let ones = cx.convert(&flat, ElementType::I64)?;
    let place = super::super::reduction::cumulative_sum(cx, &ones, 0)?;
    let place = cx.with_number(OpKind::Subtract, &place, 1)?;
    let place = cx.with_number(OpKind::Maximum, &place, 0)?;
    let source = cx.convert(&source, x.dtype)?;
    let source = cx.reshape(&source, &[source.numel()])?;
    let taken = super::take_rows(cx, &source, 0, &place)?;
    let taken = cx.reshape(&taken, &dims)?;
    one(cx.select(&mask, &taken, &x)?)
}

/// Elements by their place in row-major order.
fn take(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, index) = (args.tensor("self")?, args.tensor("index")?);
    let flat = cx.reshape(&x, &[x.numel()])?;
    let places = cx.reshape(&index, &[index.numel()])?;
    let places = wrap_negative(cx, &places, &x.numel())?;
    let taken = super::take_rows(cx, &flat, 0, &places)?;
    one(cx.reshape(&taken, &index.dims)?)
}

fn put(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, index, source) = (args.tensor("self")?, args.tensor("index")?, args.tensor("source")?);
    let accumulate = args.bool_or("accumulate", false)?;
    let flat = cx.reshape(&x, &[x.numel()])?;
    let places = cx.reshape(&index, &[index.numel()])?;
    let places = wrap_negative(cx, &places, &x.numel())?;
    let values = cx.reshape(&source, &[source.numel()])?;
    let numbers = ScatterDims {
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        index_vector_dim: 1,
        ..ScatterDims::default()
    };
    let combine = if accumulate { OpKind::Add } else { OpKind::Return };
    let result = scatter(cx, &flat, &places, &values, numbers, combine)?;
    one(cx.reshape(&result, &x.dims)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn what_a_mask_hides_may_be_indexed_from_outside() {
        let shared = || {
            vec![
                ("self", Floats(&[2], vec![4.0, 5.0])),
                ("mask", Bools(&[3], vec![true, false, true])),
                ("indices", List(vec![Ints(&[3], vec![1, 9, -2])])),
            ]
        };
        let read = [shared(), vec![("fill", Plain(json!({"as_int": 7})))]].into_iter().flatten().collect();
        assert_eq!(evaluated("aten._unsafe_masked_index.default", read, &[(F32, &[3])]), [[5.0, 7.0, 4.0]]);
        let values = vec![("values", Floats(&[3], vec![1.0, 10.0, 100.0]))];
        let put = [shared(), values].into_iter().flatten().collect();
        let target = "aten._unsafe_masked_index_put_accumulate.default";
        assert_eq!(evaluated(target, put, &[(F32, &[2])]), [[104.0, 6.0]]);
    }
}
