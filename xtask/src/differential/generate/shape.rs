//! Operations that move elements.

use warpforge_tensor::ElementType;

use super::{COMPLEX, FLOATS, Generator, INTS, array, every_type, permutation};
use crate::differential::program::{OpTolerance, Step, Ty};

/// Results are kept small.
const MOST_ELEMENTS: usize = 2000;

pub(super) fn broadcast(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |ty| ty.rank() <= 2)? else { return Ok(None) };
    let ty = g.ty(x);
    let rank = g.rng.usize(ty.rank()..=3);
    let places: Vec<usize> = permutation(g.rng, rank).into_iter().take(ty.rank()).collect();
    let mut dims: Vec<usize> = (0..rank).map(|_| g.rng.usize(1..5)).collect();
    for (&place, &dim) in places.iter().zip(&ty.dims) {
        if dim != 1 || g.rng.bool() {
            dims[place] = dim;
        }
    }
    let middle = format!("{{broadcast_dimensions = {}}}", array(&places));
    let result = Ty::new(dims, ty.element);
    Ok(Some(g.step("stablehlo.broadcast_in_dim", vec![x], &middle, vec![result], OpTolerance::Exact)))
}

pub(super) fn reshape(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let mut dims = vec![ty.len()];
    // Split off factors.
    for factor in [2, 3, 5, 1] {
        let last = dims.len() - 1;
        if dims[last] % factor == 0 && dims[last] > 0 && g.rng.bool() {
            dims[last] /= factor;
            dims.insert(g.rng.usize(..=last), factor);
        }
    }
    Ok(Some(g.step("stablehlo.reshape", vec![x], "", vec![Ty::new(dims, ty.element)], OpTolerance::Exact)))
}

pub(super) fn transpose(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let order = permutation(g.rng, ty.rank());
    let dims: Vec<usize> = order.iter().map(|&dim| ty.dims[dim]).collect();
    let middle = format!("{{permutation = {}}}", array(&order));
    Ok(Some(g.step(
        "stablehlo.transpose",
        vec![x],
        &middle,
        vec![Ty::new(dims, ty.element)],
        OpTolerance::Exact,
    )))
}

pub(super) fn slice(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let (mut starts, mut limits, mut strides, mut dims) = (vec![], vec![], vec![], vec![]);
    for &dim in &ty.dims {
        let start = g.rng.usize(..=dim);
        let limit = g.rng.usize(start..=dim);
        let stride = g.rng.usize(1..4);
        starts.push(start);
        limits.push(limit);
        strides.push(stride);
        dims.push((limit - start).div_ceil(stride));
    }
    let middle = format!(
        "{{start_indices = {}, limit_indices = {}, strides = {}}}",
        array(&starts),
        array(&limits),
        array(&strides)
    );
    Ok(Some(g.step("stablehlo.slice", vec![x], &middle, vec![Ty::new(dims, ty.element)], OpTolerance::Exact)))
}

pub(super) fn pad(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let value = g.of_type(&Ty::new([], ty.element))?;
    let (mut low, mut high, mut interior, mut dims) = (vec![], vec![], vec![], vec![]);
    for &dim in &ty.dims {
        let (l, h, i) = (g.rng.i64(-2..4), g.rng.i64(-2..4), g.rng.usize(..3));
        let size = dim as i64 + l + h + (dim.saturating_sub(1) * i) as i64;
        let Ok(size) = usize::try_from(size) else { return Ok(None) };
        low.push(l);
        high.push(h);
        interior.push(i);
        dims.push(size);
    }
    let signed = |items: &[i64]| {
        if items.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {}>", super::list(items)) }
    };
    let middle = format!(
        "{{edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}}}",
        signed(&low),
        signed(&high),
        array(&interior)
    );
    Ok(Some(g.step(
        "stablehlo.pad",
        vec![x, value],
        &middle,
        vec![Ty::new(dims, ty.element)],
        OpTolerance::Exact,
    )))
}

pub(super) fn concatenate(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |ty| ty.rank() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let axis = g.rng.usize(..ty.rank());
    let mut operands = vec![x];
    let mut result = ty.clone();
    for _ in 0..g.rng.usize(..3) {
        let mut other = ty.clone();
        other.dims[axis] = g.rng.usize(..4);
        result.dims[axis] += other.dims[axis];
        operands.push(g.of_type(&other)?);
    }
    let middle = format!("{{dimension = {axis} : i64}}");
    Ok(Some(g.step("stablehlo.concatenate", operands, &middle, vec![result], OpTolerance::Exact)))
}

pub(super) fn reverse(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |ty| ty.len() <= MOST_ELEMENTS)? else { return Ok(None) };
    let ty = g.ty(x);
    let count = g.rng.usize(..=ty.rank());
    let dims: Vec<usize> = permutation(g.rng, ty.rank()).into_iter().take(count).collect();
    let middle = format!("{{dimensions = {}}}", array(&dims));
    Ok(Some(g.step("stablehlo.reverse", vec![x], &middle, vec![ty], OpTolerance::Exact)))
}

pub(super) fn iota(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let elements: Vec<ElementType> = [FLOATS, COMPLEX, INTS].concat();
    let ty = Ty::new(g.shape(1..=3), g.one_of(&elements));
    let middle = format!("{{iota_dimension = {} : i64}}", g.rng.usize(..ty.rank()));
    Ok(Some(g.step("stablehlo.iota", vec![], &middle, vec![ty], OpTolerance::Exact)))
}
