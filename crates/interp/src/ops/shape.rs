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

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::BitcastConvert => bitcast_convert,
        OpKind::Broadcast => broadcast,
        OpKind::BroadcastInDim => broadcast_in_dim,
        OpKind::Concatenate => concatenate,
        OpKind::Constant => constant,
        OpKind::DynamicBroadcastInDim => dynamic_broadcast_in_dim,
        OpKind::DynamicIota => dynamic_iota,
        OpKind::DynamicPad => dynamic_pad,
        OpKind::DynamicReshape => dynamic_reshape,
        OpKind::DynamicSlice => dynamic_slice,
        OpKind::DynamicUpdateSlice => dynamic_update_slice,
        OpKind::GetDimensionSize => get_dimension_size,
        OpKind::Iota => iota,
        OpKind::OptimizationBarrier => optimization_barrier,
        OpKind::Pad => pad,
        OpKind::RealDynamicSlice => real_dynamic_slice,
        OpKind::Reshape => reshape,
        OpKind::Reverse => reverse,
        OpKind::SetDimensionSize => set_dimension_size,
        OpKind::Slice => slice,
        OpKind::Transpose => transpose,
        _ => return None,
    })
}

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
    // A dimension that is repeated does not move in the operand.
    let mut steps = vec![0; shape.rank()];
    for ((&dim, &size), stride) in dims.iter().zip(operand.dims()).zip(operand.shape().strides()) {
        if size != 1 {
            steps[dim] += stride as isize;
        }
    }
    Ok(operand.strided(shape, 0, &steps)?)
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
    let mut result = Tensor::zeros(first.element_type(), Shape::new(dims)?)?;
    let steps = steps_of(result.shape());
    let mut start = 0;
    for input in inputs {
        // The start of an empty tensor may lie behind the end.
        if !input.is_empty() {
            result.set_strided(start, &steps, input)?;
        }
        start += input.dims()[axis] * steps[axis] as usize;
    }
    Ok(result)
}

/// How far apart neighbours along each dimension are.
pub(super) fn steps_of(shape: &Shape) -> Vec<isize> {
    shape.strides().into_iter().map(|step| step as isize).collect()
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
    // Along each dimension, the elements from the first to the last that stay inside.
    let (mut firsts, mut counts, mut start, mut steps) = (Vec::new(), Vec::new(), 0, Vec::new());
    for (axis, stride) in result.shape().strides().into_iter().enumerate() {
        let (size, step) = (operand.dims()[axis] as i64, interior[axis].saturating_add(1));
        let first = (-low[axis].min(0) as u64).div_ceil(step as u64) as i64;
        let reach = (dims[axis] - 1).saturating_sub(low[axis]);
        let last = if reach < 0 { -1 } else { (reach / step).min(size - 1) };
        if first > last {
            return Ok(result);
        }
        firsts.push(first as usize);
        counts.push((last - first + 1) as usize);
        start += (low[axis] + first * step) as usize * stride;
        // One element has no neighbour, however far away that would be.
        steps.push(if first == last { 0 } else { step as isize * stride as isize });
    }
    let kept = if counts == operand.dims() {
        operand.clone()
    } else {
        sliced(operand, Shape::new(counts)?, &firsts, &vec![1; rank])?
    };
    result.set_strided(start, &steps, &kept)?;
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
    let (operand, update) = (cx.tensor(0)?, cx.tensor(1)?.clone());
    let starts = clamped_starts(cx, 2, operand.dims(), update.dims())?;
    let steps = steps_of(operand.shape());
    let start = starts.iter().zip(&steps).map(|(start, &step)| start * step as usize).sum();
    let mut result = cx.take_tensor(0)?;
    result.set_strided(start, &steps, &update)?;
    one(result)
}

/// Elements from `starts` on, `steps` apart; all inside the operand.
pub(super) fn sliced(operand: &Tensor, shape: Shape, starts: &[usize], steps: &[usize]) -> Result<Tensor> {
    let strides = operand.shape().strides();
    let start = starts.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
    // A step beyond the end is not taken; it must not overflow either.
    let far = steps.iter().zip(shape.dims()).zip(&strides);
    let steps: Vec<isize> =
        far.map(|((&step, &size), &stride)| if size < 2 { 0 } else { (step * stride) as isize }).collect();
    if shape.num_elements() == 0 {
        return Ok(Tensor::zeros(operand.element_type(), shape)?);
    }
    Ok(operand.strided(shape, start, &steps)?)
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
    let (mut start, mut steps) = (0, steps_of(operand.shape()));
    if operand.is_empty() {
        return one(operand.clone());
    }
    for axis in reversed {
        let (Some(step), Some(&size)) = (steps.get_mut(axis), operand.dims().get(axis)) else {
            return Err(invalid(format!("there is no dimension {axis} to reverse")));
        };
        start += (size - 1) * *step as usize;
        *step = -*step;
    }
    one(operand.strided(operand.shape().clone(), start, &steps)?)
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
    let steps: Vec<isize> = permutation.iter().map(|&axis| strides[axis] as isize).collect();
    Ok(operand.strided(shape, 0, &steps)?)
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
