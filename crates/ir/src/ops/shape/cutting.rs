//! Rules of operations that join, cut and pad.

use super::size_of;
use crate::types::{Dim, TensorType, Type};
use crate::verify::{Cx, compatible};

pub(super) fn concatenate(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let inputs = cx.tensors(0..cx.operands().len())?;
    let dimension = cx.i64("dimension")?;
    let Some(&first) = inputs.first() else {
        cx.fail("C3", "there must be at least one input");
        return None;
    };
    if !cx.in_rank("C4", "the dimension", &[dimension], first.rank()) {
        return None;
    }
    let axis = dimension as usize;
    let mut dims = first.dims().to_vec();
    for input in &inputs[1..] {
        cx.same_elements("C1", "the inputs", first, input);
        let same = input.rank() == first.rank()
            && (0..dims.len()).all(|d| d == axis || dims[d].compatible(input.dims()[d]));
        if !cx.check(same, "C2", || format!("{first} and {input} differ in more than dimension {axis}")) {
            return None;
        }
        for (d, dim) in dims.iter_mut().enumerate().filter(|(d, _)| *d != axis) {
            *dim = compatible::meet(*dim, input.dims()[d]);
        }
    }
    let sizes = inputs.iter().map(|input| input.dims()[axis]);
    dims[axis] = sizes
        .reduce(|a, b| match (a.size(), b.size(), a.bound(), b.bound()) {
            (Some(a), Some(b), ..) => a.checked_add(b).map_or(Dim::Dynamic, Dim::Static),
            (.., Some(a), Some(b)) => a.checked_add(b).map_or(Dim::Dynamic, Dim::Bounded),
            _ => Dim::Dynamic,
        })
        .unwrap_or(Dim::Dynamic);
    cx.gives_like(["C6", "C5"], first, dims)
}

/// The size of a dimension after padding; it may come out negative.
fn padded(size: u64, low: i64, high: i64, interior: i64) -> i128 {
    let size = i128::from(size);
    size + i128::from(low) + i128::from(high) + (size - 1).max(0) * i128::from(interior)
}

pub(super) fn pad(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, value) = (cx.tensor(0)?, cx.tensor(1)?);
    let (low, high) = (cx.i64s("edge_padding_low")?, cx.i64s("edge_padding_high")?);
    let interior = cx.i64s("interior_padding")?;
    cx.same_elements("C1", "the operand and the padding value", operand, value);
    for amounts in [low, high, interior] {
        if !cx.same_count("C2", "the amounts of padding", amounts.len(), operand.rank()) {
            return None;
        }
    }
    cx.check(interior.iter().all(|i| *i >= 0), "C3", || format!("interior_padding {interior:?} is negative"));
    let mut dims = Vec::new();
    for (axis, dim) in operand.dims().iter().enumerate() {
        let Some(bound) = dim.bound() else {
            dims.push(Dim::Dynamic);
            continue;
        };
        let size = padded(bound, low[axis], high[axis], interior[axis]);
        if !cx.check(size >= 0, "C4", || format!("dimension {axis} of {operand} would have the size {size}"))
        {
            return None;
        }
        let size = u64::try_from(size).ok()?;
        dims.push(if dim.is_static() { Dim::Static(size) } else { Dim::Bounded(size) });
    }
    cx.gives_like(["C4", "C1"], operand, dims)
}

pub(super) fn dynamic_pad(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, value) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C1", "the operand and the padding value", operand, value);
    for index in 2..5 {
        let amounts = cx.tensor(index)?;
        let fits = amounts.dims().first() == Some(&Dim::Static(operand.rank() as u64));
        cx.check(fits, "C2", || format!("{amounts} has not one amount for each dimension of {operand}"));
        cx.check(Some(amounts) == cx.tensor(2), "C2", || "the amounts have different types".to_owned());
    }
    let interior = cx.constant_ints(4);
    if let Some(amounts) = &interior {
        cx.check(amounts.iter().all(|i| *i >= 0), "C3", || {
            format!("interior padding {amounts:?} is negative")
        });
    }
    let result = cx.result(0)?;
    cx.same_elements("C1", "the operand and the result", operand, result);
    cx.same_count("C4", "the rank of the result", result.rank(), operand.rank());
    let (Some(low), Some(high), Some(interior)) = (cx.constant_ints(2), cx.constant_ints(3), interior) else {
        return None;
    };
    if cx.is_broken() {
        return None;
    }
    for (axis, (from, to)) in operand.dims().iter().zip(result.dims()).enumerate() {
        let (Some(from), Some(to)) = (from.size(), to.size()) else { continue };
        let size = padded(from, low[axis], high[axis], interior[axis]);
        cx.check(size == i128::from(to), "C4", || format!("dimension {axis} of {result} must be {size}"));
    }
    None
}

pub(super) fn slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let (starts, limits) = (cx.i64s("start_indices")?, cx.i64s("limit_indices")?);
    let strides = cx.i64s("strides")?;
    for list in [starts, limits, strides] {
        if !cx.same_count("C2", "starts, limits and strides", list.len(), operand.rank()) {
            return None;
        }
    }
    let mut dims = Vec::new();
    for (axis, dim) in operand.dims().iter().enumerate() {
        let (start, limit, stride) = (starts[axis], limits[axis], strides[axis]);
        let fits = 0 <= start && start <= limit && dim.bound().is_none_or(|bound| limit as u64 <= bound);
        cx.check(fits, "C3", || format!("[{start}, {limit}) is not inside dimension {axis} of {operand}"));
        cx.check(stride > 0, "C4", || format!("the stride {stride} is not positive"));
        if cx.is_broken() {
            return None;
        }
        dims.push(Dim::Static(((limit - start) as u64).div_ceil(stride as u64)));
    }
    cx.gives_like(["C5", "C1"], operand, dims)
}

pub(super) fn real_dynamic_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    let indices = cx.tensors(1..4)?;
    for index in &indices {
        let fits = index.dims().first().is_some_and(|dim| dim.size() == Some(operand.rank() as u64));
        cx.check(fits, "C2", || format!("{index} has not one element for each dimension of {operand}"));
        cx.same_elements("C3", "starts, limits and strides", indices[0], index);
    }
    if let Some(result) = cx.result(0) {
        cx.same_elements("C1", "the operand and the result", operand, result);
        cx.same_count("C1", "the rank of the result", result.rank(), operand.rank());
    }
    None
}

/// Start indices are scalars of one type, one for each dimension.
fn check_starts(cx: &mut Cx<'_>, first: usize, rank: usize, labels: [&'static str; 2]) {
    let types: Vec<&Type> = cx.operands().get(first..).unwrap_or(&[]).to_vec();
    cx.same_count(labels[0], "start indices", types.len(), rank);
    let same = types.windows(2).all(|pair| pair[0] == pair[1]);
    cx.check(same, labels[1], || "the start indices have different types".to_owned());
}

pub(super) fn dynamic_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, sizes) = (cx.tensor(0)?, cx.i64s("slice_sizes")?);
    check_starts(cx, 1, operand.rank(), ["C2", "C3"]);
    if !cx.same_count("C2", "slice_sizes", sizes.len(), operand.rank()) {
        return None;
    }
    for (size, dim) in sizes.iter().zip(operand.dims()) {
        let fits = *size >= 0 && dim.size().is_none_or(|whole| *size as u64 <= whole);
        cx.check(fits, "C4", || format!("a slice of {size} is not inside a dimension of {dim}"));
    }
    cx.gives_like(["C5", "C1"], operand, sizes.iter().map(|s| size_of(*s)).collect())
}

pub(super) fn dynamic_update_slice(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, update) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements("C2", "the operand and the update", operand, update);
    check_starts(cx, 2, operand.rank(), ["C4", "C5"]);
    check_update(cx, operand, update);
    cx.gives("C1", vec![Type::Tensor(operand.clone())])
}

fn check_update(cx: &mut Cx<'_>, operand: &TensorType, update: &TensorType) {
    if cx.same_count("C3", "the rank of the update", update.rank(), operand.rank()) {
        for (part, whole) in update.dims().iter().zip(operand.dims()) {
            let fits = part.size().zip(whole.size()).is_none_or(|(part, whole)| part <= whole);
            cx.check(fits, "C6", || format!("{update} is larger than {operand}"));
        }
    }
}
