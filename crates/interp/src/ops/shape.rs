//! Operations that move, repeat, cut and join elements without computing on them.

use warpforge_ir::attr::ElementData;
use warpforge_ir::{Blob, DenseElements, OpKind};
use warpforge_tensor::layout::{from_mlir_dense, from_packed, to_packed};
use warpforge_tensor::{Scalar, Shape, Tensor};

use super::Evaluator;
use super::quantized::{expressed, quantized};
use crate::Value;
use crate::cx::{Cx, missing, one, scalar_i64, storage, to_usizes};
use crate::error::{Result, invalid, unsupported};

pub(super) const OPS: &[(OpKind, Evaluator)] = &[
    (OpKind::BitcastConvert, bitcast_convert),
    (OpKind::Broadcast, broadcast),
    (OpKind::BroadcastInDim, broadcast_in_dim),
    (OpKind::Concatenate, concatenate),
    (OpKind::Constant, constant),
    (OpKind::DynamicBroadcastInDim, dynamic_broadcast_in_dim),
    (OpKind::DynamicIota, dynamic_iota),
    (OpKind::DynamicPad, dynamic_pad),
    (OpKind::DynamicReshape, dynamic_reshape),
    (OpKind::DynamicSlice, dynamic_slice),
    (OpKind::DynamicUpdateSlice, dynamic_update_slice),
    (OpKind::GetDimensionSize, get_dimension_size),
    (OpKind::Iota, iota),
    (OpKind::OptimizationBarrier, optimization_barrier),
    (OpKind::Pad, pad),
    (OpKind::RealDynamicSlice, real_dynamic_slice),
    (OpKind::Reshape, reshape),
    (OpKind::Reverse, reverse),
    (OpKind::SetDimensionSize, set_dimension_size),
    (OpKind::Slice, slice),
    (OpKind::Transpose, transpose),
];

/// The tensor of a constant; a quantized one is stored as its integers.
pub(crate) fn constant_tensor(elements: &DenseElements) -> Result<Tensor> {
    let element = storage(elements.ty().element())?;
    let dims = elements.ty().shape_usize().ok_or_else(|| invalid("a constant without a known shape"))?;
    let shape = Shape::new(dims)?;
    let read = |shape: Shape, bytes: Blob| -> Result<Tensor> {
        Ok(match element.bits() {
            // A module extends the sign of narrow integers into their byte, a host tensor does not.
            2..8 => from_mlir_dense(element, shape, &bytes)?,
            _ => Tensor::from_blob(element, shape, bytes)?,
        })
    };
    match elements.data() {
        ElementData::Splat(bytes) => {
            let one = read(Shape::scalar(), bytes.clone())?;
            Ok(Tensor::splat(element, shape, one.get(0))?)
        }
        ElementData::Raw(bytes) => read(shape, bytes.clone()),
        ElementData::Resource(name) => {
            Err(invalid(format!("the data `{name}` of the constant is not in the file")))
        }
    }
}

pub(super) fn constant(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let elements = cx.op.attr_elements("value").ok_or_else(|| missing("value"))?;
    if let Some(dims) = elements.ty().shape_usize() {
        cx.shape(dims)?;
    }
    one(constant_tensor(elements)?)
}

/// Bits as another type: one element becomes several of a narrower type, lowest bits first, or the other way round.
fn bitcast_convert(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let operand = cx.tensor(0)?;
    let to = cx.result_element(0)?;
    let (from_bits, to_bits) = (operand.element_type().bits() as usize, to.bits() as usize);
    let mut dims = operand.dims().to_vec();
    if from_bits > to_bits {
        dims.push(from_bits / to_bits);
    } else if to_bits > from_bits && dims.pop() != Some(to_bits / from_bits) {
        return Err(invalid(format!("the last dimension is not {}", to_bits / from_bits)));
    }
    let shape = cx.shape(dims)?;
    one(from_packed(to, shape, &to_packed(operand))?)
}

fn broadcast(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let sizes = cx.usizes("broadcast_sizes")?;
    let operand = cx.tensor(0)?;
    let dims: Vec<usize> = (sizes.len()..sizes.len() + operand.dims().len()).collect();
    let shape = cx.shape([sizes.as_slice(), operand.dims()].concat())?;
    one(broadcasted(operand, shape, &dims)?)
}

/// Repeats a tensor: its dimension `i` becomes dimension `dims[i]` of the result, repeated where its size is one.
pub(super) fn broadcasted(operand: &Tensor, shape: Shape, dims: &[usize]) -> Result<Tensor> {
    if dims.len() != operand.shape().rank() {
        return Err(invalid("broadcast_dimensions do not fit the operand"));
    }
    for (&dim, &size) in dims.iter().zip(operand.dims()) {
        if shape.dims().get(dim).is_none_or(|&target| size != 1 && size != target) {
            return Err(invalid(format!("cannot broadcast {} to {shape} along {dims:?}", operand.shape())));
        }
    }
    let strides = operand.shape().strides();
    let steps: Vec<(usize, usize)> = dims
        .iter()
        .zip(strides.iter().zip(operand.dims()))
        .map(|(&dim, (&stride, &size))| (dim, if size == 1 { 0 } else { stride }))
        .collect();
    Ok(operand.gathered(shape, |index| Some(steps.iter().map(|&(dim, stride)| index[dim] * stride).sum()))?)
}

fn broadcast_in_dim(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let dims = cx.usizes("broadcast_dimensions")?;
    let shape = cx.result_shape(0)?;
    one(broadcasted(cx.tensor(0)?, shape, &dims)?)
}

fn dynamic_broadcast_in_dim(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let dims = cx.usizes("broadcast_dimensions")?;
    let shape = cx.shape_from(&cx.operand_i64s(1)?)?;
    one(broadcasted(cx.tensor(0)?, shape, &dims)?)
}

fn concatenate(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = cx.tensors(0..cx.operands.len())?;
    let rank = inputs.first().map_or(0, |input| input.shape().rank());
    let axis = cx.axis("dimension", rank)?;
    let joined = concatenated(&inputs, axis)?;
    cx.shape(joined.dims().to_vec())?;
    one(joined)
}

/// Joins tensors along a dimension.
pub(super) fn concatenated(inputs: &[Tensor], axis: usize) -> Result<Tensor> {
    let first = inputs.first().ok_or_else(|| invalid("nothing to join"))?;
    let mut dims = first.dims().to_vec();
    for input in inputs {
        let same = |skip: &Tensor| {
            let others = skip.dims().iter().enumerate().filter(|(dim, _)| *dim != axis);
            others.map(|(_, &size)| size).collect::<Vec<_>>()
        };
        if same(input) != same(first) || input.element_type() != first.element_type() {
            return Err(invalid(format!("cannot join {} and {}", first.shape(), input.shape())));
        }
    }
    dims[axis] = inputs.iter().map(|input| input.dims()[axis]).sum();
    let inner: usize = dims[axis + 1..].iter().product::<usize>() * first.element_type().byte_width();
    let outer: usize = dims[..axis].iter().product();
    let mut bytes = Vec::new();
    for row in 0..outer {
        for input in inputs {
            let length = input.dims()[axis] * inner;
            bytes.extend_from_slice(&input.bytes()[row * length..][..length]);
        }
    }
    Ok(Tensor::from_bytes(first.element_type(), Shape::new(dims)?, &bytes)?)
}

fn counted(cx: &Cx<'_, '_, '_>, shape: &Shape) -> Result<Tensor> {
    let axis = cx.axis("iota_dimension", shape.rank())?;
    let ty = cx.result_type(0)?;
    let mut indices = shape.indices();
    let values = std::iter::from_fn(|| indices.advance().map(|index| Scalar::Int(index[axis] as i128)));
    let element = expressed(ty)?;
    let values = values.map(|value| crate::scalar::convert(value, element));
    quantized(&Tensor::from_scalars(element, shape.clone(), values)?, ty)
}

fn iota(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    one(counted(cx, &cx.result_shape(0)?)?)
}

fn dynamic_iota(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    one(counted(cx, &cx.shape_from(&cx.operand_i64s(0)?)?)?)
}

/// Adds elements at both ends and between elements; a negative amount at an end takes away.
pub(super) fn padded(
    cx: &Cx<'_, '_, '_>,
    operand: &Tensor,
    value: Scalar,
    (low, high, interior): (&[i64], &[i64], &[i64]),
) -> Result<Tensor> {
    let rank = operand.shape().rank();
    if low.len() != rank
        || high.len() != rank
        || interior.len() != rank
        || interior.iter().any(|&gap| gap < 0)
    {
        return Err(invalid("the padding does not fit the operand"));
    }
    let mut dims = Vec::new();
    for axis in 0..rank {
        let size = operand.dims()[axis] as i64;
        let inner = interior[axis].checked_mul((size - 1).max(0));
        let total = inner
            .and_then(|inner| inner.checked_add(size))
            .and_then(|sum| sum.checked_add(low[axis]))
            .and_then(|sum| sum.checked_add(high[axis]));
        dims.push(total.ok_or_else(|| invalid("the padded size overflows"))?);
    }
    let mut result = Tensor::splat(operand.element_type(), cx.shape_from(&dims)?, value)?;
    let mut indices = operand.shape().indices();
    let mut source = 0;
    let mut target = vec![0usize; rank];
    while let Some(index) = indices.advance() {
        let inside = (0..rank).all(|axis| {
            let step = interior[axis].saturating_add(1);
            let at = low[axis].saturating_add(step.saturating_mul(index[axis] as i64));
            target[axis] = usize::try_from(at).unwrap_or(usize::MAX);
            at >= 0
        });
        if let Some(position) = result.shape().position(&target).filter(|_| inside) {
            result.set(position, operand.get(source));
        }
        source += 1;
    }
    Ok(result)
}

fn pad(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let value = first_element(cx.tensor(1)?)?;
    let amounts = (cx.i64s("edge_padding_low")?, cx.i64s("edge_padding_high")?, cx.i64s("interior_padding")?);
    one(padded(cx, cx.tensor(0)?, value, amounts)?)
}

fn dynamic_pad(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let value = first_element(cx.tensor(1)?)?;
    let (low, high, interior) = (cx.operand_i64s(2)?, cx.operand_i64s(3)?, cx.operand_i64s(4)?);
    one(padded(cx, cx.tensor(0)?, value, (&low, &high, &interior))?)
}

/// The element of a tensor that has one.
pub(super) fn first_element(tensor: &Tensor) -> Result<Scalar> {
    if tensor.is_empty() { Err(invalid("a scalar is empty")) } else { Ok(tensor.get(0)) }
}

fn reshape(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let shape = cx.result_shape(0)?;
    one(cx.tensor(0)?.reshaped(shape)?)
}

fn dynamic_reshape(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let shape = cx.shape_from(&cx.operand_i64s(1)?)?;
    one(cx.tensor(0)?.reshaped(shape)?)
}

/// The start of a slice, moved so that all of it lies inside.
fn clamped_starts(cx: &Cx<'_, '_, '_>, first: usize, dims: &[usize], sizes: &[usize]) -> Result<Vec<usize>> {
    if sizes.len() != dims.len() || sizes.iter().zip(dims).any(|(size, dim)| size > dim) {
        return Err(invalid(format!("a slice of {sizes:?} does not fit into {dims:?}")));
    }
    let start = |axis: usize| {
        let wanted = scalar_i64(first_element(cx.tensor(first + axis)?)?)?;
        Ok(wanted.clamp(0, (dims[axis] - sizes[axis]) as i64) as usize)
    };
    (0..dims.len()).map(start).collect()
}

fn dynamic_slice(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let sizes = cx.usizes("slice_sizes")?;
    let operand = cx.tensor(0)?;
    let starts = clamped_starts(cx, 1, operand.dims(), &sizes)?;
    let shape = cx.shape(sizes)?;
    one(sliced(operand, shape, &starts, &vec![1; starts.len()])?)
}

fn dynamic_update_slice(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (operand, update) = (cx.tensor(0)?, cx.tensor(1)?);
    let starts = clamped_starts(cx, 2, operand.dims(), update.dims())?;
    let mut result = operand.clone();
    let strides = operand.shape().strides();
    let mut indices = update.shape().indices();
    let mut source = 0;
    while let Some(index) = indices.advance() {
        let target = (0..index.len()).map(|axis| (index[axis] + starts[axis]) * strides[axis]).sum();
        result.set(target, update.get(source));
        source += 1;
    }
    one(result)
}

/// Elements from `starts` on, `steps` apart; all inside the operand.
pub(super) fn sliced(operand: &Tensor, shape: Shape, starts: &[usize], steps: &[usize]) -> Result<Tensor> {
    let strides = operand.shape().strides();
    let source = |index: &[usize]| {
        Some((0..index.len()).map(|axis| (starts[axis] + index[axis] * steps[axis]) * strides[axis]).sum())
    };
    Ok(operand.gathered(shape, source)?)
}

fn slice_of(cx: &Cx<'_, '_, '_>, starts: &[i64], limits: &[i64], strides: &[i64]) -> Result<Vec<Value>> {
    let operand = cx.tensor(0)?;
    let (starts, limits, strides) = (to_usizes(starts)?, to_usizes(limits)?, to_usizes(strides)?);
    let rank = operand.shape().rank();
    let fits = starts.len() == rank && limits.len() == rank && strides.len() == rank;
    let inside = |axis: usize| {
        limits[axis] <= operand.dims()[axis] && starts[axis] <= limits[axis] && strides[axis] > 0
    };
    if !fits || !(0..rank).all(inside) {
        return Err(invalid("the slice does not lie inside the operand"));
    }
    let dims = (0..rank).map(|axis| (limits[axis] - starts[axis]).div_ceil(strides[axis])).collect();
    one(sliced(operand, cx.shape(dims)?, &starts, &strides)?)
}

fn slice(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    slice_of(cx, cx.i64s("start_indices")?, cx.i64s("limit_indices")?, cx.i64s("strides")?)
}

fn real_dynamic_slice(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    slice_of(cx, &cx.operand_i64s(1)?, &cx.operand_i64s(2)?, &cx.operand_i64s(3)?)
}

fn reverse(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let reversed = cx.usizes("dimensions")?;
    let operand = cx.tensor(0)?;
    let (dims, strides) = (operand.dims(), operand.shape().strides());
    let source = |index: &[usize]| {
        let at =
            |axis: usize| if reversed.contains(&axis) { dims[axis] - 1 - index[axis] } else { index[axis] };
        Some((0..index.len()).map(|axis| at(axis) * strides[axis]).sum())
    };
    one(operand.gathered(operand.shape().clone(), source)?)
}

fn transpose(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let permutation = cx.usizes("permutation")?;
    one(transposed(cx.tensor(0)?, &permutation)?)
}

/// Dimension `i` of the result is dimension `permutation[i]` of the operand.
pub(super) fn transposed(operand: &Tensor, permutation: &[usize]) -> Result<Tensor> {
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..operand.shape().rank()) {
        return Err(invalid(format!("{permutation:?} is no permutation of the operand's dimensions")));
    }
    let strides = operand.shape().strides();
    let shape = Shape::new(permutation.iter().map(|&axis| operand.dims()[axis]).collect::<Vec<_>>())?;
    let steps: Vec<usize> = permutation.iter().map(|&axis| strides[axis]).collect();
    Ok(operand.gathered(shape, |index| Some(index.iter().zip(&steps).map(|(at, step)| at * step).sum()))?)
}

fn get_dimension_size(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let operand = cx.tensor(0)?;
    let axis = cx.axis("dimension", operand.shape().rank())?;
    let size = Scalar::Int(operand.dims()[axis] as i128);
    one(Tensor::scalar(cx.result_element(0)?, size)?)
}

fn set_dimension_size(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let operand = cx.tensor(0)?;
    let axis = cx.axis("dimension", operand.shape().rank())?;
    let size = usize::try_from(scalar_i64(first_element(cx.tensor(1)?)?)?).ok();
    let size = size
        .filter(|&size| size <= operand.dims()[axis])
        .ok_or_else(|| unsupported("a size outside the dimension's bound"))?;
    let mut dims = operand.dims().to_vec();
    dims[axis] = size;
    let (starts, steps) = (vec![0; dims.len()], vec![1; dims.len()]);
    one(sliced(operand, cx.shape(dims)?, &starts, &steps)?)
}

fn optimization_barrier(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    Ok(std::mem::take(&mut cx.operands))
}
