//! Gather and scatter.

use warpforge_ir::OpKind;
use warpforge_ir::attr::{GatherDims, ScatterDims};
use warpforge_tensor::{Shape, Tensor};

use super::Evaluator;
use crate::Value;
use crate::cx::{Cx, missing, one, scalar_i64, to_usizes};
use crate::error::{Result, invalid};

pub(super) const OPS: &[(OpKind, Evaluator)] = &[
    (OpKind::DynamicGather, dynamic_gather),
    (OpKind::Gather, gather),
    (OpKind::Scatter, scatter),
    (OpKind::TorchIndexSelect, torch_index_select),
];

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

/// Index vectors: where they are in the tensor of indices, and which dimension each component is for.
struct IndexVectors<'a> {
    indices: &'a Tensor,
    vector_dim: usize,
    /// Dimension of the operand for each component.
    map: Vec<usize>,
    /// Pairs of a dimension of the operand and the dimension of the indices that it follows.
    batching: Vec<(usize, usize)>,
}

impl IndexVectors<'_> {
    /// The full index into the operand for a position among the index vectors; components are taken as they are.
    fn at(&self, rank: usize, batch: &[usize]) -> Result<Vec<i64>> {
        let mut full = vec![0; rank];
        let mut place: Vec<usize> = batch.to_vec();
        let inside = self.vector_dim < self.indices.shape().rank();
        if inside {
            place.insert(self.vector_dim.min(place.len()), 0);
        }
        for (component, &dim) in self.map.iter().enumerate() {
            if inside {
                place[self.vector_dim] = component;
            }
            let found = self.indices.at(&place).ok_or_else(|| invalid("an index vector is too short"))?;
            *full.get_mut(dim).ok_or_else(|| invalid("an index is for no dimension of the operand"))? =
                scalar_i64(found)?;
        }
        for &(operand_dim, indices_dim) in &self.batching {
            // Positions among the vectors leave the vector's own dimension out.
            let at = if indices_dim > self.vector_dim { indices_dim - 1 } else { indices_dim };
            let position = batch.get(at).ok_or_else(|| invalid("a batching dimension is missing"))?;
            *full.get_mut(operand_dim).ok_or_else(|| invalid("a batching dimension is missing"))? =
                *position as i64;
        }
        Ok(full)
    }

    /// The shape of the positions among the vectors.
    fn batch_dims(&self) -> Vec<usize> {
        let dims = self.indices.dims().iter().enumerate();
        dims.filter(|(dim, _)| *dim != self.vector_dim).map(|(_, &size)| size).collect()
    }
}

fn gathered(cx: &Cx<'_, '_, '_>, sizes: &[usize]) -> Result<Vec<Value>> {
    let (operand, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let GatherDims {
        offset_dims,
        collapsed_slice_dims,
        operand_batching_dims,
        start_indices_batching_dims,
        start_index_map,
        index_vector_dim,
    } = cx.op.gather_dims().ok_or_else(|| missing("dimension_numbers"))?;
    let rank = operand.shape().rank();
    let offset_dims = to_usizes(offset_dims)?;
    let (collapsed, batching) = (to_usizes(collapsed_slice_dims)?, to_usizes(operand_batching_dims)?);
    let vectors = IndexVectors {
        indices,
        vector_dim: to_usizes(&[*index_vector_dim])?[0],
        map: to_usizes(start_index_map)?,
        batching: batching.iter().copied().zip(to_usizes(start_indices_batching_dims)?).collect(),
    };
    if sizes.len() != rank || sizes.iter().zip(operand.dims()).any(|(size, dim)| size > dim) {
        return Err(invalid("slice_sizes do not fit the operand"));
    }
    let window = others(rank, &[&collapsed, &batching]);
    let batch_sizes = vectors.batch_dims();
    let result_rank = batch_sizes.len() + window.len();
    let batch_dims = others(result_rank, &[&offset_dims]);
    if offset_dims.len() != window.len() || batch_dims.len() != batch_sizes.len() {
        return Err(invalid("offset_dims do not fit the slices"));
    }
    let mut dims = vec![0; result_rank];
    for (&dim, &size) in batch_dims.iter().zip(&batch_sizes) {
        dims[dim] = size;
    }
    for (&dim, &axis) in offset_dims.iter().zip(&window) {
        dims[dim] = sizes[axis];
    }
    let strides = operand.shape().strides();
    let mut failure = None;
    let result = operand.gathered(cx.shape(dims)?, |index| {
        let batch: Vec<usize> = batch_dims.iter().map(|&dim| index[dim]).collect();
        let start = match vectors.at(rank, &batch) {
            Ok(start) => start,
            Err(error) => {
                failure = Some(error);
                return None;
            }
        };
        // A slice that would reach beyond the operand is moved inside.
        let mut position = 0;
        for axis in 0..rank {
            let last = (operand.dims()[axis] - sizes[axis]) as i64;
            position += start[axis].clamp(0, last) as usize * strides[axis];
        }
        Some(
            position
                + offset_dims
                    .iter()
                    .zip(&window)
                    .map(|(&dim, &axis)| index[dim] * strides[axis])
                    .sum::<usize>(),
        )
    })?;
    failure.map_or_else(|| one(result), Err)
}

fn scatter(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.group("inputs")?;
    let updates = cx.group("updates")?;
    let indices = cx.tensor(inputs.len())?.clone();
    let ScatterDims {
        update_window_dims,
        inserted_window_dims,
        input_batching_dims,
        scatter_indices_batching_dims,
        scatter_dims_to_operand_dims,
        index_vector_dim,
    } = cx.op.scatter_dims().ok_or_else(|| missing("scatter_dimension_numbers"))?;
    let (Some(input), Some(update)) = (inputs.first(), updates.first()) else {
        return Err(invalid("nothing to scatter"));
    };
    if updates.len() != inputs.len() || updates.iter().any(|other| other.shape() != update.shape()) {
        return Err(invalid("inputs and updates do not fit"));
    }
    let (rank, shape) = (input.shape().rank(), update.shape().clone());
    let window_dims = to_usizes(update_window_dims)?;
    let (inserted, batching) = (to_usizes(inserted_window_dims)?, to_usizes(input_batching_dims)?);
    let vectors = IndexVectors {
        indices: &indices,
        vector_dim: to_usizes(&[*index_vector_dim])?[0],
        map: to_usizes(scatter_dims_to_operand_dims)?,
        batching: batching.iter().copied().zip(to_usizes(scatter_indices_batching_dims)?).collect(),
    };
    let window = others(rank, &[&inserted, &batching]);
    let scatter_dims = others(shape.rank(), &[&window_dims]);
    if window.len() != window_dims.len() || window_dims.iter().any(|&dim| dim >= shape.rank()) {
        return Err(invalid("update_window_dims do not fit the inputs"));
    }
    let body = cx.body(0)?;
    let mut results = inputs.clone();
    let mut positions = shape.indices();
    let mut source = 0;
    while let Some(index) = positions.advance() {
        let batch: Vec<usize> = scatter_dims.iter().map(|&dim| index[dim]).collect();
        let mut target = vectors.at(rank, &batch)?;
        for (&dim, &axis) in window_dims.iter().zip(&window) {
            target[axis] = target[axis].saturating_add(index[dim] as i64);
        }
        // An update outside the inputs has no effect.
        if let Some(position) = position_inside(input.shape(), &target) {
            let old = results.iter().map(|result| result.get(position));
            let arguments: Vec<_> = old.chain(updates.iter().map(|update| update.get(source))).collect();
            let new = body.apply(cx.machine, &arguments)?;
            for (result, value) in results.iter_mut().zip(new) {
                result.set(position, value);
            }
        }
        source += 1;
    }
    Ok(results.into_iter().map(Value::Tensor).collect())
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
