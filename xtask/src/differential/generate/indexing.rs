//! Gathers, scatters and slices at computed places.

use warpforge_tensor::ElementType;

use super::{Generator, INTS, array, every_type, list};
use crate::differential::program::{OpTolerance, Step, Ty};

const INDEX_TYPES: &[ElementType] = &[ElementType::I32, ElementType::I64, ElementType::U32];

/// Rows of the first dimension, one for each index; places outside are clamped.
pub(super) fn gather(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |ty| ty.rank() > 0 && ty.len() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let count = g.rng.usize(1..5);
    let indices = Ty::new([count, 1], g.one_of(INDEX_TYPES));
    let indices = g.indices(&indices, ty.dims[0] + 2)?;
    let collapse = g.rng.bool();
    let mut sizes = ty.dims.clone();
    sizes[0] = if collapse { 1 } else { g.rng.usize(1..=ty.dims[0]) };
    let window = &sizes[usize::from(collapse)..];
    let dims = [&[count], window].concat();
    let offsets: Vec<usize> = (1..dims.len()).collect();
    let middle = format!(
        "{{dimension_numbers = #stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], start_index_map = [0], \
         index_vector_dim = 1>, slice_sizes = {}, indices_are_sorted = false}}",
        list(&offsets),
        if collapse { "0" } else { "" },
        array(&sizes),
    );
    Ok(Some(g.step(
        "stablehlo.gather",
        vec![x, indices],
        &middle,
        vec![Ty::new(dims, ty.element)],
        OpTolerance::Exact,
    )))
}

/// Rows added to rows; integers, because the order of the additions is open. Places outside are left out.
pub(super) fn scatter(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |ty| ty.rank() > 0 && ty.len() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let count = g.rng.usize(1..5);
    let indices = Ty::new([count, 1], g.one_of(INDEX_TYPES));
    let indices = g.indices(&indices, ty.dims[0] + 2)?;
    let updates = Ty::new([&[count], &ty.dims[1..]].concat(), ty.element);
    let windows: Vec<usize> = (1..updates.rank()).collect();
    let updates = g.of_type(&updates)?;
    let op = g.one_of(&["add", "maximum", "minimum", "multiply"]);
    let scalar = Ty::new([], ty.element);
    let middle = format!(
        "({{\n    ^bb0(%x: {scalar}, %y: {scalar}):\n      %z = stablehlo.{op} %x, %y : {scalar}\n      stablehlo.return %z : \
         {scalar}\n    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], \
         inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, \
         indices_are_sorted = false, unique_indices = false}}",
        list(&windows),
    );
    Ok(Some(g.step("stablehlo.scatter", vec![x, indices, updates], &middle, vec![ty], OpTolerance::Exact)))
}

pub(super) fn dynamic_slice(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let sizes: Vec<usize> = ty.dims.iter().map(|&dim| g.rng.usize(..=dim)).collect();
    let mut operands = vec![x];
    operands.extend(starts(g, &ty)?);
    let middle = format!("{{slice_sizes = {}}}", array(&sizes));
    let result = Ty::new(sizes, ty.element);
    Ok(Some(g.step("stablehlo.dynamic_slice", operands, &middle, vec![result], OpTolerance::Exact)))
}

pub(super) fn dynamic_update_slice(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let sizes: Vec<usize> = ty.dims.iter().map(|&dim| g.rng.usize(..=dim)).collect();
    let mut operands = vec![x, g.of_type(&Ty::new(sizes, ty.element))?];
    operands.extend(starts(g, &ty)?);
    Ok(Some(g.step("stablehlo.dynamic_update_slice", operands, "", vec![ty], OpTolerance::Exact)))
}

/// One index for each dimension, some of them outside.
fn starts(g: &mut Generator, ty: &Ty) -> anyhow::Result<Vec<usize>> {
    let index = Ty::new([], g.one_of(INDEX_TYPES));
    ty.dims.iter().map(|&dim| g.indices(&index, dim + 3)).collect()
}
