//! Gather and scatter.

use super::reduction::{Reducer, check_reducer};
use crate::attr::{Attribute, GatherDims, ScatterDims};
use crate::table::Trait::{Deprecated, EqualGroups, Pure};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, TensorType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::DynamicGather)
        .values("operand: tensor, start_indices: int, slice_sizes: static 1d int", "result: tensor")
        .attrs("dimension_numbers: gather, indices_are_sorted: bool = false")
        .is(&[Pure])
        .rule(dynamic_gather).doc("As `gather`, with the sizes of the slices given by an operand."),
    op(OpKind::Gather)
        .values("operand: tensor, start_indices: int", "result: tensor")
        .attrs("dimension_numbers: gather, slice_sizes: i64s, indices_are_sorted: bool = false")
        .is(&[Pure])
        .rule(gather).doc("Collects slices of the operand from the places that the indices name."),
    op(OpKind::Scatter)
        .values("inputs*: tensor, scatter_indices: pred|int|index, updates*: tensor", "result*: tensor")
        .attrs("scatter_dimension_numbers: scatter, indices_are_sorted: bool = false, unique_indices: bool = false")
        .regions("update_computation")
        .is(&[Pure, EqualGroups])
        .rule(scatter).doc("Combines updates with the inputs at the places that the indices name."),
    op(OpKind::TorchIndexSelect)
        .values("operand: tensor, index: tensor", "result: tensor")
        .attrs("dim: i64, batch_dims: i64")
        .is(&[Pure, Deprecated])
        .doc("Collects slices along one dimension."),
];

/// Constraints that gather and its dynamic twin share; the shape of the result. Sizes that are not known are `None`.
fn gather_shape(cx: &mut Cx<'_>, sizes: Option<&[i64]>, size_count: Option<usize>) -> Option<Vec<Dim>> {
    let (operand, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let Attribute::Gather(dims) = cx.attr("dimension_numbers")? else { return None };
    let rank = operand.rank();
    let vector = dims.index_vector_dim;
    let given = dims.offset_dims.len() + dims.collapsed_slice_dims.len() + dims.operand_batching_dims.len();
    cx.same_count("C1", "offset, collapsed and batching dimensions", given, rank);
    cx.check((0..=indices.rank() as i64).contains(&vector), "C2", || {
        format!("index_vector_dim {vector} is not in [0, {}]", indices.rank())
    });
    if cx.is_broken() {
        return None;
    }
    let components = indices.dims().get(vector as usize).copied().unwrap_or(Dim::Static(1));
    let mapped = dims.start_index_map.len() as u64;
    cx.check(compatible::same_size(components, Dim::Static(mapped)), "C3", || {
        format!("start_index_map has {mapped} entries for {components} index components")
    });
    cx.unique("C4", "offset_dims", &dims.offset_dims);
    cx.sorted("C4", "offset_dims", &dims.offset_dims);
    let batch_rank = indices.rank() - usize::from((vector as usize) < indices.rank());
    let result_rank = batch_rank + dims.offset_dims.len();
    cx.in_rank("C5", "offset_dims", &dims.offset_dims, result_rank);
    let removed = [dims.collapsed_slice_dims.as_slice(), &dims.operand_batching_dims].concat();
    cx.unique("C6", "collapsed and batching dimensions", &removed);
    cx.sorted("C7", "collapsed_slice_dims", &dims.collapsed_slice_dims);
    cx.in_rank("C8", "collapsed_slice_dims", &dims.collapsed_slice_dims, rank);
    cx.sorted("C10", "operand_batching_dims", &dims.operand_batching_dims);
    cx.in_rank("C11", "operand_batching_dims", &dims.operand_batching_dims, rank);
    cx.unique("C13", "start_indices_batching_dims", &dims.start_indices_batching_dims);
    cx.in_rank("C14", "start_indices_batching_dims", &dims.start_indices_batching_dims, indices.rank());
    let apart = !dims.start_indices_batching_dims.contains(&vector);
    cx.check(apart, "C15", || format!("index_vector_dim {vector} is a batching dimension"));
    let (ours, theirs) = (dims.operand_batching_dims.len(), dims.start_indices_batching_dims.len());
    cx.same_count("C16", "batching dimensions", ours, theirs);
    let addressed = [dims.start_index_map.as_slice(), &dims.operand_batching_dims].concat();
    cx.unique("C18", "start_index_map and batching dimensions", &addressed);
    cx.in_rank("C19", "start_index_map", &dims.start_index_map, rank);
    if let Some(count) = size_count {
        cx.same_count("C20", "slice_sizes", count, rank);
    }
    if cx.is_broken() {
        return None;
    }
    for (o, s) in dims.operand_batching_dims.iter().zip(&dims.start_indices_batching_dims) {
        let (a, b) = (operand.dims()[*o as usize], indices.dims()[*s as usize]);
        cx.check(compatible::same_size(a, b), "C17", || {
            format!("batching dimension {o} of {operand} is not {s} of {indices}")
        });
    }
    if let Some(sizes) = sizes {
        check_slices(cx, operand, dims, sizes);
    }
    if cx.is_broken() {
        return None;
    }
    let batch = (0..indices.rank()).filter(|axis| *axis as i64 != vector).map(|axis| indices.dims()[axis]);
    let kept = (0..rank).filter(|axis| !removed.contains(&(*axis as i64)));
    let mut offsets = kept.map(|axis| sizes.map_or(Dim::Dynamic, |sizes| Dim::Static(sizes[axis] as u64)));
    let mut batch = batch.collect::<Vec<_>>().into_iter();
    let pick = |axis: usize| {
        if dims.offset_dims.contains(&(axis as i64)) { offsets.next() } else { batch.next() }
            .unwrap_or(Dim::Dynamic)
    };
    Some((0..result_rank).map(pick).collect())
}

/// Slices are inside the operand, and of size one where the result leaves them out.
fn check_slices(cx: &mut Cx<'_>, operand: &TensorType, dims: &GatherDims, sizes: &[i64]) {
    for (axis, (size, dim)) in sizes.iter().zip(operand.dims()).enumerate() {
        let fits = *size >= 0 && dim.size().is_none_or(|whole| *size as u64 <= whole);
        cx.check(fits, "C21", || format!("slice_sizes: {size} is not inside dimension {axis} of {operand}"));
    }
    for (label, list) in [("C9", &dims.collapsed_slice_dims), ("C12", &dims.operand_batching_dims)] {
        let small = list.iter().all(|axis| sizes.get(*axis as usize).is_none_or(|size| *size <= 1));
        cx.check(small, label, || format!("slices are not of size 1 along {list:?}"));
    }
}

fn gather(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let sizes = cx.i64s("slice_sizes")?;
    let shape = gather_shape(cx, Some(sizes), Some(sizes.len()))?;
    let operand = cx.tensor(0)?;
    cx.gives_like(["C22", "C23"], operand, shape)
}

fn dynamic_gather(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let sizes = cx.constant_ints(2);
    let count = cx.tensor(2)?.shape_usize().and_then(|shape| shape.first().copied());
    let shape = gather_shape(cx, sizes.as_deref(), count)?;
    let operand = cx.tensor(0)?;
    cx.gives_like(["C22", "C23"], operand, shape)
}

/// The dimension numbers of a scatter.
fn check_scatter_dims(
    cx: &mut Cx<'_>,
    dims: &ScatterDims,
    input: &TensorType,
    indices: &TensorType,
    update: &TensorType,
) {
    let given =
        dims.update_window_dims.len() + dims.inserted_window_dims.len() + dims.input_batching_dims.len();
    cx.same_count("C2", "window, inserted and batching dimensions", given, input.rank());
    cx.unique("C7", "update_window_dims", &dims.update_window_dims);
    cx.sorted("C7", "update_window_dims", &dims.update_window_dims);
    cx.in_rank("C8", "update_window_dims", &dims.update_window_dims, update.rank());
    let removed = [dims.inserted_window_dims.as_slice(), &dims.input_batching_dims].concat();
    cx.unique("C9", "inserted and batching dimensions", &removed);
    cx.sorted("C10", "inserted_window_dims", &dims.inserted_window_dims);
    cx.in_rank("C11", "inserted_window_dims", &dims.inserted_window_dims, input.rank());
    cx.sorted("C12", "input_batching_dims", &dims.input_batching_dims);
    cx.in_rank("C13", "input_batching_dims", &dims.input_batching_dims, input.rank());
    cx.unique("C14", "scatter_indices_batching_dims", &dims.scatter_indices_batching_dims);
    cx.in_rank("C15", "scatter_indices_batching_dims", &dims.scatter_indices_batching_dims, indices.rank());
    let vector = dims.index_vector_dim;
    let apart = !dims.scatter_indices_batching_dims.contains(&vector);
    cx.check(apart, "C16", || format!("index_vector_dim {vector} is a batching dimension"));
    let (ours, theirs) = (dims.input_batching_dims.len(), dims.scatter_indices_batching_dims.len());
    cx.same_count("C17", "batching dimensions", ours, theirs);
    cx.check((0..=indices.rank() as i64).contains(&vector), "C22", || {
        format!("index_vector_dim {vector} is not in [0, {}]", indices.rank())
    });
    let mapped = &dims.scatter_dims_to_operand_dims;
    let addressed = [mapped.as_slice(), &dims.input_batching_dims].concat();
    cx.unique("C20", "scatter_dims_to_operand_dims and batching dimensions", &addressed);
    cx.in_rank("C21", "scatter_dims_to_operand_dims", mapped, input.rank());
    if cx.is_broken() {
        return;
    }
    let components = indices.dims().get(vector as usize).copied().unwrap_or(Dim::Static(1));
    cx.check(compatible::same_size(components, Dim::Static(mapped.len() as u64)), "C19", || {
        format!("{} operand dimensions for {components} index components", mapped.len())
    });
    for (i, s) in dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims) {
        let (a, b) = (input.dims()[*i as usize], indices.dims()[*s as usize]);
        cx.check(compatible::same_size(a, b), "C18", || {
            format!("batching dimension {i} of {input} is not {s} of {indices}")
        });
    }
}

/// Updates are windows of the input, one for each index.
fn check_updates(
    cx: &mut Cx<'_>,
    dims: &ScatterDims,
    input: &TensorType,
    indices: &TensorType,
    update: &TensorType,
) {
    let vector = dims.index_vector_dim;
    let batch: Vec<Dim> =
        (0..indices.rank()).filter(|axis| *axis as i64 != vector).map(|axis| indices.dims()[axis]).collect();
    let rank = batch.len() + dims.update_window_dims.len();
    if !cx.same_count("C4", "the rank of the updates", update.rank(), rank) {
        return;
    }
    let removed = [dims.inserted_window_dims.as_slice(), &dims.input_batching_dims].concat();
    let mut window = (0..input.rank()).filter(|axis| !removed.contains(&(*axis as i64)));
    let mut batch = batch.into_iter();
    for (axis, dim) in update.dims().iter().enumerate() {
        if dims.update_window_dims.contains(&(axis as i64)) {
            let whole = window.next().map_or(Dim::Dynamic, |axis| input.dims()[axis]);
            let fits = dim.size().zip(whole.size()).is_none_or(|(part, whole)| part <= whole);
            cx.check(fits, "C4", || format!("dimension {axis} of {update} is larger than that of {input}"));
        } else {
            let expected = batch.next().unwrap_or(Dim::Dynamic);
            cx.check(compatible::same_size(*dim, expected), "C4", || {
                format!("dimension {axis} of {update} is not {expected}")
            });
        }
    }
}

fn scatter(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let count = cx.operands().len() / 2;
    let inputs = cx.tensors(0..count)?;
    let updates = cx.tensors(count + 1..cx.operands().len())?;
    let Attribute::Scatter(dims) = cx.attr("scatter_dimension_numbers")? else { return None };
    let (Some(indices), Some(&input), Some(&update)) = (cx.tensor(count), inputs.first(), updates.first())
    else {
        cx.fail("C5", "there must be at least one input");
        return None;
    };
    for other in &inputs {
        let same = compatible::sizes(input.dims(), other.dims());
        cx.check(same, "C1", || format!("the inputs have different shapes: {input} and {other}"));
    }
    for other in &updates {
        let same = compatible::sizes(update.dims(), other.dims());
        cx.check(same, "C3", || format!("the updates have different shapes: {update} and {other}"));
    }
    check_scatter_dims(cx, dims, input, indices, update);
    if cx.is_broken() {
        return None;
    }
    check_updates(cx, dims, input, indices, update);
    let inits: Vec<TensorType> = updates.iter().map(|update| update.with_dims([])).collect();
    let reducer = Reducer { inputs: &inputs, inits: &inits, allowed: &[] };
    if !check_reducer(cx, 0, &reducer, "C23") {
        return None;
    }
    let body = cx.region(0);
    let elements = body.returned().iter().filter_map(|ty| ty.element());
    let types = inputs.iter().zip(elements);
    let types = types.map(|(input, element)| Type::Tensor(input.with_element(element.clone()))).collect();
    cx.gives(["C24", "C25"], types)
}
