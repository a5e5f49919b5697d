//! Rules of operations that make elements or repeat them.

use super::{check_shape_operand, size_of};
use crate::types::{Dim, Element, TensorType, Type};
use crate::verify::Cx;
use crate::verify::quantized::per_tensor;

pub(super) fn broadcast(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, sizes) = (cx.tensor(0)?, cx.i64s("broadcast_sizes")?);
    if !cx.check(sizes.iter().all(|s| *s >= 0), "sizes", || format!("a size of {sizes:?} is negative")) {
        return None;
    }
    let dims = sizes.iter().map(|s| size_of(*s)).chain(operand.dims().iter().copied()).collect();
    cx.gives_like("result", operand, dims)
}

/// The mapping of an operand's dimensions to those of a result they are repeated in.
fn check_broadcast(cx: &mut Cx<'_>, operand: &TensorType, result: &TensorType, fits: fn(Dim, Dim) -> bool) {
    if per_tensor(operand) && per_tensor(result) {
        cx.same_numbers("C1", "the operand and the result", operand, result);
    } else {
        cx.same_elements("C1", "the operand and the result", operand, result);
    }
    let Some(dims) = cx.i64s("broadcast_dimensions") else { return };
    cx.same_count("C2", "broadcast_dimensions", dims.len(), operand.rank());
    cx.unique("C4", "broadcast_dimensions", dims);
    if !cx.in_rank("C3", "broadcast_dimensions", dims, result.rank()) {
        return;
    }
    for (&size, &target) in operand.dims().iter().zip(dims) {
        let into = result.dims()[target as usize];
        cx.check(size == Dim::Static(1) || fits(size, into), "C5", || {
            format!("a dimension of size {size} cannot become dimension {target} of {result}")
        });
    }
    cx.same_broadcast_axis("C6", operand, result, dims);
}

pub(super) fn broadcast_in_dim(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    check_broadcast(cx, operand, result, |from, to| from.size().is_none() || from == to);
    None
}

pub(super) fn dynamic_broadcast_in_dim(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    check_broadcast(cx, operand, result, Dim::compatible);
    check_shape_operand(cx, "C7", 1, result);
    let expanding = cx.i64s("known_expanding_dimensions").unwrap_or(&[]);
    let kept = cx.i64s("known_nonexpanding_dimensions").unwrap_or(&[]);
    cx.unique("C8", "the known dimensions", &[expanding, kept].concat());
    cx.in_rank("C9", "a known expanding dimension", expanding, operand.rank());
    cx.in_rank("C10", "a known nonexpanding dimension", kept, operand.rank());
    if let (false, Some(sizes), Some(dims)) =
        (cx.is_broken(), cx.constant_ints(1), cx.i64s("broadcast_dimensions"))
    {
        for (size, target) in operand.dims().iter().zip(dims) {
            let into = sizes.get(*target as usize).copied().map_or(Dim::Dynamic, size_of);
            cx.check(*size == Dim::Static(1) || size.compatible(into), "C5", || {
                format!("a dimension of size {size} cannot be repeated {into} times")
            });
        }
    }
    None
}

pub(super) fn constant(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let value = cx.attr("value")?.as_elements()?.ty().clone();
    match (cx.result(0), value.element()) {
        // The value of a quantized constant is given in its storage type.
        (Some(result), Element::Plain(stored)) if result.element().is_quantized() => {
            let same = result.element().storage() == Some(*stored) && result.dims() == value.dims();
            cx.check(same, "C1", || format!("{result} cannot be given by {value}"));
            None
        }
        _ => cx.gives("C1", vec![Type::Tensor(value)]),
    }
}

pub(super) fn iota(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (dimension, result) = (cx.i64("iota_dimension")?, cx.result(0)?);
    cx.in_rank("C1", "iota_dimension", &[dimension], result.rank());
    None
}

pub(super) fn dynamic_iota(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let result = cx.result(0)?;
    check_shape_operand(cx, "C2", 0, result);
    iota(cx)
}
