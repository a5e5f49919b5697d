//! New tensors.

use super::prelude::*;
use crate::lower::promote::DEFAULT_FLOAT;

pub(super) const TABLE: &[Op] = &[
    op("aten.arange.default", arange),
    op("aten.arange.start", arange),
    op("aten.arange.start_step", arange),
    op("aten.empty.memory_format", |cx, args| filled(cx, args, "size", Some(0.0))),
    op("aten.empty_like.default", |cx, args| filled_like(cx, args, Some(0.0))),
    op("aten.empty_permuted.default", |cx, args| {
        args.ignore(&["physical_layout"]);
        filled(cx, args, "size", Some(0.0))
    }),
    op("aten.empty_strided.default", |cx, args| {
        args.ignore(&["stride"]);
        filled(cx, args, "size", Some(0.0))
    }),
    op("aten.eye.default", |cx, args| eye(cx, args, "n")),
    op("aten.eye.m", |cx, args| eye(cx, args, "m")),
    op("aten.fill.Scalar", fill),
    op("aten.fill.Tensor", fill),
    op("aten.full.default", |cx, args| filled(cx, args, "size", None)),
    op("aten.full_like.default", |cx, args| filled_like(cx, args, None)),
    op("aten.linspace.default", linspace),
    op("aten.new_empty.default", |cx, args| new_filled(cx, args, Some(0.0))),
    op("aten.new_empty_strided.default", |cx, args| {
        args.ignore(&["stride"]);
        new_filled(cx, args, Some(0.0))
    }),
    op("aten.new_full.default", |cx, args| new_filled(cx, args, None)),
    op("aten.new_ones.default", |cx, args| new_filled(cx, args, Some(1.0))),
    op("aten.new_zeros.default", |cx, args| new_filled(cx, args, Some(0.0))),
    op("aten.ones.default", |cx, args| filled(cx, args, "size", Some(1.0))),
    op("aten.ones_like.default", |cx, args| filled_like(cx, args, Some(1.0))),
    op("aten.scalar_tensor.default", |cx, args| {
        args.placement()?;
        let number = args.number("s")?;
        let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
        one(cx.fill(dtype, &[], &number)?)
    }),
    op("aten.tril_indices.default", |cx, args| triangle_indices(cx, args, true)),
    op("aten.triu_indices.default", |cx, args| triangle_indices(cx, args, false)),
    op("aten.zero.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.splat_like(&x, Scalar::zero(x.dtype))?)
    }),
    op("aten.zeros.default", |cx, args| filled(cx, args, "size", Some(0.0))),
    op("aten.zeros_like.default", |cx, args| filled_like(cx, args, Some(0.0))),
    op("prims.iota.default", iota),
    op("prims.scalar_tensor.default", |cx, args| {
        args.placement()?;
        let number = args.number("s")?;
        let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
        one(cx.fill(dtype, &[], &number)?)
    }),
];

/// The number that a tensor is filled with: the one given here, or that of the node.
fn value(args: &Args<'_>, fixed: Option<f64>) -> Lowered<Number> {
    match fixed {
        Some(value) => Ok(Number::Float(value)),
        None => args.number("fill_value"),
    }
}

fn filled(cx: &mut Cx<'_>, args: &Args<'_>, size: &str, fixed: Option<f64>) -> Lowered<Outcome> {
    args.placement()?;
    let number = value(args, fixed)?;
    let own = match &number {
        _ if fixed.is_some() => DEFAULT_FLOAT,
        Number::Int(_) => ElementType::I64,
        Number::Bool(_) => ElementType::Bool,
        Number::Complex(..) => ElementType::C64,
        Number::Float(_) => DEFAULT_FLOAT,
        Number::Computed(tensor) => tensor.dtype,
    };
    let dtype = args.opt_dtype("dtype")?.unwrap_or(own);
    let dims = args.sizes(size)?;
    one(cx.fill(dtype, &dims, &number)?)
}

fn filled_like(cx: &mut Cx<'_>, args: &Args<'_>, fixed: Option<f64>) -> Lowered<Outcome> {
    args.placement()?;
    let x = args.tensor("self")?;
    let number = value(args, fixed)?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(x.dtype);
    one(cx.fill(dtype, &x.dims, &number)?)
}

fn new_filled(cx: &mut Cx<'_>, args: &Args<'_>, fixed: Option<f64>) -> Lowered<Outcome> {
    args.placement()?;
    let x = args.tensor("self")?;
    let number = value(args, fixed)?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(x.dtype);
    let dims = args.sizes("size")?;
    one(cx.fill(dtype, &dims, &number)?)
}

fn fill(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, value) = (args.tensor("self")?, args.operand("value")?);
    let value = cx.as_tensor(&value, x.dtype)?;
    one(cx.expand_to(&value, &x.dims)?)
}

fn arange(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.placement()?;
    let start = args.opt_number("start")?.unwrap_or(Number::Int(Size::Int(0)));
    let end = args.number("end")?;
    let step = args.opt_number("step")?.unwrap_or(Number::Int(Size::Int(1)));
    let whole = [&start, &end, &step].iter().all(|number| matches!(number, Number::Int(_)));
    let dtype = args.opt_dtype("dtype")?.unwrap_or(if whole { ElementType::I64 } else { DEFAULT_FLOAT });
    if let (Number::Int(start), Number::Int(end), Number::Int(Size::Int(step))) = (&start, &end, &step) {
        return whole_range(cx, dtype, start, end, *step);
    }
    let known = [start, end, step].map(|number| number.as_f64());
    let [Some(start), Some(end), Some(step)] = known else { return refuse("a range with unknown ends") };
    let count = ((end - start) / step).ceil();
    if !(0.0..=1e9).contains(&count) {
        return refuse(format!("a range of {count} elements"));
    }
    let count = count as i64;
    // PyTorch computes in double precision and rounds.
    let index = cx.iota(ElementType::F64, &[Size::Int(count)], 0)?;
    let scaled = cx.with_number(OpKind::Multiply, &index, step)?;
    let values = cx.with_number(OpKind::Add, &scaled, start)?;
    one(cx.convert(&values, dtype)?)
}

fn whole_range(cx: &mut Cx<'_>, dtype: ElementType, start: &Size, end: &Size, step: i64) -> Lowered<Outcome> {
    if step == 0 {
        return refuse("a range with step 0");
    }
    let span = if step > 0 { end.sub(start) } else { start.sub(end) };
    let magnitude = step.saturating_abs();
    let count = span.add(&Size::Int(magnitude - 1)).floor_div(&Size::Int(magnitude));
    let Some(count) = count.filter(|count| count.as_int().is_none_or(|known| known >= 0)) else {
        return refuse("a range that runs backwards");
    };
    let dims = [count];
    let index = cx.iota(ElementType::I64, &dims, 0)?;
    let scaled = if step == 1 { index } else { cx.with_number(OpKind::Multiply, &index, step)? };
    let values = if start.is(0) {
        scaled
    } else {
        let start = cx.fill(ElementType::I64, &dims, &Number::Int(start.clone()))?;
        cx.add(&scaled, &start)?
    };
    one(cx.convert(&values, dtype)?)
}

fn iota(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.placement()?;
    args.ignore(&["requires_grad"]);
    let length = args.size("length")?;
    let (start, step) = (args.int_or("start", 0)?, args.int_or("step", 1)?);
    let dtype = args.opt_dtype("dtype")?.unwrap_or(ElementType::I64);
    let index = cx.iota(ElementType::I64, &[length], 0)?;
    let scaled = cx.with_number(OpKind::Multiply, &index, step)?;
    let values = cx.with_number(OpKind::Add, &scaled, start)?;
    one(cx.convert(&values, dtype)?)
}

/// Equal steps, counted from the nearer end.
fn linspace(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.placement()?;
    let (Some(start), Some(end)) = (args.opt_float("start")?, args.opt_float("end")?) else {
        return refuse("a range with unknown ends");
    };
    let steps = args.int("steps")?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
    let count = cx.table_length(&[steps])?;
    let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
    let values = (0..count).map(|at| {
        let value = if at < count / 2 || count == 1 {
            start + step * at as f64
        } else {
            end - step * (count - 1 - at) as f64
        };
        if dtype.is_int() { Scalar::Int(value.trunc() as i128) } else { Scalar::Float(value) }
    });
    one(cx.constant(dtype, &[count], values)?)
}

fn eye(cx: &mut Cx<'_>, args: &Args<'_>, columns: &str) -> Lowered<Outcome> {
    args.placement()?;
    let dims = [args.size("n")?, args.size(columns)?];
    let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
    let mask = cx.index_mask(&dims, 0, 1, Cmp::Eq, &Size::Int(0))?;
    one(cx.convert(&mask, dtype)?)
}

fn triangle_indices(cx: &mut Cx<'_>, args: &Args<'_>, lower: bool) -> Lowered<Outcome> {
    args.placement()?;
    let (rows, columns, offset) = (args.int("row")?, args.int("col")?, args.int_or("offset", 0)?);
    let dtype = args.opt_dtype("dtype")?.unwrap_or(ElementType::I64);
    cx.table_length(&[rows, columns])?;
    let inside = |row: i64, column: i64| {
        let distance = column - row;
        if lower { distance <= offset } else { distance >= offset }
    };
    let pairs: Vec<(i64, i64)> = (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .filter(|&(row, column)| inside(row, column))
        .collect();
    let count = pairs.len();
    let values = pairs.iter().map(|pair| pair.0).chain(pairs.iter().map(|pair| pair.1));
    let values: Vec<Scalar> = values.map(|value| Scalar::Int(i128::from(value))).collect();
    one(cx.constant(dtype, &[2, count], values)?)
}
