//! Inputs from a seed, and zeros.

use fastrand::Rng;
use warpforge_ir::TensorType;
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use crate::{Error, Result};

/// A tensor of random elements, the same for the same seed, type and `stream` on every machine.
///
/// Floats and the parts of complex numbers are uniform from -1 to 1. Truth values are either, with equal chance.
/// Integers are 0 or 1: small enough for the indices of the smallest embedding, and what a mask has. Elements of
/// `f8E8M0FNU`, which has neither zero nor sign, are from ½ to 1.
///
/// # Errors
///
/// When a dimension is not known, the element type is not known, or there is no memory.
pub fn seeded(ty: &TensorType, seed: u64, stream: u64) -> Result<Tensor> {
    let (element, shape) = known(ty)?;
    // An odd multiplier, so that neighbouring streams start far apart.
    let mut rng = Rng::with_seed(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = shape.num_elements();
    let values = std::iter::repeat_with(|| draw(&mut rng, element)).take(count);
    Ok(Tensor::from_scalars(element, shape, values)?)
}

/// A tensor of zeros, which is what state starts with.
///
/// # Errors
///
/// As [`seeded`].
pub fn zeros(ty: &TensorType) -> Result<Tensor> {
    let (element, shape) = known(ty)?;
    Ok(Tensor::zeros(element, shape)?)
}

fn known(ty: &TensorType) -> Result<(ElementType, Shape)> {
    let unknown = || Error::Inputs(vec![format!("{ty} cannot be made: it is not fully known")]);
    let element = ty.element().storage().ok_or_else(unknown)?;
    Ok((element, Shape::new(ty.shape_usize().ok_or_else(unknown)?)?))
}

fn draw(rng: &mut Rng, element: ElementType) -> Scalar {
    match element {
        ElementType::Bool => Scalar::Bool(rng.bool()),
        ElementType::Int(_) | ElementType::Index => Scalar::Int(i128::from(rng.bool())),
        ElementType::Float(FloatType::F8E8M0Fnu) => Scalar::Float(0.5 + rng.f64() / 2.0),
        ElementType::Float(_) => Scalar::Float(symmetric(rng)),
        ElementType::Complex(_) => Scalar::Complex(symmetric(rng), symmetric(rng)),
    }
}

fn symmetric(rng: &mut Rng) -> f64 {
    2.0 * rng.f64() - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_small_reproducible_values() {
        for element in ElementType::all() {
            let ty = TensorType::fixed(&[4, 16], element);
            let tensor = seeded(&ty, 7, 0).unwrap();
            assert!(tensor.identical(&seeded(&ty, 7, 0).unwrap()), "{element}");
            assert!(tensor.iter().all(|value| {
                let (re, im) = value.to_complex();
                re.abs() <= 1.0 && im.abs() <= 1.0
            }));
            assert!(tensor.iter().any(|value| value != tensor.get(0)) || element.bits() == 8, "{element}");
        }
    }

    #[test]
    fn seeds_and_streams_differ() {
        let ty = TensorType::fixed(&[8], ElementType::F32);
        let first = seeded(&ty, 1, 0).unwrap();
        assert!(!first.identical(&seeded(&ty, 2, 0).unwrap()));
        assert!(!first.identical(&seeded(&ty, 1, 1).unwrap()));
    }

    #[test]
    fn an_unknown_shape_is_an_error() {
        let ty = TensorType::new(vec![warpforge_ir::Dim::Dynamic], ElementType::F32);
        assert!(seeded(&ty, 0, 0).is_err());
    }
}
