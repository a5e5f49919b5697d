//! AdamW whose moments are codes of 8 bits: the rule of `bitsandbytes` on CPUs. Its CUDA kernels round otherwise.

use warpforge_ir::attr::{ComparisonDirection, DenseElements, GatherDims};
use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::{ElementType, OpKind, TensorType, Type, ValueId};
use warpforge_tensor::quantize::{BLOCK, CELLS, DynamicMap};

use crate::emit::Emit;

/// Smaller parameters keep their moments in f32.
pub(crate) const LEAST: usize = 4096;

/// Whether a parameter's moments are codes.
pub(crate) fn is_quantized(ty: &TensorType) -> bool {
    ty.shape_usize().is_some_and(|dims| dims.iter().product::<usize>() >= LEAST)
}

/// What is kept for a parameter: codes and scales of both moments, or the moments.
pub(crate) fn state(ty: &TensorType) -> Vec<(&'static str, Type)> {
    let dims: Vec<u64> = ty.shape_usize().unwrap_or_default().iter().map(|&dim| dim as u64).collect();
    if !is_quantized(ty) {
        let whole = Type::tensor(&dims, ElementType::F32);
        return vec![("state1", whole.clone()), ("state2", whole)];
    }
    let blocks = dims.iter().product::<u64>().div_ceil(BLOCK as u64);
    let (codes, scales) = (Type::tensor(&dims, ElementType::U8), Type::tensor(&[blocks], ElementType::F32));
    vec![("state1", codes.clone()), ("absmax1", scales.clone()), ("state2", codes), ("absmax2", scales)]
}

/// A map as constants of the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    values: ValueId,
    table: ValueId,
}

/// Both maps, emitted once for all parameters.
pub(crate) fn maps(b: &mut Builder<'_>) -> Result<[Map; 2], BuildError> {
    let mut emit = |map: &DynamicMap| -> Result<Map, BuildError> {
        let bytes: Vec<u8> = map.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        let values = TensorType::fixed(&[map.values().len() as u64], ElementType::F32);
        let table = TensorType::fixed(&[CELLS as u64], ElementType::U8);
        Ok(Map {
            values: b.constant(DenseElements::raw(values, bytes)?)?,
            table: b.constant(DenseElements::raw(table, map.table().to_vec())?)?,
        })
    };
    Ok([emit(&DynamicMap::signed())?, emit(&DynamicMap::unsigned())?])
}

/// Elements of a vector by their positions.
fn look_up(b: &mut Builder<'_>, vector: ValueId, positions: ValueId) -> Result<ValueId, BuildError> {
    let count = b.tensor_type(positions)?.shape_usize().unwrap_or_default().iter().product::<usize>() as u64;
    let positions = b.reshape(positions, &[count, 1])?;
    let dims = GatherDims {
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: 1,
        ..GatherDims::default()
    };
    b.gather(vector, positions, dims, &[1])
}

/// A value as blocks, the last filled with zeros.
fn blocks(b: &mut Builder<'_>, value: ValueId) -> Result<ValueId, BuildError> {
    let dims = b.tensor_type(value)?.shape_usize().unwrap_or_default();
    let count = dims.iter().product::<usize>() as u64;
    let whole = count.next_multiple_of(BLOCK as u64);
    let mut flat = b.reshape(value, &[count])?;
    if whole != count {
        let zero = b.scalar(ElementType::F32, 0.0)?;
        flat = b.pad(flat, zero, &[0], &[(whole - count) as i64], &[0])?;
    }
    b.reshape(flat, &[whole / BLOCK as u64, BLOCK as u64])
}

/// What [`blocks`] made, in the shape of a value again.
fn unblocked(b: &mut Builder<'_>, value: ValueId, like: ValueId) -> Result<ValueId, BuildError> {
    let dims: Vec<u64> =
        b.tensor_type(like)?.shape_usize().unwrap_or_default().iter().map(|&dim| dim as u64).collect();
    let whole = b.tensor_type(value)?.shape_usize().unwrap_or_default().iter().product::<usize>() as u64;
    let count: u64 = dims.iter().product();
    let mut flat = b.reshape(value, &[whole])?;
    if whole != count {
        flat = b.slice(flat, &[0], &[count as i64], &[1])?;
    }
    b.reshape(flat, &dims)
}

/// The moment of codes.
pub(crate) fn dequantize(
    emit: &mut Emit<'_, '_>,
    map: Map,
    codes: ValueId,
    scales: ValueId,
) -> Result<ValueId, BuildError> {
    let positions = emit.b.convert(codes, ElementType::I32)?;
    let values = look_up(emit.b, map.values, positions)?;
    let values = blocks(emit.b, values)?;
    let dims = emit.b.tensor_type(values)?.shape_usize().unwrap_or_default();
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    let scales = emit.b.broadcast_in_dim(scales, &dims, &[0])?;
    let values = emit.mul(values, scales)?;
    unblocked(emit.b, values, codes)
}

/// The codes and scales of a moment.
pub(crate) fn quantize(
    emit: &mut Emit<'_, '_>,
    map: Map,
    moment: ValueId,
) -> Result<[ValueId; 2], BuildError> {
    let values = blocks(emit.b, moment)?;
    let sizes = emit.b.unary(OpKind::Abs, values)?;
    let zero = emit.b.scalar(ElementType::F32, 0.0)?;
    let scales = emit.b.reduce(OpKind::Maximum, sizes, zero, &[1])?;
    let (zeros, ones) = (emit.b.splat_like(scales, 0.0)?, emit.b.splat_like(scales, 1.0)?);
    let some = emit.b.compare(ComparisonDirection::Gt, scales, zeros)?;
    let inverse = emit.div(ones, scales)?;
    let inverse = emit.b.select(some, inverse, zeros)?;
    let dims = emit.b.tensor_type(values)?.shape_usize().unwrap_or_default();
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    let inverse = emit.b.broadcast_in_dim(inverse, &dims, &[0])?;
    let scaled = emit.mul(values, inverse)?;
    let (low, high) = (emit.b.splat_like(scaled, -1.0)?, emit.b.splat_like(scaled, 1.0)?);
    let scaled = emit.b.binary(OpKind::Maximum, scaled, low)?;
    let scaled = emit.b.binary(OpKind::Minimum, scaled, high)?;
    let cell = emit.add(scaled, high)?;
    let cell = emit.scaled_by(cell, 0.5)?;
    let cell = emit.scaled_by(cell, (CELLS - 1) as f64)?;
    let half = emit.b.splat_like(cell, 0.5)?;
    let cell = emit.add(cell, half)?;
    let cell = emit.b.convert(cell, ElementType::I32)?;
    let codes = look_up(emit.b, map.table, cell)?;
    Ok([unblocked(emit.b, codes, moment)?, scales])
}
