//! Sums of products over paired dimensions.

use warpforge_ir::Attribute;
use warpforge_ir::attr::DotDims;

use super::super::prelude::*;
use crate::lower::value::value_type;

/// Which dimensions of two tensors belong together.
pub(in super::super) struct Pairing<'a> {
    /// Dimensions that run along, of both.
    pub(in super::super) batch: (&'a [usize], &'a [usize]),
    /// Dimensions that are summed, of both.
    pub(in super::super) sum: (&'a [usize], &'a [usize]),
}

impl<'a> Pairing<'a> {
    /// No batch.
    pub(in super::super) fn summing(a: &'a [usize], b: &'a [usize]) -> Self {
        Self { batch: (&[], &[]), sum: (a, b) }
    }
}

/// The sums of products: batch dimensions first, then what is left of each. Narrow floats are summed in `f32`, which is
/// what comes back: PyTorch rounds once, after a bias was added.
pub(in super::super) fn contract(
    cx: &mut Cx<'_>,
    a: &Tensor,
    b: &Tensor,
    pairing: &Pairing<'_>,
) -> Lowered<Tensor> {
    // Truth values have no sum of products in StableHLO.
    if a.dtype == ElementType::Bool {
        return refuse("a product of truth values");
    }
    contract_as(cx, a, b, pairing, opmath(a.dtype))
}

/// As [`contract`], with sums of an element type.
pub(in super::super) fn contract_as(
    cx: &mut Cx<'_>,
    a: &Tensor,
    b: &Tensor,
    pairing: &Pairing<'_>,
    dtype: ElementType,
) -> Lowered<Tensor> {
    let Pairing { batch, sum } = pairing;
    if a.dtype != b.dtype {
        return refuse(format!("a product of {} and {}", a.dtype, b.dtype));
    }
    for (&left, &right) in batch.0.iter().zip(batch.1).chain(sum.0.iter().zip(sum.1)) {
        if let (Some(left), Some(right)) = (a.dim(left).as_int(), b.dim(right).as_int())
            && left != right
        {
            return refuse(format!("sizes {left} and {right} of a product do not match"));
        }
    }
    let free = |x: &Tensor, batch: &[usize], sum: &[usize]| -> Vec<Size> {
        (0..x.rank())
            .filter(|axis| !batch.contains(axis) && !sum.contains(axis))
            .map(|axis| x.dim(axis))
            .collect()
    };
    let mut dims: Vec<Size> = batch.0.iter().map(|&axis| a.dim(axis)).collect();
    dims.extend(free(a, batch.0, sum.0));
    dims.extend(free(b, batch.1, sum.1));
    let list = |axes: &[usize]| axes.iter().map(|&axis| axis as i64).collect();
    let numbers = DotDims {
        lhs_batching: list(batch.0),
        rhs_batching: list(batch.1),
        lhs_contracting: list(sum.0),
        rhs_contracting: list(sum.1),
    };
    let attrs = [("dot_dimension_numbers", Attribute::Dot(numbers.into()))];
    let id = cx.b.op_as(OpKind::DotGeneral, &[a.id, b.id], attrs, value_type(dtype, &dims))?;
    Ok(cx.tensor(id, dtype, dims))
}
