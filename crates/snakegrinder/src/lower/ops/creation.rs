//! New tensors.

use super::prelude::*;
use crate::lower::promote::DEFAULT_FLOAT;

pub(super) const TABLE: &[Op] = &[
    op("aten._shape_as_tensor.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.shape_value(&x.dims)?)
    }),
    op("aten.arange.default", arange).also(&["aten.arange.start", "aten.arange.start_step"]),
    op("aten.empty.memory_format", |cx, args| filled(cx, args, "size", Some(0.0)))
        .also(&["aten.zeros.default"]),
    op("aten.empty_like.default", |cx, args| filled_like(cx, args, Some(0.0)))
        .also(&["aten.zeros_like.default"]),
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
    op("aten.fill.Scalar", fill).also(&["aten.fill.Tensor"]),
    op("aten.full.default", |cx, args| filled(cx, args, "size", None)),
    op("aten.full_like.default", |cx, args| filled_like(cx, args, None)),
    op("aten.linspace.default", |cx, args| linspace(cx, args, None)).also(&[
        "aten.linspace.Scalar_Tensor",
        "aten.linspace.Tensor_Scalar",
        "aten.linspace.Tensor_Tensor",
    ]),
    op("aten.logspace.default", logspace).also(&[
        "aten.logspace.Scalar_Tensor",
        "aten.logspace.Tensor_Scalar",
        "aten.logspace.Tensor_Tensor",
    ]),
    op("aten.new_empty.default", |cx, args| new_filled(cx, args, Some(0.0)))
        .also(&["aten.new_zeros.default"]),
    op("aten.new_empty_strided.default", |cx, args| {
        args.ignore(&["stride"]);
        new_filled(cx, args, Some(0.0))
    }),
    op("aten.new_full.default", |cx, args| new_filled(cx, args, None)),
    op("aten.new_ones.default", |cx, args| new_filled(cx, args, Some(1.0))),
    op("aten.ones.default", |cx, args| filled(cx, args, "size", Some(1.0))),
    op("aten.ones_like.default", |cx, args| filled_like(cx, args, Some(1.0))),
    op("aten.scalar_tensor.default", |cx, args| {
        args.placement()?;
        let number = args.number("s")?;
        let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
        one(cx.fill(dtype, &[], &number)?)
    })
    .also(&["prims.scalar_tensor.default"]),
    op("aten.tril_indices.default", |cx, args| triangle_indices(cx, args, true)),
    op("aten.triu_indices.default", |cx, args| triangle_indices(cx, args, false)),
    op("aten.zero.default", |cx, args| {
        let x = args.tensor("self")?;
        one(cx.splat_like(&x, Scalar::zero(x.dtype))?)
    }),
    op("prims.iota.default", iota),
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
    if dtype.is_int() {
        // The count is that of the fractions, the numbers are those of whole steps.
        let dims = [Size::Int(count)];
        let index = cx.iota(ElementType::I64, &dims, 0)?;
        let scaled = cx.with_number(OpKind::Multiply, &index, step.trunc() as i64)?;
        let values = cx.with_number(OpKind::Add, &scaled, start.trunc() as i64)?;
        return one(cx.convert(&values, dtype)?);
    }
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

/// Equal steps, counted from the nearer end; powers of a base where there is one.
fn linspace(cx: &mut Cx<'_>, args: &Args<'_>, base: Option<f64>) -> Lowered<Outcome> {
    args.placement()?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
    let steps = args.int("steps")?;
    let (start, end) = (args.number("start")?, args.number("end")?);
    let (Some(start), Some(end)) = (start.as_f64(), end.as_f64()) else {
        return computed_steps(cx, dtype, &start, &end, steps, base);
    };
    let count = cx.table_length(&[steps])?;
    let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
    let values = (0..count).map(|at| {
        let value = if at < count / 2 || count == 1 {
            start + step * at as f64
        } else {
            end - step * (count - 1 - at) as f64
        };
        let value = base.map_or(value, |base| base.powf(value));
        if dtype.is_int() { Scalar::Int(value.trunc() as i128) } else { Scalar::Float(value) }
    });
    one(cx.constant(dtype, &[count], values)?)
}

fn logspace(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let base = args.float_or("base", 10.0)?;
    linspace(cx, args, Some(base))
}

/// As [`linspace`], from numbers that the model computes.
fn computed_steps(
    cx: &mut Cx<'_>,
    dtype: ElementType,
    start: &Number,
    end: &Number,
    steps: i64,
    base: Option<f64>,
) -> Lowered<Outcome> {
    if !dtype.is_float() {
        return refuse("steps of whole numbers between numbers that the model computes");
    }
    let (wide, dims) = (opmath(dtype), [Size::Int(steps)]);
    let (start, end) = (cx.fill(wide, &dims, start)?, cx.fill(wide, &dims, end)?);
    let way = cx.sub(&end, &start)?;
    let step = cx.with_number(OpKind::Divide, &way, (steps - 1).max(1) as f64)?;
    let index = cx.iota(wide, &dims, 0)?;
    let done = cx.mul(&step, &index)?;
    let first = cx.add(&start, &done)?;
    let last = cx.splat_like(&index, (steps - 1) as f64)?;
    let left = cx.sub(&last, &index)?;
    let left = cx.mul(&step, &left)?;
    let second = cx.sub(&end, &left)?;
    let near = cx.compare_number(Cmp::Lt, &index, (steps / 2).max(i64::from(steps == 1)) as f64)?;
    let values = cx.select(&near, &first, &second)?;
    let values = match base {
        Some(base) => {
            let base = cx.splat_like(&values, base)?;
            cx.binary(OpKind::Power, &base, &values)?
        }
        None => values,
    };
    one(cx.convert(&values, dtype)?)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Code::I64, Given::*, evaluated};

    #[test]
    fn whole_numbers_of_a_range_with_fractions_have_whole_steps() {
        let number = |value: f64| Plain(json!({"as_float": value}));
        let whole = Plain(json!({"as_scalar_type": 5}));
        let range =
            vec![("start", number(-0.9)), ("end", number(2.1)), ("step", number(2.0)), ("dtype", whole)];
        assert_eq!(evaluated("aten.arange.start_step", range, &[(I64, &[2])]), [[0.0, 2.0]]);
    }

    #[test]
    fn steps_go_from_end_to_end_known_or_computed() {
        let number = |value: f64| Plain(json!({"as_float": value}));
        let steps = || ("steps", Plain(json!({"as_int": 3})));
        let known = vec![("start", number(0.0)), ("end", number(2.0)), steps()];
        assert_eq!(evaluated("aten.logspace.default", known, &[(F32, &[3])]), [[1.0, 10.0, 100.0]]);
        let tensors = || vec![("start", Floats(&[], vec![1.0])), ("end", Floats(&[], vec![4.0])), steps()];
        assert_eq!(evaluated("aten.linspace.Tensor_Tensor", tensors(), &[(F32, &[3])]), [[1.0, 2.5, 4.0]]);
        let powers = [tensors(), vec![("base", number(4.0))]].into_iter().flatten().collect();
        assert_eq!(evaluated("aten.logspace.Tensor_Tensor", powers, &[(F32, &[3])]), [[4.0, 32.0, 256.0]]);
    }
}
