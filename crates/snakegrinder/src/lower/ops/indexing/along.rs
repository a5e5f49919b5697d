//! Single elements along one dimension: gather and scatter.

use warpforge_ir::attr::{GatherDims, ScatterDims};

use super::super::prelude::*;
use super::rows::{gather, scatter, wrap_negative};

pub(super) const TABLE: &[Op] = &[
    op("aten.gather.default", |cx, args| {
        args.ignore(&["sparse_grad"]);
        let (x, index) = (args.tensor("self")?, args.tensor("index")?);
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        one(gather_along(cx, &x, axis, &index)?)
    }),
    op("aten.index_reduce.default", index_reduce),
    op("aten.scatter.reduce", |cx, args| {
        let source: Operand = args.tensor("src")?.into();
        scatter_with(cx, args, &source, reduction(args.str_or("reduce", "")?)?)
    }),
    op("aten.scatter.src", |cx, args| {
        let source: Operand = args.tensor("src")?.into();
        scatter_with(cx, args, &source, OpKind::Return)
    }),
    op("aten.scatter.value", |cx, args| {
        let source = args.operand("value")?;
        scatter_with(cx, args, &source, OpKind::Return)
    }),
    op("aten.scatter.value_reduce", |cx, args| {
        let source = args.operand("value")?;
        scatter_with(cx, args, &source, reduction(args.str_or("reduce", "")?)?)
    }),
    op("aten.scatter_add.default", |cx, args| {
        let source: Operand = args.tensor("src")?.into();
        scatter_with(cx, args, &source, OpKind::Add)
    }),
    op("aten.scatter_reduce.two", scatter_reduce),
    op("aten.take_along_dim.default", take_along_dim),
];

/// `result[i, j] = x[index[i, j], j]` for the first dimension, and so on for the others.
pub(in super::super) fn gather_along(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
) -> Lowered<Tensor> {
    if x.rank() == 0 {
        return cx.expand_to(x, &index.dims);
    }
    if index.rank() == 0 && x.rank() == 1 {
        let index = cx.unsqueeze(index, 0)?;
        let found = gather_along(cx, x, axis, &index)?;
        return cx.reshape(&found, &[]);
    }
    if index.rank() != x.rank() {
        return refuse("an index of another rank");
    }
    let mut x = x.clone();
    for at in (0..x.rank()).filter(|&at| at != axis) {
        // The index may stop short of the other dimensions.
        x = cx.slice(&x, at, &Size::Int(0), &index.dim(at), 1)?;
    }
    let others: Vec<i64> = (0..x.rank()).filter(|&at| at != axis).map(|at| at as i64).collect();
    let numbers = GatherDims {
        collapsed_slice_dims: vec![axis as i64],
        operand_batching_dims: others.clone(),
        start_indices_batching_dims: others,
        start_index_map: vec![axis as i64],
        index_vector_dim: x.rank() as i64,
        ..GatherDims::default()
    };
    let ones = vec![Size::Int(1); x.rank()];
    gather(cx, &x, index, numbers, &ones, &index.dims.clone())
}

fn take_along_dim(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, index) = (args.tensor("self")?, args.tensor("indices")?);
    let Some(dim) = args.opt_int("dim")? else {
        let flat = cx.reshape(&x, &[x.numel()])?;
        let places = cx.reshape(&index, &[index.numel()])?;
        let places = wrap_negative(cx, &places, &x.numel())?;
        return one(gather_along(cx, &flat, 0, &places)?);
    };
    let axis = cx.axis(dim, x.rank())?;
    if index.rank() != x.rank() {
        return refuse("an index of another rank");
    }
    cx.require_axis(&x, axis)?;
    let index = wrap_negative(cx, &index, &x.dim(axis))?;
    let (mut from, mut to) = (x.dims.to_vec(), index.dims.to_vec());
    from[axis] = Size::Int(1);
    to[axis] = Size::Int(1);
    let mut common = cx.broadcast_shape(&[&from, &to])?;
    common[axis] = x.dim(axis);
    let x = cx.expand_to(&x, &common)?;
    common[axis] = index.dim(axis);
    let index = cx.expand_to(&index, &common)?;
    one(gather_along(cx, &x, axis, &index)?)
}

fn reduction(name: &str) -> Lowered<OpKind> {
    match name {
        "add" | "sum" | "mean" => Ok(OpKind::Add),
        "multiply" | "prod" => Ok(OpKind::Multiply),
        "amax" => Ok(OpKind::Maximum),
        "amin" => Ok(OpKind::Minimum),
        other => refuse(format!("the reduction `{other}` of a scatter")),
    }
}

fn scatter_with(cx: &mut Cx<'_>, args: &Args<'_>, source: &Operand, combine: OpKind) -> Lowered<Outcome> {
    let (x, index) = (args.tensor("self")?, args.tensor("index")?);
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    one(scatter_along(cx, &x, axis, &index, source, combine)?)
}

/// The opposite of [`gather_along`]: combines elements of `source` into those of `x` at `index`.
pub(in super::super) fn scatter_along(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    index: &Tensor,
    source: &Operand,
    combine: OpKind,
) -> Lowered<Tensor> {
    if x.rank() == 0 || (index.rank() == 0 && x.rank() == 1) {
        // Numbers count as vectors of one.
        let line = cx.reshape(x, &[x.numel()])?;
        let index = cx.reshape(index, &[index.numel()])?;
        let source = match source {
            Operand::Tensor(tensor) => Operand::Tensor(cx.reshape(tensor, &[tensor.numel()])?),
            number => number.clone(),
        };
        let changed = scatter_along(cx, &line, 0, &index, &source, combine)?;
        return cx.reshape(&changed, &x.dims);
    }
    if index.rank() != x.rank() {
        return refuse("an index of another rank");
    }
    let mut updates = match source {
        Operand::Tensor(tensor) => cx.convert(tensor, x.dtype)?,
        Operand::Number(number) => cx.fill(x.dtype, &index.dims, number)?,
    };
    // The index may stop short of the source, and of the other dimensions of the target.
    let mut part = x.clone();
    for at in 0..x.rank() {
        if updates.rank() == index.rank() {
            updates = cx.slice(&updates, at, &Size::Int(0), &index.dim(at), 1)?;
        }
        if at != axis {
            part = cx.slice(&part, at, &Size::Int(0), &index.dim(at), 1)?;
        }
    }
    let updates = cx.expand_to(&updates, &index.dims)?;
    let others: Vec<i64> = (0..x.rank()).filter(|&at| at != axis).map(|at| at as i64).collect();
    let numbers = ScatterDims {
        inserted_window_dims: vec![axis as i64],
        input_batching_dims: others.clone(),
        scatter_indices_batching_dims: others,
        scatter_dims_to_operand_dims: vec![axis as i64],
        index_vector_dim: x.rank() as i64,
        ..ScatterDims::default()
    };
    let combine = if combine == OpKind::Add && x.dtype == ElementType::Bool { OpKind::Or } else { combine };
    let changed = scatter(cx, &part, index, &updates, numbers, combine)?;
    put_corner(cx, x, &changed)
}

/// A tensor with its first elements along every dimension replaced.
fn put_corner(cx: &mut Cx<'_>, x: &Tensor, corner: &Tensor) -> Lowered<Tensor> {
    if x.dims == corner.dims {
        return Ok(corner.clone());
    }
    let mut operands = vec![x.id, corner.id];
    let zero = cx.splat(ElementType::I64, &[], 0)?;
    operands.extend(std::iter::repeat_n(zero.id, x.rank()));
    let id = cx.b.op(OpKind::DynamicUpdateSlice, &operands, [])?;
    Ok(cx.tensor(id, x.dtype, x.dims.clone()))
}

fn scatter_reduce(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (index, source) = (args.tensor("index")?, args.tensor("src")?);
    combined(cx, args, &index, &source)
}

/// As [`scatter_reduce`], with one index for each slice of the source.
fn index_reduce(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (index, source) = (args.tensor("index")?, args.tensor("source")?);
    let axis = cx.axis(args.int("dim")?, source.rank())?;
    let index = cx.reshape(&index, &[index.numel()])?;
    let map: &[usize] = if source.rank() == 0 { &[] } else { &[axis] };
    let index = if source.rank() == 0 { cx.reshape(&index, &[])? } else { index };
    let index = cx.broadcast(&index, &source.dims, map)?;
    combined(cx, args, &index, &source)
}

/// Elements of the source combined into those of `self` that the index names, by the operation that `reduce` names.
fn combined(cx: &mut Cx<'_>, args: &Args<'_>, index: &Tensor, source: &Tensor) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dim")?, x.rank())?;
    let name = args.str_or("reduce", "")?;
    let include_self = args.bool_or("include_self", true)?;
    let combine = reduction(name)?;
    let source: Operand = source.into();
    let start = if include_self {
        x.clone()
    } else {
        // What is written to at all starts from the neutral element.
        let neutral = match combine {
            OpKind::Multiply => Scalar::one(x.dtype),
            OpKind::Maximum => crate::lower::cx::lowest(x.dtype),
            OpKind::Minimum => crate::lower::cx::highest(x.dtype),
            _ => Scalar::zero(x.dtype),
        };
        let neutral: Operand = cx.splat(x.dtype, &index.dims.clone(), neutral)?.into();
        scatter_along(cx, &x, axis, index, &neutral, OpKind::Return)?
    };
    let total = scatter_along(cx, &start, axis, index, &source, combine)?;
    if name != "mean" {
        return one(total);
    }
    let ones = Scalar::one(x.dtype);
    let own = cx.splat_like(&x, if include_self { ones } else { Scalar::zero(x.dtype) })?;
    let each: Operand = cx.splat(x.dtype, &index.dims.clone(), ones)?.into();
    let count = scatter_along(cx, &own, axis, index, &each, OpKind::Add)?;
    let count = cx.with_number(OpKind::Maximum, &count, ones)?;
    one(if x.dtype.is_float() { cx.div(&total, &count)? } else { cx.floor_divide(&total, &count)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn numbers_are_gathered_from_and_scattered_to() {
        let dim = || ("dim", Plain(json!({"as_int": 0})));
        let row = || ("self", Floats(&[3], vec![4.0, 5.0, 6.0]));
        let found = evaluated(
            "aten.gather.default",
            vec![row(), dim(), ("index", Ints(&[], vec![2]))],
            &[(F32, &[])],
        );
        assert_eq!(found, [[6.0]]);
        let number = ("self", Floats(&[], vec![4.0]));
        let added =
            vec![number, dim(), ("index", Ints(&[2], vec![0, 0])), ("src", Floats(&[2], vec![1.0, 2.0]))];
        assert_eq!(evaluated("aten.scatter_add.default", added, &[(F32, &[])]), [[7.0]]);
        let put = vec![row(), dim(), ("index", Ints(&[], vec![1])), ("src", Floats(&[], vec![9.0]))];
        assert_eq!(evaluated("aten.scatter.src", put, &[(F32, &[3])]), [[4.0, 9.0, 6.0]]);
    }

    #[test]
    fn slices_are_combined_by_one_index_each() {
        let arguments = vec![
            ("self", Floats(&[2, 2], vec![1.0, 1.0, 5.0, 5.0])),
            ("dim", Plain(json!({"as_int": 0}))),
            ("index", Ints(&[2], vec![1, 1])),
            ("source", Floats(&[2, 2], vec![2.0, 3.0, 4.0, 7.0])),
            ("reduce", Plain(json!({"as_string": "mean"}))),
            ("include_self", Plain(json!({"as_bool": false}))),
        ];
        let found = evaluated("aten.index_reduce.default", arguments, &[(F32, &[2, 2])]);
        assert_eq!(found, [[1.0, 1.0, 3.0, 5.0]]);
    }

    #[test]
    fn negative_places_count_from_the_end() {
        for (dim, expected) in [(Some(1), [2.0, 3.0]), (None, [4.0, 3.0])] {
            let mut arguments = vec![
                ("self", Floats(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])),
                ("indices", Ints(&[2, 1], vec![-1, if dim.is_some() { 0 } else { 2 }])),
            ];
            arguments.extend(dim.map(|dim| ("dim", Plain(json!({"as_int": dim})))));
            let shape: &[usize] = if dim.is_some() { &[2, 1] } else { &[2] };
            assert_eq!(evaluated("aten.take_along_dim.default", arguments, &[(F32, shape)]), [expected]);
        }
    }
}
