//! Rules of operations that arrange the same elements differently.

use super::check_shape_operand;
use crate::types::{Dim, ElementType, TensorType, Type};
use crate::verify::quantized::{axis, per_tensor};
use crate::verify::{Cx, compatible};

pub(super) fn bitcast_convert(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    let (from, to) = (operand.element().storage()?, result.element().storage()?);
    cx.check(from.is_complex() == to.is_complex(), "C2", || {
        format!("{operand} and {result}: bits of complex numbers are only those of complex numbers")
    });
    let (from, to) = (from.bits(), to.bits());
    if from == to {
        let same = compatible::sizes(operand.dims(), result.dims());
        cx.check(same, "C1", || format!("{operand} and {result} have different shapes"));
        return None;
    }
    let (wide, narrow) = if from < to { (result, operand) } else { (operand, result) };
    let fits = match narrow.dims().split_last() {
        Some((last, prefix)) => {
            last.size().is_none_or(|count| count * u64::from(from.min(to)) == u64::from(from.max(to)))
                && compatible::sizes(wide.dims(), prefix)
        }
        None => false,
    };
    cx.check(fits, "C1", || format!("{operand} and {result} do not have the same bits"));
    None
}

fn check_elements(cx: &mut Cx<'_>, operand: &TensorType, result: &TensorType) {
    let quantized =
        per_tensor(operand) && per_tensor(result) || axis(operand).is_some() && axis(result).is_some();
    if quantized {
        cx.same_numbers("C1", "the operand and the result", operand, result);
    } else {
        cx.same_elements("C1", "the operand and the result", operand, result);
    }
}

pub(super) fn reshape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    check_elements(cx, operand, result);
    if let (Some(from), Some(to)) = (operand.element_count(), result.element_count()) {
        cx.check(from == to, "C2", || format!("{operand} has {from} elements and {result} has {to}"));
    } else if operand.is_static() && result.is_static() {
        // A product that overflows is the same as another only where the sizes are.
        cx.check(operand.dims() == result.dims(), "C2", || {
            format!("{operand} or {result} has more elements than can be counted")
        });
    }
    let (Some(from), Some(to)) = (axis(operand), axis(result)) else { return None };
    let size = |tensor: &TensorType, axis: usize| tensor.dim(axis).unwrap_or(Dim::Dynamic);
    cx.check(compatible::same_size(size(operand, from), size(result, to)), "C3", || {
        format!("{operand} and {result} have different numbers of scales")
    });
    let before = |tensor: &TensorType, axis: usize| tensor.with_dims(&tensor.dims()[..axis]).element_count();
    if operand.is_static() && result.is_static() && from < operand.rank() && to < result.rank() {
        cx.check(before(operand, from) == before(result, to), "C3", || {
            format!("the scales of {operand} are not those of {result}")
        });
    }
    None
}

pub(super) fn dynamic_reshape(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, result) = (cx.tensor(0)?, cx.result(0)?);
    check_shape_operand(cx, "C4", 1, result);
    if let (Some(count), Some(sizes)) = (operand.element_count(), cx.constant_ints(1)) {
        let product =
            sizes.iter().try_fold(1u64, |product, size| product.checked_mul(u64::try_from(*size).ok()?));
        cx.check(product == Some(count), "C2", || {
            format!("{operand} has {count} elements, which do not make the shape {sizes:?}")
        });
    }
    reshape(cx)
}

pub(super) fn reverse(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dims) = (cx.tensor(0)?, cx.i64s("dimensions")?);
    cx.unique("C2", "dimensions", dims);
    cx.in_rank("C3", "dimensions", dims, operand.rank());
    cx.gives("C1", vec![Type::Tensor(operand.clone())])
}

pub(super) fn transpose(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, permutation) = (cx.tensor(0)?, cx.i64s("permutation")?);
    let complete = cx.same_count("C2", "permutation", permutation.len(), operand.rank())
        && cx.in_rank("C2", "permutation", permutation, operand.rank())
        && cx.unique("C2", "permutation", permutation);
    if !complete {
        return None;
    }
    if let Some(result) = cx.result(0) {
        check_elements(cx, operand, result);
        if let (Some(from), Some(to)) = (axis(operand), axis(result)) {
            cx.check(permutation.get(to) == Some(&(from as i64)), "C4", || {
                format!("the scales of {result} are not along the axis that those of {operand} go to")
            });
        }
    }
    let dims = permutation.iter().map(|axis| operand.dims()[*axis as usize]).collect();
    cx.gives_like(["C3", "C1"], operand, dims)
}

pub(super) fn get_dimension_size(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dimension) = (cx.tensor(0)?, cx.i64("dimension")?);
    cx.in_rank("C1", "the dimension", &[dimension], operand.rank());
    cx.gives("result", vec![Type::tensor(&[], ElementType::I32)])
}

pub(super) fn set_dimension_size(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, dimension) = (cx.tensor(0)?, cx.i64("dimension")?);
    let size = cx.tensor(1)?;
    cx.same_count("size", "the rank of the size", size.rank(), 0);
    if !cx.in_rank("dimension", "the dimension", &[dimension], operand.rank()) {
        return None;
    }
    let constant = cx.constant_ints(1).and_then(|sizes| sizes.first().copied());
    let mut dims = operand.dims().to_vec();
    let dim = &mut dims[dimension as usize];
    *dim = match dim.bound() {
        Some(bound) if constant.is_some_and(|size| u64::try_from(size) == Ok(bound)) => Dim::Static(bound),
        Some(bound) => Dim::Bounded(bound),
        None => Dim::Dynamic,
    };
    cx.gives_like("result", operand, dims)
}

pub(super) fn barrier(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let types: Vec<Type> = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    let same = cx.given_results().is_none_or(|results| results.iter().copied().eq(&types));
    cx.check(same, "C1", || "the results are not of the operands' types".to_owned());
    if cx.is_broken() { None } else { Some(types) }
}
