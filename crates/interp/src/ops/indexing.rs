//! Gather and scatter.

use warpforge_ir::OpKind;
use warpforge_ir::attr::{GatherDims, ScatterDims};
use warpforge_tensor::{Shape, Tensor};

use super::Evaluator;
use super::shape::steps_of;
use crate::Value;
use crate::cx::{Cx, missing, one, scalar_i64, to_usizes};
use crate::error::{Result, invalid};
use crate::native::reduction_op::ReductionOp;
use crate::native::scatter::{Run, combiner};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::DynamicGather => dynamic_gather,
        OpKind::Gather => gather,
        OpKind::Scatter => scatter,
        OpKind::TorchIndexSelect => torch_index_select,
        _ => return None,
    })
}

fn gather(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let sizes = cx.usizes("slice_sizes")?;
    gathered(cx, &sizes)
}

fn dynamic_gather(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let sizes = to_usizes(&cx.operand_i64s(2)?)?;
    gathered(cx, &sizes)
}

/// The dimensions of `0..rank` that are in none of the lists.
fn others(rank: usize, listed: &[&[usize]]) -> Vec<usize> {
    (0..rank).filter(|dim| !listed.iter().any(|list| list.contains(dim))).collect()
}

/// Index vectors: the components of each, and which dimension of the operand they are for.
struct IndexVectors {
    values: Vec<i64>,
    /// The shape of the positions among the vectors, and how far apart those are.
    batch: Vec<usize>,
    strides: Vec<usize>,
    /// How far apart the components of a vector are.
    step: usize,
    /// Dimension of the operand for each component.
    map: Vec<usize>,
    /// Pairs of a dimension of the operand and the position among the vectors that it follows.
    batching: Vec<(usize, usize)>,
    rank: usize,
}

impl IndexVectors {
    /// The vectors along dimension `vector_dim` of `indices` for an operand of some rank; `batching` has pairs of a
    /// dimension of the operand and one of the indices.
    fn new(
        indices: &Tensor,
        vector_dim: i64,
        map: &[i64],
        batching: (&[i64], &[i64]),
        rank: usize,
    ) -> Result<Self> {
        let (map, vector_dim) = (to_usizes(map)?, to_usizes(&[vector_dim])?[0]);
        let strides = indices.shape().strides();
        // A vector dimension behind the last one means vectors of one component.
        let length = indices.dims().get(vector_dim).copied().unwrap_or(1);
        let without = |list: &[usize]| {
            let kept = list.iter().enumerate().filter(|(dim, _)| *dim != vector_dim);
            kept.map(|(_, &value)| value).collect::<Vec<_>>()
        };
        let batch = without(indices.dims());
        let position = |dim: usize| if dim > vector_dim { dim - 1 } else { dim };
        let pairs = to_usizes(batching.0)?.into_iter().zip(to_usizes(batching.1)?.into_iter().map(position));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let fits = length == map.len()
            && map.iter().all(|&dim| dim < rank)
            && pairs.iter().all(|&(dim, position)| dim < rank && position < batch.len());
        if !fits {
            return Err(invalid("the index vectors do not fit the operand"));
        }
        let values = indices.iter().map(scalar_i64).collect::<Result<_>>()?;
        let step = strides.get(vector_dim).copied().unwrap_or(0);
        Ok(Self { values, batch, strides: without(&strides), step, map, batching: pairs, rank })
    }

    /// The index into the operand that the vector at a position gives, as it is.
    fn at(&self, batch: &[usize]) -> Vec<i64> {
        let first: usize = batch.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        let mut full = vec![0; self.rank];
        for (component, &dim) in self.map.iter().enumerate() {
            full[dim] = self.values[first + component * self.step];
        }
        for &(dim, position) in &self.batching {
            full[dim] = batch[position] as i64;
        }
        full
    }
}

/// Some of a list's entries.
fn picked<T: Copy>(list: &[T], which: &[usize]) -> Vec<T> {
    which.iter().map(|&at| list[at]).collect()
}

fn gathered(cx: &Cx<'_, '_, '_>, sizes: &[usize]) -> Result<Vec<Value>> {
    let (operand, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let dims: &GatherDims = cx.op.gather_dims().ok_or_else(|| missing("dimension_numbers"))?;
    let rank = operand.shape().rank();
    let offset_dims = to_usizes(&dims.offset_dims)?;
    let batching = (&*dims.operand_batching_dims, &*dims.start_indices_batching_dims);
    let vectors = IndexVectors::new(indices, dims.index_vector_dim, &dims.start_index_map, batching, rank)?;
    if sizes.len() != rank || sizes.iter().zip(operand.dims()).any(|(size, dim)| size > dim) {
        return Err(invalid("slice_sizes do not fit the operand"));
    }
    let (collapsed, batched) = (to_usizes(&dims.collapsed_slice_dims)?, to_usizes(batching.0)?);
    let window = others(rank, &[&collapsed, &batched]);
    let result_rank = vectors.batch.len() + window.len();
    let batch_dims = others(result_rank, &[&offset_dims]);
    if offset_dims.len() != window.len() || batch_dims.len() != vectors.batch.len() {
        return Err(invalid("offset_dims do not fit the slices"));
    }
    let mut shape = vec![0; result_rank];
    for (&dim, &size) in batch_dims.iter().zip(&vectors.batch) {
        shape[dim] = size;
    }
    for (&dim, &axis) in offset_dims.iter().zip(&window) {
        shape[dim] = sizes[axis];
    }
    let mut result = Tensor::zeros(operand.element_type(), cx.shape(shape)?)?;
    if result.is_empty() {
        return one(result);
    }
    let (from_steps, to_steps) = (steps_of(operand.shape()), steps_of(result.shape()));
    let (window_sizes, window_from) = (picked(sizes, &window), picked(&from_steps, &window));
    let (window_to, batch_to) = (picked(&to_steps, &offset_dims), picked(&to_steps, &batch_dims));
    let batch_shape = Shape::new(vectors.batch.clone())?;
    let mut positions = batch_shape.indices();
    while let Some(batch) = positions.advance() {
        // A slice that would reach beyond the operand is moved inside.
        let start = vectors.at(batch).into_iter().enumerate().map(|(axis, start)| {
            let last = (operand.dims()[axis] - sizes[axis]) as i64;
            start.clamp(0, last) as usize * from_steps[axis] as usize
        });
        let to = batch.iter().zip(&batch_to).map(|(at, &step)| at * step as usize).sum();
        result.copy_part(&window_sizes, (to, &window_to), operand, (start.sum(), &window_from))?;
    }
    one(result)
}

/// How the dimensions of a scatter's updates and inputs meet.
struct Windows {
    vectors: IndexVectors,
    /// Dimensions of the updates that go through the index vectors.
    scatter_dims: Vec<usize>,
    /// Dimensions of the updates within a window, and those of the inputs that they are.
    update_dims: Vec<usize>,
    axes: Vec<usize>,
}

impl Windows {
    fn new(cx: &Cx<'_, '_, '_>, indices: &Tensor, input: &Shape, update: &Shape) -> Result<Self> {
        let dims: &ScatterDims = cx.op.scatter_dims().ok_or_else(|| missing("scatter_dimension_numbers"))?;
        let batching = (&*dims.input_batching_dims, &*dims.scatter_indices_batching_dims);
        let map = &dims.scatter_dims_to_operand_dims;
        let vectors = IndexVectors::new(indices, dims.index_vector_dim, map, batching, input.rank())?;
        let update_dims = to_usizes(&dims.update_window_dims)?;
        let (inserted, batched) = (to_usizes(&dims.inserted_window_dims)?, to_usizes(batching.0)?);
        let axes = others(input.rank(), &[&inserted, &batched]);
        let scatter_dims = others(update.rank(), &[&update_dims]);
        if axes.len() != update_dims.len()
            || update_dims.iter().any(|&dim| dim >= update.rank())
            || picked(update.dims(), &scatter_dims) != vectors.batch
        {
            return Err(invalid("the dimensions of the updates do not fit inputs and indices"));
        }
        Ok(Self { vectors, scatter_dims, update_dims, axes })
    }

    /// Whether going window by window applies the updates of each element in the order of the updates: either that is
    /// their order, or an element is at the same place in every window that has it.
    fn keep_order(&self, update: &Shape) -> bool {
        let leading = self.scatter_dims.iter().copied().eq(0..self.scatter_dims.len());
        let fixed = |axis: &usize| {
            let place = self.axes.iter().position(|other| other == axis);
            place.is_none_or(|place| update.dims()[self.update_dims[place]] <= 1)
        };
        leading || self.vectors.map.iter().all(fixed)
    }
}

fn scatter(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.group("inputs")?;
    let updates = cx.group("updates")?;
    let indices = cx.tensor(inputs.len())?.clone();
    let (Some(input), Some(update)) = (inputs.first(), updates.first()) else {
        return Err(invalid("nothing to scatter"));
    };
    if updates.len() != inputs.len() || updates.iter().any(|other| other.shape() != update.shape()) {
        return Err(invalid("inputs and updates do not fit"));
    }
    let windows = Windows::new(cx, &indices, input.shape(), update.shape())?;
    if let ([input], [update]) = (&*inputs, &*updates)
        && let Some(apply) = simple_update(cx, &windows, input, update)?
    {
        cx.machine.count_steps(update.len())?;
        let update = update.clone();
        // Nobody else has the input any more, so it is not copied if this was its last use.
        drop((inputs, updates));
        let mut result = cx.take_tensor(0)?;
        scatter_windows(&windows, &mut result, &update, &apply)?;
        return one(result);
    }
    let mut body = cx.body(0)?;
    let mut results = inputs.clone();
    let shape = update.shape().clone();
    let mut positions = shape.indices();
    let mut source = 0;
    while let Some(index) = positions.advance() {
        let mut target = windows.vectors.at(&picked(index, &windows.scatter_dims));
        for (&dim, &axis) in windows.update_dims.iter().zip(&windows.axes) {
            target[axis] = target[axis].saturating_add(index[dim] as i64);
        }
        // An update outside the inputs has no effect.
        if let Some(position) = position_inside(input.shape(), &target) {
            let old = results.iter().map(|result| result.get(position));
            let arguments: Vec<_> = old.chain(updates.iter().map(|update| update.get(source))).collect();
            for (result, value) in results.iter_mut().zip(body.apply(cx.machine, &arguments)?) {
                result.set(position, *value);
            }
        }
        source += 1;
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
}

/// Applies the updates of a window that are inside: dimensions, then first position and steps on both sides.
type Apply = Box<dyn Fn(&mut Tensor, &Tensor, &[usize], (usize, &[isize]), (usize, &[isize])) -> Result<()>>;

/// What a scatter with a simple computation does with a window; `None` where the general path is needed.
fn simple_update(
    cx: &Cx<'_, '_, '_>,
    windows: &Windows,
    input: &Tensor,
    update: &Tensor,
) -> Result<Option<Apply>> {
    let element = input.element_type();
    if update.element_type() != element
        || cx.body_elements(0)? != [element]
        || !windows.keep_order(update.shape())
    {
        return Ok(None);
    }
    let reduction = cx.native_region(0).and_then(|block| ReductionOp::of(cx.machine.module, block));
    Ok(match reduction {
        None => None,
        Some(ReductionOp::Second) => {
            Some(Box::new(|target, source, dims, to, from| Ok(target.copy_part(dims, to, source, from)?)))
        }
        Some(reduction) => combiner(reduction, element).map(|combine| -> Apply {
            Box::new(move |target, source, dims, to, from| {
                runs(dims, to, from, |run| combine(target, source, run))
            })
        }),
    })
}

/// Splits an update of several dimensions into runs along the last.
fn runs(
    dims: &[usize],
    to: (usize, &[isize]),
    from: (usize, &[isize]),
    mut each: impl FnMut(Run) -> Result<()>,
) -> Result<()> {
    let Some((&count, outer)) = dims.split_last() else {
        return each(Run { to: to.0, from: from.0, count: 1, to_step: 1, from_step: 1 });
    };
    let outer = Shape::new(outer)?;
    let mut indices = outer.indices();
    let offset = |index: &[usize], (start, steps): (usize, &[isize])| {
        start + index.iter().zip(steps).map(|(at, &step)| at * step as usize).sum::<usize>()
    };
    let (to_step, from_step) = (to.1[dims.len() - 1] as usize, from.1[dims.len() - 1] as usize);
    while let Some(index) = indices.advance() {
        each(Run { to: offset(index, to), from: offset(index, from), count, to_step, from_step })?;
    }
    Ok(())
}

/// Goes through the windows of a scatter, each cut to what lies inside the input.
fn scatter_windows(windows: &Windows, result: &mut Tensor, update: &Tensor, apply: &Apply) -> Result<()> {
    let shape = result.shape().clone();
    let (to_steps, from_steps) = (steps_of(&shape), steps_of(update.shape()));
    let (window_to, window_from) =
        (picked(&to_steps, &windows.axes), picked(&from_steps, &windows.update_dims));
    let batch_from = picked(&from_steps, &windows.scatter_dims);
    let sizes = picked(update.dims(), &windows.update_dims);
    let batch_shape = Shape::new(windows.vectors.batch.clone())?;
    if update.is_empty() {
        return Ok(());
    }
    let mut positions = batch_shape.indices();
    'windows: while let Some(batch) = positions.advance() {
        let start = windows.vectors.at(batch);
        let mut to = 0;
        let mut from: usize = batch.iter().zip(&batch_from).map(|(at, &step)| at * step as usize).sum();
        let mut dims = Vec::with_capacity(sizes.len());
        for (axis, &first) in start.iter().enumerate() {
            let place = windows.axes.iter().position(|&other| other == axis);
            let size = place.map_or(1, |place| sizes[place]) as i64;
            let (low, high) =
                ((-first.max(-size)).max(0), (shape.dims()[axis] as i64).saturating_sub(first).min(size));
            if low >= high {
                continue 'windows;
            }
            to += (first + low) as usize * to_steps[axis] as usize;
            if let Some(place) = place {
                from += low as usize * window_from[place] as usize;
                dims.push((high - low) as usize);
            }
        }
        apply(result, update, &dims, (to, &window_to), (from, &window_from))?;
    }
    Ok(())
}

fn position_inside(shape: &Shape, index: &[i64]) -> Option<usize> {
    let index: Option<Vec<usize>> = index.iter().map(|&at| usize::try_from(at).ok()).collect();
    shape.position(&index?)
}

/// `result[batch…, index…, rest…] = operand[batch…, index[batch…, index…], rest…]` along `dim`.
fn torch_index_select(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (operand, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let axis = cx.axis("dim", operand.shape().rank())?;
    let batch = cx.axis("batch_dims", indices.shape().rank() + 1)?;
    if batch > axis || operand.dims()[axis] == 0 {
        return Err(invalid("batch_dims lie behind dim, or there is nothing to select from"));
    }
    let dims = [&operand.dims()[..axis], &indices.dims()[batch..], &operand.dims()[axis + 1..]].concat();
    let strides = operand.shape().strides();
    let inner = indices.shape().rank() - batch;
    let limit = operand.dims()[axis] as i64 - 1;
    let result = operand.gathered(cx.shape(dims)?, |index| {
        let place = [&index[..batch], &index[axis..axis + inner]].concat();
        let selected = indices.at(&place).map(|found| scalar_i64(found).unwrap_or(0).clamp(0, limit))?;
        let before: usize = (0..axis).map(|dim| index[dim] * strides[dim]).sum();
        let after: usize = (axis + 1..strides.len()).map(|dim| index[dim + inner - 1] * strides[dim]).sum();
        Some(before + selected as usize * strides[axis] + after)
    })?;
    one(result)
}
