//! The CHLO dialect: broadcasting arithmetic and functions beyond StableHLO.

use warpforge_ir::attr::{Attribute, DotDims};
use warpforge_ir::{OpKind, TensorType};
use warpforge_tensor::{Scalar, Shape, Tensor};

use super::Evaluator;
use super::contraction::dot_of;
use super::elementwise::{apply, elementwise};
use super::reduction::merge_sort;
use super::shape::{broadcasted, concatenated, constant, sliced};
use crate::Value;
use crate::cx::{Cx, missing, one, to_usizes};
use crate::error::{Result, invalid, unsupported};
use crate::scalar::{compare, convert};

pub(super) const OPS: &[(OpKind, Evaluator)] = &[
    (OpKind::ChloAcos, elementwise),
    (OpKind::ChloAcosh, elementwise),
    (OpKind::ChloAsin, elementwise),
    (OpKind::ChloAsinh, elementwise),
    (OpKind::ChloAtan, elementwise),
    (OpKind::ChloAtanh, elementwise),
    (OpKind::ChloBesselI1e, elementwise),
    (OpKind::ChloBroadcastAdd, broadcast),
    (OpKind::ChloBroadcastAnd, broadcast),
    (OpKind::ChloBroadcastAtan2, broadcast),
    (OpKind::ChloBroadcastCompare, broadcast),
    (OpKind::ChloBroadcastComplex, broadcast),
    (OpKind::ChloBroadcastDivide, broadcast),
    (OpKind::ChloBroadcastMaximum, broadcast),
    (OpKind::ChloBroadcastMinimum, broadcast),
    (OpKind::ChloBroadcastMultiply, broadcast),
    (OpKind::ChloBroadcastNextAfter, broadcast),
    (OpKind::ChloBroadcastOr, broadcast),
    (OpKind::ChloBroadcastPolygamma, broadcast),
    (OpKind::ChloBroadcastPower, broadcast),
    (OpKind::ChloBroadcastRemainder, broadcast),
    (OpKind::ChloBroadcastSelect, broadcast),
    (OpKind::ChloBroadcastShiftLeft, broadcast),
    (OpKind::ChloBroadcastShiftRightArithmetic, broadcast),
    (OpKind::ChloBroadcastShiftRightLogical, broadcast),
    (OpKind::ChloBroadcastSubtract, broadcast),
    (OpKind::ChloBroadcastXor, broadcast),
    (OpKind::ChloBroadcastZeta, broadcast),
    (OpKind::ChloConj, elementwise),
    (OpKind::ChloConstant, constant),
    (OpKind::ChloConstantLike, constant_like),
    (OpKind::ChloCosh, elementwise),
    (OpKind::ChloDigamma, elementwise),
    (OpKind::ChloErf, elementwise),
    (OpKind::ChloErfInv, elementwise),
    (OpKind::ChloErfc, elementwise),
    (OpKind::ChloIsInf, elementwise),
    (OpKind::ChloIsNegInf, elementwise),
    (OpKind::ChloIsPosInf, elementwise),
    (OpKind::ChloLgamma, elementwise),
    (OpKind::ChloMulhi, elementwise),
    (OpKind::ChloNextAfter, elementwise),
    (OpKind::ChloPolygamma, elementwise),
    (OpKind::ChloRaggedDot, ragged_dot),
    (OpKind::ChloScan, scan),
    (OpKind::ChloSinh, elementwise),
    (OpKind::ChloSquare, elementwise),
    (OpKind::ChloTan, elementwise),
    (OpKind::ChloTopK, top_k),
    (OpKind::ChloZeta, elementwise),
];

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

/// The tensor without a dimension of size one.
fn squeezed(tensor: &Tensor, axis: usize) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    dims.remove(axis);
    Ok(tensor.reshaped(Shape::new(dims)?)?)
}

/// The tensor with a new dimension of size one.
fn unsqueezed(tensor: &Tensor, axis: usize) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    dims.insert(axis.min(dims.len()), 1);
    Ok(tensor.reshaped(Shape::new(dims)?)?)
}

/// The dimension of the right operand that meets entry `at` of the left one's list.
fn other_side(list: &[i64], at: usize) -> Result<usize> {
    let found = list.get(at).and_then(|&dim| usize::try_from(dim).ok());
    found.ok_or_else(|| invalid("the dimension numbers of the operands do not match"))
}

/// A dot of each group of a ragged dimension. Three modes: the dimension is free (each group has a matrix of its own on
/// the right), contracted (each group gives a matrix), or a batching one (the groups only say how much of it is used).
fn ragged_dot(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (lhs, rhs) = (cx.tensor(0)?.clone(), cx.tensor(1)?.clone());
    let Some(Attribute::RaggedDot(dims)) = cx.op.attr("ragged_dot_dimension_numbers") else {
        return Err(missing("ragged_dot_dimension_numbers"));
    };
    let &[ragged] = dims.lhs_ragged.as_slice() else { return Err(invalid("one ragged dimension is needed")) };
    if cx.tensor(2)?.shape().rank() != 1 {
        return Err(unsupported("group sizes that differ between batches"));
    }
    let axis = usize::try_from(ragged).ok().filter(|&axis| axis < lhs.shape().rank());
    let axis = axis.ok_or_else(|| invalid("the ragged dimension is out of range"))?;
    let element = cx.result_element(0)?;
    let mut start = 0;
    let mut parts = Vec::new();
    let position = |list: &[i64]| list.iter().position(|&dim| dim == ragged);
    let size = lhs.dims()[axis];
    let groups = cx.operand_i64s(2)?;
    for (group, &length) in groups.iter().enumerate() {
        let end = start + usize::try_from(length).unwrap_or(0).min(size - start);
        let left = range(&lhs, axis, start, end)?;
        let part = if let Some(at) = position(&dims.dot.lhs_contracting) {
            let other = other_side(&dims.dot.rhs_contracting, at)?;
            unsqueezed(&dot_of(cx, &left, &range(&rhs, other, start, end)?, &dims.dot, element)?, 0)?
        } else if let Some(at) = position(&dims.dot.lhs_batching) {
            let other = other_side(&dims.dot.rhs_batching, at)?;
            dot_of(cx, &left, &range(&rhs, other, start, end)?, &dims.dot, element)?
        } else {
            let &[own] = dims.rhs_group.as_slice() else {
                return Err(invalid("one group dimension is needed"));
            };
            let own_axis = usize::try_from(own).ok().filter(|&axis| axis < rhs.shape().rank());
            let own_axis = own_axis.ok_or_else(|| invalid("the group dimension is out of range"))?;
            let right = squeezed(&range(&rhs, own_axis, group, group + 1)?, own_axis)?;
            // The dimensions behind the group's move up when it is gone.
            let moved =
                |list: &[i64]| list.iter().map(|&dim| if dim > own { dim - 1 } else { dim }).collect();
            let inner = DotDims {
                rhs_batching: moved(&dims.dot.rhs_batching),
                rhs_contracting: moved(&dims.dot.rhs_contracting),
                ..dims.dot.clone()
            };
            dot_of(cx, &left, &right, &inner, element)?
        };
        parts.push(part);
        start = end;
    }
    let along = if let Some(at) = position(&dims.dot.lhs_batching) {
        at
    } else if position(&dims.dot.lhs_contracting).is_some() {
        0
    } else {
        let behind =
            |dim: &i64| !dims.dot.lhs_batching.contains(dim) && !dims.dot.lhs_contracting.contains(dim);
        dims.dot.lhs_batching.len() + (0..ragged).filter(behind).count()
    };
    let mut joined = concatenated(&parts, along)?;
    // What lies behind the last group is zero.
    if position(&dims.dot.lhs_contracting).is_none() && start < size {
        let mut rest = joined.dims().to_vec();
        rest[along] = size - start;
        joined = concatenated(&[joined, Tensor::zeros(element, Shape::new(rest)?)?], along)?;
    }
    one(joined)
}

/// Runs the body for each index along a dimension: slices of the inputs and the carried values in, slices of the outputs
/// and the next carried values out.
fn scan(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (inputs, mut carried) = (cx.group("inputs")?, cx.group("inits")?);
    let sizes = cx.op.result_group_sizes().ok_or_else(|| invalid("the results do not fit the groups"))?;
    let outputs = sizes.first().copied().unwrap_or(0);
    let rank = inputs
        .first()
        .map_or_else(|| cx.result_type(0).map_or(0, TensorType::rank), |input| input.shape().rank());
    let axis = cx.axis("dimension", rank)?;
    let length = match (inputs.first(), cx.op.attr_i64("scan_dim_size")) {
        (Some(input), _) => input.dims()[axis],
        (None, Some(size)) => usize::try_from(size).map_err(|_| invalid("scan_dim_size is negative"))?,
        (None, None) => return Err(missing("scan_dim_size")),
    };
    let block = cx.op.region_block(0).ok_or_else(|| invalid("the body is empty"))?;
    let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); outputs];
    let reverse = cx.bool("is_reverse")?;
    for step in 0..length {
        let at = if reverse { length - 1 - step } else { step };
        let mut arguments = Vec::new();
        for input in &inputs {
            arguments.push(Value::Tensor(squeezed(&range(input, axis, at, at + 1)?, axis)?));
        }
        arguments.extend(carried.drain(..).map(Value::Tensor));
        let results = cx.machine.block(block, arguments)?;
        for (index, result) in results.iter().enumerate() {
            let tensor = result.as_tensor()?.clone();
            match collected.get_mut(index) {
                Some(list) => list.push(unsqueezed(&tensor, axis)?),
                None => carried.push(tensor),
            }
        }
    }
    let mut results = Vec::new();
    for (index, mut list) in collected.into_iter().enumerate() {
        if reverse {
            list.reverse();
        }
        let joined = match list.is_empty() {
            true => Tensor::zeros(cx.result_element(index)?, cx.result_shape(index)?)?,
            false => concatenated(&list, axis)?,
        };
        results.push(Value::Tensor(joined));
    }
    results.extend(carried.into_iter().map(Value::Tensor));
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpforge_tensor::ElementType;

    #[test]
    fn sizes_broadcast_from_one() {
        assert_eq!(joint_size(3, 1).ok(), Some(3));
        assert_eq!(joint_size(1, 0).ok(), Some(0));
        assert!(joint_size(2, 3).is_err());
    }

    #[test]
    fn ranges_keep_the_rank_until_squeezed() {
        let tensor = Tensor::from_slice(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).expect("fits");
        let column = range(&tensor, 1, 1, 2).expect("inside");
        assert_eq!((column.dims(), column.element_type()), (&[2, 1][..], ElementType::I32));
        assert_eq!(squeezed(&column, 1).expect("size one").as_slice::<i32>().expect("i32"), [2, 5]);
        assert_eq!(unsqueezed(&column, 0).expect("fits").dims(), [1, 2, 1]);
    }
}
