//! The CHLO dialect: broadcasting arithmetic and functions beyond StableHLO.

mod ragged_dot;
mod scan;

use warpforge_ir::attr::Attribute;
use warpforge_ir::{OpKind, TensorType};
use warpforge_tensor::{Scalar, Shape, Tensor};

use super::Evaluator;
use super::elementwise::{apply, elementwise};
use super::reduction::merge_sort;
use super::shape::{broadcasted, constant, sliced};
use crate::Value;
use crate::cx::{Cx, missing, one, to_usizes};
use crate::error::{Result, invalid};
use crate::scalar::{compare, convert};

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::ChloAcos
        | OpKind::ChloAcosh
        | OpKind::ChloAsin
        | OpKind::ChloAsinh
        | OpKind::ChloAsinAcosKernel
        | OpKind::ChloAtan
        | OpKind::ChloAtanh
        | OpKind::ChloBesselI1e
        | OpKind::ChloConj
        | OpKind::ChloCosh
        | OpKind::ChloDigamma
        | OpKind::ChloErf
        | OpKind::ChloErfInv
        | OpKind::ChloErfc
        | OpKind::ChloIsInf
        | OpKind::ChloIsNegInf
        | OpKind::ChloIsPosInf
        | OpKind::ChloLgamma
        | OpKind::ChloMulhi
        | OpKind::ChloNextAfter
        | OpKind::ChloPolygamma
        | OpKind::ChloSinh
        | OpKind::ChloSquare
        | OpKind::ChloTan
        | OpKind::ChloZeta => elementwise,
        OpKind::ChloBroadcastAdd
        | OpKind::ChloBroadcastAnd
        | OpKind::ChloBroadcastAtan2
        | OpKind::ChloBroadcastCompare
        | OpKind::ChloBroadcastComplex
        | OpKind::ChloBroadcastDivide
        | OpKind::ChloBroadcastMaximum
        | OpKind::ChloBroadcastMinimum
        | OpKind::ChloBroadcastMultiply
        | OpKind::ChloBroadcastNextAfter
        | OpKind::ChloBroadcastOr
        | OpKind::ChloBroadcastPolygamma
        | OpKind::ChloBroadcastPower
        | OpKind::ChloBroadcastRemainder
        | OpKind::ChloBroadcastSelect
        | OpKind::ChloBroadcastShiftLeft
        | OpKind::ChloBroadcastShiftRightArithmetic
        | OpKind::ChloBroadcastShiftRightLogical
        | OpKind::ChloBroadcastSubtract
        | OpKind::ChloBroadcastXor
        | OpKind::ChloBroadcastZeta => broadcast,
        OpKind::ChloConstant => constant,
        OpKind::ChloConstantLike => constant_like,
        OpKind::ChloRaggedDot => ragged_dot::ragged_dot,
        OpKind::ChloScan => scan::scan,
        OpKind::ChloTopK => top_k,
        _ => return None,
    })
}

/// The size that dimensions broadcast to: the one that is not one.
fn joint_size(a: usize, b: usize) -> Result<usize> {
    match (a, b) {
        (a, 1) => Ok(a),
        (1, b) => Ok(b),
        (a, b) if a == b => Ok(a),
        _ => Err(invalid(format!("sizes {a} and {b} do not broadcast"))),
    }
}

/// An element-wise operation on operands that are broadcast to one shape first.
fn broadcast(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.tensors(0..cx.operands.len())?;
    let rank = inputs.iter().map(|input| input.shape().rank()).max().unwrap_or(0);
    // `broadcast_dimensions` places the operand of lower rank; without it, the last dimensions meet.
    let given = cx.op.attr_i64s("broadcast_dimensions").map(to_usizes).transpose()?;
    let place = |input: &Tensor| -> Vec<usize> {
        let own = input.shape().rank();
        match &given {
            Some(dims) if own < rank && dims.len() == own => dims.clone(),
            _ => (rank - own..rank).collect(),
        }
    };
    let mut dims = vec![1; rank];
    for input in &inputs {
        for (axis, &size) in place(input).into_iter().zip(input.dims()) {
            let joint = dims.get_mut(axis).ok_or_else(|| invalid("broadcast_dimensions are out of range"))?;
            *joint = joint_size(*joint, size)?;
        }
    }
    let shape = cx.shape(dims)?;
    let expand = |input: &Tensor| broadcasted(input, shape.clone(), &place(input));
    let expanded = inputs.iter().map(expand).collect::<Result<Vec<_>>>()?;
    let types =
        (0..inputs.len()).map(|index| cx.operand_type(index)).collect::<Result<Vec<&TensorType>>>()?;
    one(apply(cx, &expanded, &types)?)
}

fn constant_like(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let value = match cx.op.attr("value") {
        Some(Attribute::Int(value, _)) => Scalar::Int(*value),
        Some(Attribute::Float(value, _)) => Scalar::Float(*value),
        Some(Attribute::Bool(value)) => Scalar::Bool(*value),
        _ => return Err(missing("value")),
    };
    let element = cx.result_element(0)?;
    one(Tensor::splat(element, cx.tensor(0)?.shape().clone(), convert(value, element))?)
}

/// The largest elements along the last dimension in order, equal ones by position, and where they are.
fn top_k(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    use warpforge_ir::attr::ComparisonDirection::{Gt, Lt};
    let operand = cx.tensor(0)?;
    let direction = if cx.op.attr_bool("largest").unwrap_or(true) { Gt } else { Lt };
    let Some((&length, outer)) = operand.dims().split_last() else {
        return Err(invalid("a scalar has no elements"));
    };
    let count = usize::try_from(cx.i64("k")?).ok().filter(|&k| k <= length);
    let count = count.ok_or_else(|| invalid("k is not within the last dimension"))?;
    let (mut values, mut positions) = (Vec::new(), Vec::new());
    for row in 0..outer.iter().product::<usize>() {
        let mut order: Vec<usize> = (0..length).collect();
        let at = |position: usize| operand.get(row * length + position);
        merge_sort(&mut order, &mut |a, b| Ok(compare(direction, true, at(a), at(b))))?;
        values.extend(order.iter().take(count).map(|&position| at(position)));
        positions.extend(order.iter().take(count).map(|&position| Scalar::Int(position as i128)));
    }
    let shape = cx.shape([outer, &[count]].concat())?;
    let values = Tensor::from_scalars(operand.element_type(), shape.clone(), values)?;
    Ok(vec![values.into(), Tensor::from_scalars(cx.result_element(1)?, shape, positions)?.into()])
}

/// Elements `start..end` along a dimension.
fn range(tensor: &Tensor, axis: usize, start: usize, end: usize) -> Result<Tensor> {
    if tensor.dims().get(axis).is_none_or(|&size| start > end || end > size) {
        return Err(invalid(format!("{start}..{end} is no part of dimension {axis} of {}", tensor.shape())));
    }
    let mut dims = tensor.dims().to_vec();
    let mut starts = vec![0; dims.len()];
    dims[axis] = end - start;
    starts[axis] = start;
    let steps = vec![1; dims.len()];
    sliced(tensor, Shape::new(dims)?, &starts, &steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_broadcast_from_one() {
        assert_eq!(joint_size(3, 1).ok(), Some(3));
        assert_eq!(joint_size(1, 0).ok(), Some(0));
        assert!(joint_size(2, 3).is_err());
    }
}
