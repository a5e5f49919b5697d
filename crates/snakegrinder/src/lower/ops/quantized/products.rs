//! Products of codes.

use super::super::matrix::{DotPairing as Pairing, dot, dot_as};
use super::super::prelude::*;
use super::eager::apply;

pub(super) const TABLE: &[Op] = &[
    op("aten._int_mm.default", integers),
    op("aten._scaled_mm.default", scaled),
    op("aten._weight_int8pack_mm.default", codes_by_column),
];

const ROWS_BY_COLUMNS: Pairing<'static> = Pairing { batch: (&[], &[]), sum: (&[1], &[0]) };
const ROWS_BY_ROWS: Pairing<'static> = Pairing { batch: (&[], &[]), sum: (&[1], &[1]) };

fn matrices(tensors: [&Tensor; 2]) -> Lowered<()> {
    match tensors.iter().all(|tensor| tensor.rank() == 2) {
        true => Ok(()),
        false => refuse("a product of something else than matrices"),
    }
}

/// A product of i8 with sums of i32.
fn integers(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = (args.tensor("self")?, args.tensor("mat2")?);
    matrices([&a, &b])?;
    if [a.dtype, b.dtype] != [ElementType::I8; 2] {
        return refuse(format!("a product of {} and {}", a.dtype, b.dtype));
    }
    one(dot_as(cx, &a, &b, &ROWS_BY_COLUMNS, ElementType::I32)?)
}

/// A product with codes of i8, a row and a scale for each column of the result.
fn codes_by_column(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, codes, scales) = (args.tensor("self")?, args.tensor("mat2")?, args.tensor("scales")?);
    matrices([&x, &codes])?;
    if codes.dtype != ElementType::I8 || !x.dtype.is_float() || scales.rank() != 1 {
        return refuse(format!("a product of {} and codes of {}", x.dtype, codes.dtype));
    }
    let wide = opmath(x.dtype);
    let (left, right) = (cx.convert(&x, wide)?, cx.convert(&codes, wide)?);
    let sums = dot(cx, &left, &right, &ROWS_BY_ROWS)?;
    let scales = cx.convert(&scales, wide)?;
    let result = apply(cx, OpKind::Multiply, &sums, &scales)?;
    one(cx.convert(&result, x.dtype)?)
}

/// A product of floats of 8 bits with a scale for each operand, or for each row of the left and each column of the right one.
fn scaled(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // How sums are kept between steps is the device's.
    args.ignore(&["use_fast_accum"]);
    let (a, b, bias) = (args.tensor("self")?, args.tensor("mat2")?, args.opt_tensor("bias")?);
    matrices([&a, &b])?;
    let dtype = args.opt_dtype("out_dtype")?.unwrap_or(a.dtype);
    if args.opt_tensor("scale_result")?.is_some() || dtype.byte_width() == 1 {
        return refuse("a result of 8 bits");
    }
    let narrow = |tensor: &Tensor| tensor.dtype.is_float() && tensor.dtype.byte_width() == 1;
    if !narrow(&a) || !narrow(&b) {
        return refuse(format!("a scaled product of {} and {}", a.dtype, b.dtype));
    }
    let (left, right) = (cx.convert(&a, ElementType::F32)?, cx.convert(&b, ElementType::F32)?);
    let mut result = dot(cx, &left, &right, &ROWS_BY_COLUMNS)?;
    for (name, dims) in [("scale_a", [a.dim(0), Size::Int(1)]), ("scale_b", [Size::Int(1), b.dim(1)])] {
        let scale = args.tensor(name)?;
        if scale.dtype != ElementType::F32 || (!scale.numel().is(1) && *scale.dims != dims) {
            return refuse(format!("`{name}` is neither one f32 nor one for each row or column"));
        }
        let scale = if scale.numel().is(1) { cx.reshape(&scale, &[])? } else { scale };
        result = apply(cx, OpKind::Multiply, &result, &scale)?;
    }
    if let Some(bias) = bias {
        let bias = cx.convert(&bias, ElementType::F32)?;
        result = apply(cx, OpKind::Add, &result, &bias)?;
    }
    one(cx.convert(&result, dtype)?)
}
