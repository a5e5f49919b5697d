//! Random tensors, with the values that find mistakes more often than others have.

use fastrand::Rng;
use warpforge_tensor::{ElementType, FloatType, IntType, Scalar, Shape, Tensor};

use super::program::Ty;

/// A tensor of a type, with small numbers for the most part. Subnormal numbers are left out: XLA flushes them to zero.
pub(crate) fn random(rng: &mut Rng, ty: &Ty) -> anyhow::Result<Tensor> {
    let special = rng.u8(..4) == 0;
    let values: Vec<Scalar> = (0..ty.len()).map(|_| element(rng, ty.element, special)).collect();
    Ok(Tensor::from_scalars(ty.element, Shape::new(ty.dims.clone())?, values)?)
}

/// A tensor of integers from 0 up to `bound`, `bound` left out.
pub(crate) fn indices(rng: &mut Rng, ty: &Ty, bound: usize) -> anyhow::Result<Tensor> {
    let values: Vec<Scalar> = (0..ty.len()).map(|_| Scalar::Int(rng.usize(..bound.max(1)) as i128)).collect();
    Ok(Tensor::from_scalars(ty.element, Shape::new(ty.dims.clone())?, values)?)
}

fn element(rng: &mut Rng, element: ElementType, special: bool) -> Scalar {
    match element {
        ElementType::Bool => Scalar::Bool(rng.bool()),
        ElementType::Int(int) => Scalar::Int(integer(rng, int, special)),
        ElementType::Index => Scalar::Int(i128::from(rng.u8(..))),
        ElementType::Float(float) => Scalar::Float(number(rng, float, special)),
        // An infinite part makes most complex functions a matter of convention.
        ElementType::Complex(part) => Scalar::Complex(number(rng, part, false), number(rng, part, false)),
    }
}

fn integer(rng: &mut Rng, int: IntType, special: bool) -> i128 {
    let small = i128::from(rng.i8(-9..10));
    let small = if int.is_signed() { small } else { small.abs() };
    if special && rng.u8(..4) == 0 {
        return *rng.choice(&[int.min(), int.max(), int.max() - 1, 0]).unwrap_or(&0);
    }
    small
}

fn number(rng: &mut Rng, float: FloatType, special: bool) -> f64 {
    if special && rng.u8(..4) == 0 {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4];
        return *rng.choice(&odd).unwrap_or(&0.0);
    }
    let value = match rng.u8(..4) {
        0 => f64::from(rng.i8(-9..10)),
        1 => rng.f64() * 20.0 - 10.0,
        _ => rng.f64() * 4.0 - 2.0,
    };
    float.format().round(value)
}
