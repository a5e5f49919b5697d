//! The rule of `chlo.scan`.

use crate::types::{Dim, TensorType, Type};
use crate::verify::{Cx, compatible};

/// The body takes what each input has at one position and what is carried, and returns what each output has there and
/// what is carried on.
pub(super) fn rule(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let dimension = cx.i64("dimension")?;
    let carried = carried(cx)?;
    let inputs = cx.operands().len().checked_sub(carried)?;
    let mut wanted = Vec::new();
    let mut steps = cx.i64("scan_dim_size").map(|size| u64::try_from(size).map_or(Dim::Dynamic, Dim::Static));
    for input in cx.tensors(0..inputs)? {
        if !cx.in_rank("dimension", "the dimension", &[dimension], input.rank()) {
            return None;
        }
        let mut dims = input.dims().to_vec();
        let along = dims.remove(dimension as usize);
        let known = *steps.get_or_insert(along);
        cx.check(compatible::same_size(known, along), "inputs", || {
            format!("{input} has {along} positions where others have {known}")
        });
        steps = Some(compatible::meet(known, along));
        wanted.push(Type::Tensor(input.with_dims(dims)));
    }
    wanted.extend(cx.operands()[inputs..].iter().map(|ty| (*ty).clone()));
    let body = cx.region(0);
    if !cx.same_count("body", "the arguments of the body", body.arguments.len(), wanted.len()) {
        return None;
    }
    for (argument, wanted) in body.arguments.iter().zip(&wanted) {
        cx.check(compatible::types(argument, wanted), "body", || {
            format!("the body takes {argument} where {wanted} is given")
        });
    }
    let Some(outputs) = body.returned().len().checked_sub(carried) else {
        cx.fail("body", "the body returns less than is carried");
        return None;
    };
    for (next, init) in body.returned()[outputs..].iter().zip(&wanted[inputs..]) {
        cx.check(compatible::types(next, init), "body", || {
            format!("the body carries on {next} where {init} is carried")
        });
    }
    if cx.is_broken() {
        return None;
    }
    let mut types = Vec::new();
    for part in &body.returned()[..outputs] {
        types.push(Type::Tensor(collected(
            part.as_tensor()?,
            dimension as usize,
            steps.unwrap_or(Dim::Dynamic),
        )?));
    }
    types.extend(body.returned()[outputs..].iter().map(|ty| (*ty).clone()));
    cx.gives("result", types)
}

/// How many of the operands are initial values.
fn carried(cx: &Cx<'_>) -> Option<usize> {
    let sizes = cx.attrs().segment_sizes("operandSegmentSizes");
    let groups = cx.def().operand_groups(cx.operands().len(), sizes.as_deref())?;
    groups.get(1).copied()
}

/// What all positions together give.
fn collected(part: &TensorType, dimension: usize, steps: Dim) -> Option<TensorType> {
    let mut dims = part.dims().to_vec();
    if dimension > dims.len() {
        return None;
    }
    dims.insert(dimension, steps);
    Some(part.with_dims(dims))
}
