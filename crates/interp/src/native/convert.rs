//! Conversion of whole slices between Rust's own types.

use half::{bf16, f16};
use warpforge_tensor::{ElementType, Native, Tensor};

use super::number::Real;
use super::{Threads, for_types};
use crate::error::Result;

/// A tensor as elements of another type, or `None` where the general path is needed.
pub(crate) fn convert(threads: Threads, value: &Tensor, to: ElementType) -> Result<Option<Tensor>> {
    let from = value.element_type();
    if from == to {
        return Ok(Some(value.clone()));
    }
    // Rust's conversions are the language's: floats are cut towards zero and saturate, integers wrap, NaN gives zero.
    macro_rules! as_any {
        ($($name:ident $rust:ty),*) => {
            for_types!(from, T => match to {
                $(ElementType::$name => return each(threads, value, |x: T| x as $rust),)*
                ElementType::Bool => return truths(threads, value, |x: T| x != 0 as T),
                _ => {}
            }, else {}; F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
        };
    }
    as_any!(F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
    match (from, to) {
        (ElementType::Bool, _) => from_truths(threads, value, to),
        (ElementType::F16, ElementType::F32) => each(threads, value, f16::to_f32),
        (ElementType::F16, ElementType::F64) => each(threads, value, |x: f16| Real::to_f64(x)),
        (ElementType::BF16, ElementType::F32) => each(threads, value, bf16::to_f32),
        (ElementType::BF16, ElementType::F64) => each(threads, value, |x: bf16| Real::to_f64(x)),
        (ElementType::F32, ElementType::F16) => each(threads, value, f16::from_f32),
        (ElementType::F32, ElementType::BF16) => each(threads, value, bf16::from_f32),
        (ElementType::F64, ElementType::F16) => each(threads, value, <f16 as Real>::from_f64),
        (ElementType::F64, ElementType::BF16) => each(threads, value, <bf16 as Real>::from_f64),
        _ => Ok(None),
    }
}

fn each<T: Native, R: Native>(
    threads: Threads,
    value: &Tensor,
    f: impl Fn(T) -> R + Sync,
) -> Result<Option<Tensor>> {
    let slice = value.as_slice::<T>()?;
    let mut result = Tensor::zeros(R::ELEMENT, value.shape().clone())?;
    threads.pieces(result.as_slice_mut()?, 1, 1, &|start, piece: &mut [R]| {
        piece.iter_mut().zip(&slice[start..]).for_each(|(place, &x)| *place = f(x));
    });
    Ok(Some(result))
}

fn truths<T: Native>(
    threads: Threads,
    value: &Tensor,
    f: impl Fn(T) -> bool + Sync,
) -> Result<Option<Tensor>> {
    let slice = value.as_slice::<T>()?;
    let mut result = Tensor::zeros(ElementType::Bool, value.shape().clone())?;
    threads.pieces(result.bytes_mut(), 1, 1, &|start, piece| {
        piece.iter_mut().zip(&slice[start..]).for_each(|(place, &x)| *place = u8::from(f(x)));
    });
    Ok(Some(result))
}

fn from_truths(threads: Threads, value: &Tensor, to: ElementType) -> Result<Option<Tensor>> {
    let bytes = value.bytes();
    for_types!(to, R => {
        let mut result = Tensor::zeros(to, value.shape().clone())?;
        threads.pieces(result.as_slice_mut()?, 1, 1, &|start, piece: &mut [R]| {
            piece.iter_mut().zip(&bytes[start..]).for_each(|(place, &x)| *place = u8::from(x != 0) as R);
        });
        Ok(Some(result))
    }, else Ok(None); F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
}
