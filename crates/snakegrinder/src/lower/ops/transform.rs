//! Fourier transforms.

use warpforge_ir::Attribute;
use warpforge_ir::attr::FftType;

use super::prelude::*;
use crate::lower::value::value_type;

pub(super) const TABLE: &[Op] = &[
    op("aten._fft_c2c.default", |cx, args| {
        let x = args.tensor("self")?;
        let axes = cx.axes(&args.ints("dim")?, x.rank())?;
        let forward = args.bool_or("forward", true)?;
        let result = complex_transform(cx, &x, &axes, forward)?;
        one(scaled(cx, &result, args.int("normalization")?, &x, &axes)?)
    }),
    op("aten._fft_c2r.default", |cx, args| {
        let x = args.tensor("self")?;
        let axes = cx.axes(&args.ints("dim")?, x.rank())?;
        let length = args.int("last_dim_size")?;
        let result = inverse_real(cx, &x, &axes, length)?;
        one(scaled(cx, &result, args.int("normalization")?, &result.clone(), &axes)?)
    }),
    op("aten._fft_r2c.default", |cx, args| {
        let x = args.tensor("self")?;
        let axes = cx.axes(&args.ints("dim")?, x.rank())?;
        let result = real_transform(cx, &x, &axes, args.bool_or("onesided", true)?)?;
        one(scaled(cx, &result, args.int("normalization")?, &x, &axes)?)
    }),
    op("aten.fft_fft.default", |cx, args| named(cx, args, Named { inverse: false, many: 1 })),
    op("aten.fft_fft2.default", |cx, args| named(cx, args, Named { inverse: false, many: 2 })),
    op("aten.fft_fftn.default", |cx, args| named(cx, args, Named { inverse: false, many: 0 })),
    op("aten.fft_ifft.default", |cx, args| named(cx, args, Named { inverse: true, many: 1 })),
    op("aten.fft_ifft2.default", |cx, args| named(cx, args, Named { inverse: true, many: 2 })),
    op("aten.fft_ifftn.default", |cx, args| named(cx, args, Named { inverse: true, many: 0 })),
    op("aten.fft_irfft.default", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
        let length = match args.opt_int("n")? {
            Some(length) => length,
            None => 2 * (cx.known(&[x.dim(axis)])?[0] - 1),
        };
        let x = resized(cx, &x, axis, length / 2 + 1)?;
        let result = inverse_real(cx, &x, &[axis], length)?;
        let code = normalization(args, true)?;
        one(scaled(cx, &result, code, &result.clone(), &[axis])?)
    }),
    op("aten.fft_rfft.default", |cx, args| {
        let x = args.tensor("self")?;
        let axis = cx.axis(args.int_or("dim", -1)?, x.rank())?;
        let x = match args.opt_int("n")? {
            Some(length) => resized(cx, &x, axis, length)?,
            None => x,
        };
        let x = cx.convert(&x, to_inexact(x.dtype))?;
        let result = real_transform(cx, &x, &[axis], true)?;
        let code = normalization(args, false)?;
        one(scaled(cx, &result, code, &x, &[axis])?)
    }),
];

/// A transform of the `fft` module.
#[derive(Clone, Copy)]
struct Named {
    inverse: bool,
    /// How many dimensions it transforms; all where it is 0.
    many: usize,
}

fn named(cx: &mut Cx<'_>, args: &Args<'_>, which: Named) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let (dims, lengths) = match which.many {
        1 => (Some(vec![args.int_or("dim", -1)?]), args.opt_int("n")?.map(|length| vec![length])),
        2 => (Some(args.opt_ints("dim")?.unwrap_or(vec![-2, -1])), args.opt_ints("s")?),
        _ => (args.opt_ints("dim")?, args.opt_ints("s")?),
    };
    let axes = match (dims, &lengths) {
        (Some(dims), _) => cx.axes(&dims, x.rank())?,
        (None, Some(lengths)) => (x.rank().saturating_sub(lengths.len())..x.rank()).collect(),
        (None, None) => (0..x.rank()).collect(),
    };
    let mut x = x;
    for (&axis, &length) in axes.iter().zip(lengths.iter().flatten()) {
        if length != -1 {
            x = resized(cx, &x, axis, length)?;
        }
    }
    let complex = if x.dtype == ElementType::F64 || x.dtype == ElementType::C128 {
        ElementType::C128
    } else {
        ElementType::C64
    };
    let x = cx.convert(&x, complex)?;
    let result = complex_transform(cx, &x, &axes, !which.inverse)?;
    let code = normalization(args, which.inverse)?;
    one(scaled(cx, &result, code, &x, &axes)?)
}

/// PyTorch's code of a normalisation: 0 for none, 1 by the root of the number of elements, 2 by that number.
fn normalization(args: &Args<'_>, inverse: bool) -> Lowered<i64> {
    match (args.str_or("norm", "backward")?, inverse) {
        ("ortho", _) => Ok(1),
        ("backward", false) | ("forward", true) => Ok(0),
        ("backward", true) | ("forward", false) => Ok(2),
        (other, _) => refuse(format!("the normalisation `{other}`")),
    }
}

/// A dimension cut off or filled with zeros.
fn resized(cx: &mut Cx<'_>, x: &Tensor, axis: usize, length: i64) -> Lowered<Tensor> {
    let size = cx.known(&[x.dim(axis)])?[0];
    if length < 1 {
        return refuse(format!("a transform of {length} elements"));
    }
    if length <= size {
        return cx.slice(x, axis, &Size::Int(0), &Size::Int(length), 1);
    }
    cx.pad_axis(x, axis, &Size::Int(0), &Size::Int(length - size), 0, Scalar::zero(x.dtype))
}

/// One dimension of a transform. StableHLO transforms the last dimensions.
fn transform(
    cx: &mut Cx<'_>,
    x: &Tensor,
    axis: usize,
    kind: FftType,
    length: i64,
    dtype: ElementType,
    result_length: i64,
) -> Lowered<Tensor> {
    let last = x.rank() - 1;
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(axis, last);
    let transposed = cx.transpose(x, &order)?;
    let mut dims = transposed.dims.to_vec();
    dims[last] = Size::Int(result_length);
    let attrs =
        [("fft_type", Attribute::enumeration(kind)), ("fft_length", Attribute::i64s([length].as_slice()))];
    let id = cx.b.op_as(OpKind::Fft, &[transposed.id], attrs, value_type(dtype, &dims))?;
    let result = cx.tensor(id, dtype, dims);
    cx.transpose(&result, &order)
}

/// Without a scale, forwards or backwards.
fn complex_transform(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize], forward: bool) -> Lowered<Tensor> {
    let mut result = x.clone();
    for &axis in axes {
        let length = cx.known(&[x.dim(axis)])?[0];
        let kind = if forward { FftType::Fft } else { FftType::Ifft };
        result = transform(cx, &result, axis, kind, length, x.dtype, length)?;
        if !forward {
            // StableHLO divides by the number of elements.
            result = times(cx, &result, length as f64)?;
        }
    }
    Ok(result)
}

fn complex_type(dtype: ElementType) -> Lowered<ElementType> {
    match dtype {
        ElementType::F32 => Ok(ElementType::C64),
        ElementType::F64 => Ok(ElementType::C128),
        other => refuse(format!("a Fourier transform of {other}")),
    }
}

fn real_transform(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize], onesided: bool) -> Lowered<Tensor> {
    let Some((&last, rest)) = axes.split_last() else { return refuse("a transform of no dimension") };
    let dtype = complex_type(x.dtype)?;
    if !onesided {
        let complex = cx.convert(x, dtype)?;
        return complex_transform(cx, &complex, axes, true);
    }
    let length = cx.known(&[x.dim(last)])?[0];
    let half = transform(cx, x, last, FftType::Rfft, length, dtype, length / 2 + 1)?;
    complex_transform(cx, &half, rest, true)
}

/// Without a scale, from half of the frequencies to `length` real numbers.
fn inverse_real(cx: &mut Cx<'_>, x: &Tensor, axes: &[usize], length: i64) -> Lowered<Tensor> {
    let Some((&last, rest)) = axes.split_last() else { return refuse("a transform of no dimension") };
    let ElementType::Complex(part) = x.dtype else {
        return refuse(format!("an inverse transform of {}", x.dtype));
    };
    let first = complex_transform(cx, x, rest, false)?;
    let dtype = ElementType::Float(part);
    let result = transform(cx, &first, last, FftType::Irfft, length, dtype, length)?;
    times(cx, &result, length as f64)
}

fn times(cx: &mut Cx<'_>, x: &Tensor, factor: f64) -> Lowered<Tensor> {
    let factor = if x.dtype.is_complex() { Scalar::Complex(factor, 0.0) } else { Scalar::Float(factor) };
    cx.with_number(OpKind::Multiply, x, factor)
}

fn scaled(cx: &mut Cx<'_>, x: &Tensor, code: i64, signal: &Tensor, axes: &[usize]) -> Lowered<Tensor> {
    let sizes: Vec<Size> = axes.iter().map(|&axis| signal.dim(axis)).collect();
    let count: f64 = cx.known(&sizes)?.iter().map(|&size| size as f64).product();
    match code {
        0 => Ok(x.clone()),
        1 => times(cx, x, 1.0 / count.sqrt()),
        2 => times(cx, x, 1.0 / count),
        other => refuse(format!("the normalisation {other}")),
    }
}
