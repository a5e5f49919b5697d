//! Whole slices along one dimension.

use warpforge_ir::Attribute;
use warpforge_ir::attr::{GatherDims, ScatterDims};

use super::super::prelude::*;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten.index_add.default", |cx, args| {
        let alpha = args.opt_number("alpha")?;
        let source = args.tensor("source")?;
        let source = match alpha {
            Some(alpha) if alpha.as_f64() != Some(1.0) => {
                let factor = cx.fill(source.dtype, &source.dims, &alpha)?;
                cx.mul(&source, &factor)?
            }
            _ => source,
        };
        scatter_rows(cx, args, &source, OpKind::Add)
    }),
    op("aten.index_copy.default", |cx, args| {
        let source = args.tensor("source")?;
        scatter_rows(cx, args, &source, OpKind::Return)
    }),
    op("aten.index_fill.int_Scalar", index_fill).also(&["aten.index_fill.int_Tensor"]),
    op("aten.index_select.default", |cx, args| {
        let (x, index) = (args.tensor("self")?, args.tensor("index")?);
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        if x.rank() == 0 {
            return one(x);
        }
        let index = cx.reshape(&index, &[index.numel()])?;
        one(take_rows(cx, &x, axis, &index)?)
    }),
];

/// Indices counted from the end where they are negative.
pub(in super::super) fn wrap_negative(cx: &mut Cx<'_>, index: &Tensor, size: &Size) -> Lowered<Tensor> {
    if matches!(index.dtype, ElementType::Int(int) if !int.is_signed()) {
        return cx.convert(index, ElementType::I64);
    }
    let index = cx.convert(index, ElementType::I64)?;
    let size = cx.size_value(size)?;
    let size = cx.expand_to(&size, &index.dims)?;
    let shifted = cx.add(&index, &size)?;
    let negative = cx.compare_number(Cmp::Lt, &index, 0)?;
    cx.select(&negative, &shifted, &index)
}

/// Slices along a dimension at indices of one dimension, which must not be negative.
pub(in super::super) fn take_rows(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
) -> Lowered<Tensor> {
    cx.require_axis(x, axis)?;
    let mut dims = x.dims.to_vec();
    dims[axis] = index.dim(0);
    let mut sizes = x.dims.to_vec();
    sizes[axis] = Size::Int(1);
    let numbers = GatherDims {
        offset_dims: (0..x.rank()).filter(|at| *at != axis).map(|at| at as i64).collect(),
        collapsed_slice_dims: vec![axis as i64],
        start_index_map: vec![axis as i64],
        index_vector_dim: 1,
        ..GatherDims::default()
    };
    gather(cx, x, index, numbers, &sizes, &dims)
}

/// A gather with sizes that may be dynamic.
pub(in super::super) fn gather(
    cx: &mut Cx<'_>,
    x: &Tensor,
    index: &Tensor,
    numbers: GatherDims,
    slice_sizes: &[Size],
    dims: &[Size],
) -> Lowered<Tensor> {
    if dims.iter().any(|size| size.is(0)) {
        // Nothing is read, so there need be nothing to read from.
        return cx.splat(x.dtype, dims, Scalar::zero(x.dtype));
    }
    let numbers = ("dimension_numbers", Attribute::Gather(numbers.into()));
    let ty = value_type(x.dtype, dims);
    let known: Option<Vec<i64>> = slice_sizes.iter().map(Size::as_int).collect();
    let id = match known {
        Some(known) => {
            let attrs = [numbers, ("slice_sizes", Attribute::i64s(known))];
            cx.b.op_as(OpKind::Gather, &[x.id, index.id], attrs, ty)?
        }
        None => {
            let sizes = cx.shape_value(slice_sizes)?;
            cx.b.op_as(OpKind::DynamicGather, &[x.id, index.id, sizes.id], [numbers], ty)?
        }
    };
    Ok(cx.tensor(id, x.dtype, dims))
}

/// A scatter; [`OpKind::Return`] replaces, any other operation combines the old value with the update.
pub(in super::super) fn scatter(
    cx: &mut Cx<'_>,
    x: &Tensor,
    index: &Tensor,
    updates: &Tensor,
    numbers: ScatterDims,
    combine: OpKind,
) -> Lowered<Tensor> {
    let region = if combine == OpKind::Return {
        let scalar = value_type(x.dtype, &[]);
        cx.b.region(&[scalar.clone(), scalar], |_, values| {
            Ok::<_, warpforge_ir::build::BuildError>(values.get(1..).unwrap_or_default().to_vec())
        })?
    } else {
        cx.b.reducer(combine, x.dtype)?
    };
    let attrs = [("scatter_dimension_numbers", Attribute::Scatter(numbers.into()))];
    let ty = value_type(x.dtype, &x.dims);
    let operands = [x.id, index.id, updates.id];
    let op = cx.b.create(OpKind::Scatter, &operands, attrs, vec![region], Some(&[ty]))?;
    match cx.b.results(op).first() {
        Some(&id) => Ok(cx.tensor(id, x.dtype, x.dims.clone())),
        None => refuse("a scatter without a result"),
    }
}

/// Combines slices along `dim` with those of `source` at `index`.
fn scatter_rows(cx: &mut Cx<'_>, args: &Args<'_>, source: &Tensor, combine: OpKind) -> Lowered<Outcome> {
    let (x, index) = (args.tensor("self")?, args.tensor("index")?);
    let whole = x.dims.clone();
    let (x, axis) = line(cx, &x, args.int("dim")?)?;
    let index = cx.reshape(&index, &[index.numel()])?;
    let index = cx.convert(&index, ElementType::I64)?;
    let mut dims = x.dims.to_vec();
    dims[axis] = index.dim(0);
    let source = cx.convert(source, x.dtype)?;
    let source = cx.expand_to(&source, &dims)?;
    let changed = put_rows(cx, &x, axis, &index, &source, combine)?;
    one(cx.reshape(&changed, &whole)?)
}

/// A tensor and its dimension; a number counts as a vector of one.
fn line(cx: &mut Cx<'_>, x: &Tensor, dim: i64) -> Lowered<(Tensor, usize)> {
    let axis = cx.axis(dim, x.rank())?;
    let x = if x.rank() == 0 { cx.unsqueeze(x, 0)? } else { x.clone() };
    Ok((x, axis))
}

/// Combines slices along a dimension with those of `source` at indices, which must not be negative.
pub(in super::super) fn put_rows(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
    source: &Tensor,
    combine: OpKind,
) -> Lowered<Tensor> {
    let numbers = ScatterDims {
        update_window_dims: (0..x.rank()).filter(|at| *at != axis).map(|at| at as i64).collect(),
        inserted_window_dims: vec![axis as i64],
        scatter_dims_to_operand_dims: vec![axis as i64],
        index_vector_dim: 1,
        ..ScatterDims::default()
    };
    scatter(cx, x, index, source, numbers, combine)
}

fn index_fill(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, index, value) = (args.tensor("self")?, args.tensor("index")?, args.operand("value")?);
    let whole = x.dims.clone();
    let (x, axis) = line(cx, &x, args.int("dim")?)?;
    let index = cx.reshape(&index, &[index.numel()])?;
    let index = wrap_negative(cx, &index, &x.dim(axis))?;
    let mut dims = x.dims.to_vec();
    dims[axis] = index.dim(0);
    let value = cx.as_tensor(&value, x.dtype)?;
    let source = cx.expand_to(&value, &dims)?;
    let changed = put_rows(cx, &x, axis, &index, &source, OpKind::Return)?;
    one(cx.reshape(&changed, &whole)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn a_number_is_a_row_of_one() {
        let shared = || {
            vec![
                ("self", Floats(&[], vec![4.0])),
                ("dim", Plain(json!({"as_int": 0}))),
                ("index", Ints(&[1], vec![0])),
            ]
        };
        let added = [shared(), vec![("source", Floats(&[], vec![3.0]))]].into_iter().flatten().collect();
        assert_eq!(evaluated("aten.index_add.default", added, &[(F32, &[])]), [[7.0]]);
        let filled =
            [shared(), vec![("value", Plain(json!({"as_float": 2.5})))]].into_iter().flatten().collect();
        assert_eq!(evaluated("aten.index_fill.int_Scalar", filled, &[(F32, &[])]), [[2.5]]);
    }

    #[test]
    fn nothing_is_taken_from_nothing() {
        let arguments = vec![("self", Floats(&[0], vec![])), ("index", Ints(&[0], vec![]))];
        assert_eq!(evaluated("aten.take.default", arguments, &[(F32, &[0])]), [Vec::<f64>::new()]);
    }
}
