//! Lengths of vectors.

use super::super::prelude::*;
use super::{reduced_axes, shaped};

pub(super) const TABLE: &[Op] = &[
    op("aten.dist.default", dist),
    op("aten.linalg_norm.default", |cx, args| vector_norm(cx, args, "ord"))
        .also(&["aten.linalg_vector_norm.default"]),
    op("aten.linalg_norm.ord_str", frobenius),
    op("aten.norm.Scalar", |cx, args| vector_norm(cx, args, "p")).also(&[
        "aten.norm.ScalarOpt_dim",
        "aten.norm.ScalarOpt_dim_dtype",
        "aten.norm.ScalarOpt_dtype",
    ]),
    op("aten.renorm.default", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int("dim")?, x.rank())?;
        let (order, most) = (args.float_or("p", 2.0)?, args.float_or("maxnorm", 0.0)?);
        one(shortened(cx, &x, axis, order, most)?)
    }),
];

fn vector_norm(cx: &mut Cx<'_>, args: &Args<'_>, order: &str) -> Lowered<Outcome> {
    let order = args.float_or(order, 2.0)?;
    over_elements(cx, args, order)
}

fn over_elements(cx: &mut Cx<'_>, args: &Args<'_>, order: f64) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(x.dtype);
    if !dtype.is_float() {
        return refuse(format!("a norm of {dtype}"));
    }
    let axes = reduced_axes(cx, args, "dim", x.rank())?;
    let wide = cx.convert(&x, opmath(dtype))?;
    // With an order, two dimensions are those of matrices; without one, all elements are one vector.
    let of_matrices = args.node.target.ends_with("linalg_norm.default") && args.get("ord").is_some();
    let norm = match axes.as_slice() {
        &[rows, columns] if of_matrices => matrix_norm(cx, &wide, rows, columns, order)?,
        _ => norm_of(cx, &wide, &axes, order)?,
    };
    let norm = shaped(cx, args, &x, &norm, &axes)?;
    one(cx.convert(&norm, dtype)?)
}

fn frobenius(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    match args.str_or("ord", "fro")? {
        "fro" => over_elements(cx, args, 2.0),
        other => refuse(format!("a norm `{other}` of matrices")),
    }
}

/// The norm of an order over dimensions: a real number, also of complex ones.
pub(in super::super) fn norm_of(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize], order: f64) -> Lowered<Tensor> {
    if let ElementType::Complex(part) = x.dtype {
        let size = cx.unary_to(OpKind::Abs, x, ElementType::Float(part))?;
        return norm_of(cx, &size, axes, order);
    }
    if order == 2.0 {
        let square = cx.mul(x, x)?;
        let total = cx.sum(&square, axes)?;
        return cx.unary(OpKind::Sqrt, &total);
    }
    let size = cx.unary(OpKind::Abs, x)?;
    if order == f64::INFINITY {
        // Nothing has the norm zero.
        return cx.reduce(OpKind::Maximum, &size, axes, Scalar::Float(0.0));
    }
    if order == f64::NEG_INFINITY {
        return cx.minimum_of(&size, axes);
    }
    if order == 1.0 {
        return cx.sum(&size, axes);
    }
    if order == 0.0 {
        let nonzero = cx.compare_number(Cmp::Ne, x, 0.0)?;
        let ones = cx.convert(&nonzero, x.dtype)?;
        return cx.sum(&ones, axes);
    }
    let powers = cx.with_number(OpKind::Power, &size, order)?;
    let total = cx.sum(&powers, axes)?;
    cx.with_number(OpKind::Power, &total, 1.0 / order)
}

/// A tensor whose slices along a dimension are at most so long; longer ones are scaled.
pub(in super::super) fn shortened(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    order: f64,
    most: f64,
) -> Lowered<Tensor> {
    // What PyTorch adds to a length that it divides by.
    const MARGIN: f64 = 1e-7;
    cx.require_axis(x, axis)?;
    let wide = cx.convert(x, opmath(x.dtype))?;
    let axes: Vec<usize> = (0..x.rank()).filter(|&at| at != axis).collect();
    let length = norm_of(cx, &wide, &axes, order)?;
    let long = cx.compare_number(Cmp::Gt, &length, most)?;
    let divisor = cx.with_number(OpKind::Add, &length, MARGIN)?;
    let (most, ones) = (cx.splat_like(&length, most)?, cx.splat_like(&length, 1.0)?);
    let factor = cx.div(&most, &divisor)?;
    let factor = cx.select(&long, &factor, &ones)?;
    let factor = cx.convert(&factor, wide.dtype)?;
    let factor = cx.spread(&factor, &x.dims, &axes)?;
    let scaled = cx.mul(&wide, &factor)?;
    cx.convert(&scaled, x.dtype)
}

/// The largest or smallest sum of a row or a column.
fn matrix_norm(cx: &mut Cx<'_>, x: &Tensor, rows: usize, columns: usize, order: f64) -> Lowered<Tensor> {
    let (summed, left) = match order.abs() {
        1.0 => (rows, columns),
        f64::INFINITY => (columns, rows),
        _ => return refuse(format!("a norm of order {order} of matrices")),
    };
    let size = cx.unary(OpKind::Abs, x)?;
    let sums = cx.sum(&size, &[summed])?;
    let axes = [left - usize::from(summed < left)];
    if order > 0.0 { cx.maximum_of(&sums, &axes) } else { cx.minimum_of(&sums, &axes) }
}

fn dist(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let operands: [Operand; 2] = [args.tensor("self")?.into(), args.tensor("other")?.into()];
    let order = args.float_or("p", 2.0)?;
    let dtype = to_inexact(result_type(&operands)?);
    let unified = cx.unify(&operands, opmath(dtype))?;
    let difference = cx.sub(&unified[0], &unified[1])?;
    let axes: Vec<usize> = (0..difference.rank()).collect();
    let norm = norm_of(cx, &difference, &axes, order)?;
    one(cx.convert(&norm, dtype.float_part().map_or(dtype, ElementType::Float))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn only_what_is_too_long_is_shortened() {
        let arguments = vec![
            ("self", Floats(&[2, 2], vec![3.0, 4.0, 0.5, 0.0])),
            ("p", Plain(json!({"as_int": 2}))),
            ("dim", Plain(json!({"as_int": 0}))),
            ("maxnorm", Plain(json!({"as_float": 1.0}))),
        ];
        let found = evaluated("aten.renorm.default", arguments, &[(F32, &[2, 2])]);
        let expected = [0.6, 0.8, 0.5, 0.0];
        assert!(found[0].iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-6), "{found:?}");
    }
}
