//! Sizes and Python numbers as nodes: what dynamic shapes are computed with, and what is asserted about them.

use std::cmp::Ordering;

use super::prelude::*;
use crate::lower::refusal::Refusal;
use crate::lower::strides::is_contiguous;

pub(super) const TABLE: &[Op] = &[
    op("_operator.add", |cx, args| arithmetic(cx, args, |a, b| Some(a.add(b)), |a, b| a + b)),
    op("_operator.and_", |_, args| truths(args, |a, b| a && b)),
    op("_operator.eq", |cx, args| compared(cx, args, Ordering::is_eq)),
    op("_operator.floordiv", |cx, args| arithmetic(cx, args, Size::floor_div, |a, b| (a / b).floor())),
    op("_operator.ge", |cx, args| compared(cx, args, Ordering::is_ge)),
    op("_operator.gt", |cx, args| compared(cx, args, Ordering::is_gt)),
    op("_operator.le", |cx, args| compared(cx, args, Ordering::is_le)),
    op("_operator.lt", |cx, args| compared(cx, args, Ordering::is_lt)),
    op("_operator.mod", |cx, args| arithmetic(cx, args, Size::modulo, f64::rem_euclid)),
    op("_operator.mul", |cx, args| arithmetic(cx, args, |a, b| Some(a.mul(b)), |a, b| a * b)),
    op("_operator.ne", |cx, args| compared(cx, args, Ordering::is_ne)),
    op("_operator.neg", |_, args| match number(args, 0)? {
        Number::Int(size) => give(Number::Int(size.mul(&Size::Int(-1)))),
        other => match other.as_f64() {
            Some(value) => give(Number::Float(-value)),
            None => refuse("the negative of a computed number"),
        },
    }),
    op("_operator.or_", |_, args| truths(args, |a, b| a || b)),
    op("_operator.pos", |_, args| give(number(args, 0)?)),
    op("_operator.pow", |cx, args| arithmetic(cx, args, power, f64::powf)),
    op("_operator.sub", |cx, args| arithmetic(cx, args, |a, b| Some(a.sub(b)), |a, b| a - b)),
    op("_operator.truediv", |_, args| {
        let (a, b) = (number(args, 0)?, number(args, 1)?);
        match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) if b != 0.0 => give(Number::Float(a / b)),
            _ => refuse("a quotient of dynamic sizes"),
        }
    }),
    op("aten._assert_async.default", nothing).also(&[
        "aten._assert_async.msg",
        "aten._assert_scalar.default",
        "aten._assert_tensor_metadata.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
    ]),
    op("aten._local_scalar_dense.default", item).also(&["aten.item.default"]),
    op("aten.numel.default", |_, args| give(Number::Int(args.tensor("self")?.numel())))
        .also(&["aten.sym_numel.default"]),
    op("aten.sym_is_contiguous.default", contiguous),
    op("aten.sym_size.int", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        give(Number::Int(x.dim(axis)))
    })
    .also(&["aten.size.int"]),
    op("aten.sym_storage_offset.default", |cx, args| {
        let offset = args.meta("self").map(|meta| cx.symbols.size(&meta.storage_offset).map_err(Refusal));
        args.tensor("self")?;
        offset
            .map_or_else(|| refuse("a place in memory that is not recorded"), |size| give(Number::Int(size?)))
    }),
    op("aten.sym_stride.int", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        let stride = args.meta("self").and_then(|meta| meta.strides.get(axis));
        let stride = stride.map(|stride| cx.symbols.size(stride).map_err(Refusal));
        stride.map_or_else(|| refuse("a stride that is not recorded"), |size| give(Number::Int(size?)))
    }),
    op("math.trunc", to_int).also(&["torch.sym_int"]),
    op("torch.sym_float", |_, args| match number(args, 0)? {
        Number::Computed(tensor) => give(Number::Computed(tensor)),
        other => match other.as_f64() {
            Some(value) => give(Number::Float(value)),
            // A dynamic size stays what it is; a float of it converts it where it is used.
            None => give(other),
        },
    }),
    op("torch.sym_ite", |cx, args| match number(args, 0)? {
        Number::Bool(condition) => {
            let (yes, no) = (number(args, 1)?, number(args, 2)?);
            give(if condition { yes } else { no })
        }
        Number::Computed(condition) if condition.dtype == ElementType::Bool => {
            let (yes, no) = (number(args, 1)?, number(args, 2)?);
            let dtype = result_type(&[yes.clone().into(), no.clone().into()])?;
            let (yes, no) = (cx.fill(dtype, &[], &yes)?, cx.fill(dtype, &[], &no)?);
            give(Number::Computed(cx.select(&condition, &yes, &no)?))
        }
        _ => refuse("a choice by something other than a truth value"),
    }),
    op("torch.sym_max", |cx, args| arithmetic(cx, args, |a, b| Some(a.larger(b)), f64::max)),
    op("torch.sym_min", |cx, args| arithmetic(cx, args, |a, b| Some(a.smaller(b)), f64::min)),
    op("torch.sym_not", |_, args| match args.at(0) {
        Some(Value::Number(Number::Bool(value))) => give(Number::Bool(!value)),
        Some(_) => Ok(vec![UNDECIDED]),
        None => refuse("a truth value is missing"),
    }),
    op("torch.sym_sqrt", |_, args| match number(args, 0)?.as_f64() {
        Some(value) => give(Number::Float(value.sqrt())),
        None => refuse("the square root of a dynamic size"),
    })
    .also(&["torch._sym_sqrt"]),
];

/// A comparison that only the run decides. Exported programs assert it; anything else that takes it refuses.
const UNDECIDED: Value = Value::Other("a truth value that depends on the data");

fn give(number: Number) -> Lowered<Outcome> {
    Ok(vec![Value::Number(number)])
}

fn number(args: &Args<'_>, position: usize) -> Lowered<Number> {
    match args.at(position) {
        Some(Value::Number(number)) => Ok(number.clone()),
        Some(Value::Tensor(tensor)) if tensor.rank() == 0 => Ok(Number::Computed(tensor.fresh())),
        _ => refuse("a number is missing"),
    }
}

/// Checks that hold for every run of an exported program that PyTorch would accept; nothing is computed by them.
fn nothing(_: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.ignore_all();
    Ok(Vec::new())
}

/// Whether the elements lie in row-major order; where strides are dynamic, as they did when the model was traced.
fn contiguous(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    args.tensor("self")?;
    if !matches!(args.get("memory_format"), None | Some(Value::None | Value::MemoryFormat(1))) {
        return Ok(vec![UNDECIDED]);
    }
    let Some((sizes, strides)) = args.meta("self").and_then(|meta| cx.recorded_layout(meta)) else {
        return refuse("strides that are not recorded");
    };
    give(Number::Bool(is_contiguous(&sizes, &strides)))
}

fn power(base: &Size, exponent: &Size) -> Option<Size> {
    let exponent = exponent.as_int().filter(|exponent| (0..=16).contains(exponent))?;
    Some((0..exponent).fold(Size::Int(1), |product, _| product.mul(base)))
}

fn arithmetic(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    sizes: fn(&Size, &Size) -> Option<Size>,
    floats: fn(f64, f64) -> f64,
) -> Lowered<Outcome> {
    let (a, b) = (number(args, 0)?, number(args, 1)?);
    if let (Number::Int(a), Number::Int(b)) = (&a, &b) {
        return match sizes(a, b) {
            Some(size) if size.is_tame() => give(Number::Int(size)),
            Some(_) => refuse("a size that is too complicated"),
            None => refuse("a division by zero"),
        };
    }
    if let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) {
        return give(Number::Float(floats(a, b)));
    }
    let kind = match args.node.target.as_str() {
        "_operator.add" => OpKind::Add,
        "_operator.sub" => OpKind::Subtract,
        "_operator.mul" => OpKind::Multiply,
        _ => return refuse("arithmetic on a number that depends on the data"),
    };
    let dtype = result_type(&[a.clone().into(), b.clone().into()])?;
    let (a, b) = (cx.fill(dtype, &[], &a)?, cx.fill(dtype, &[], &b)?);
    give(Number::Computed(cx.binary(kind, &a, &b)?))
}

fn compared(cx: &mut Cx<'_>, args: &Args<'_>, holds: fn(Ordering) -> bool) -> Lowered<Outcome> {
    let (a, b) = (number(args, 0)?, number(args, 1)?);
    if let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) {
        return match a.partial_cmp(&b) {
            Some(order) => give(Number::Bool(holds(order))),
            None => refuse("a comparison with NaN"),
        };
    }
    let (Number::Int(a), Number::Int(b)) = (&a, &b) else {
        return Ok(vec![UNDECIDED]);
    };
    // What the ranges of the symbols decide.
    let (low, high) = cx.symbols.bounds(&a.sub(b));
    let possible =
        [(low < 0, Ordering::Less), (low <= 0 && high >= 0, Ordering::Equal), (high > 0, Ordering::Greater)];
    let mut answers: Vec<bool> =
        possible.iter().filter(|(can, _)| *can).map(|(_, order)| holds(*order)).collect();
    answers.dedup();
    match answers.as_slice() {
        [answer] => give(Number::Bool(*answer)),
        _ => Ok(vec![UNDECIDED]),
    }
}

fn truths(args: &Args<'_>, combine: fn(bool, bool) -> bool) -> Lowered<Outcome> {
    match (args.at(0), args.at(1)) {
        (Some(Value::Number(Number::Bool(a))), Some(Value::Number(Number::Bool(b)))) => {
            give(Number::Bool(combine(*a, *b)))
        }
        (Some(_), Some(_)) => Ok(vec![UNDECIDED]),
        _ => refuse("truth values are needed"),
    }
}

fn to_int(_: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    match number(args, 0)? {
        Number::Int(size) => give(Number::Int(size)),
        Number::Float(value) if value.is_finite() => give(Number::Int(Size::Int(value.trunc() as i64))),
        Number::Bool(value) => give(Number::Int(Size::Int(i64::from(value)))),
        _ => refuse("an integer that depends on the data"),
    }
}

/// The number in a tensor of one element, known when the module runs.
fn item(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let scalar = cx.reshape(&x, &[])?;
    give(Number::Computed(scalar.fresh()))
}
