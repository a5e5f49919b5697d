//! Element types that tensor files have no code for, carried by types that they have.
//!
//! | type | carried as |
//! | --- | --- |
//! | `i2`, `i4` | the same numbers as `i8` |
//! | `ui2`, `ui4` | the same numbers as `ui8` |
//! | 8-bit and narrower floats | their bits as `ui8` |
//! | `complex<f64>` | `f64` with a last dimension of two: real and imaginary part |
//! | `index` | the same numbers as `i64` |

use crate::{ElementType, Error, IntType, Scalar, Shape, Tensor};

/// The type that carries elements of another, where it is not their own.
fn carrier(element: ElementType) -> Option<ElementType> {
    match element {
        ElementType::Int(IntType::I2 | IntType::I4) => Some(ElementType::I8),
        ElementType::Int(IntType::U2 | IntType::U4) => Some(ElementType::U8),
        ElementType::Float(_) if element.bits() <= 8 => Some(ElementType::U8),
        ElementType::Complex(part) if element == ElementType::C128 => Some(ElementType::Float(part)),
        ElementType::Index => Some(ElementType::I64),
        _ => None,
    }
}

/// A tensor in the type that carries it; the tensor itself where no other type carries its elements.
///
/// # Errors
///
/// When there is no memory for it.
pub fn to_carrier(tensor: &Tensor) -> Result<Tensor, Error> {
    let element = tensor.element_type();
    let Some(carrier) = carrier(element) else { return Ok(tensor.clone()) };
    let mut dims = tensor.dims().to_vec();
    match element {
        ElementType::Int(_) => Tensor::from_scalars(carrier, tensor.shape().clone(), tensor.iter()),
        ElementType::Complex(_) => {
            dims.push(2);
            Tensor::from_bytes(carrier, Shape::new(dims)?, tensor.bytes())
        }
        _ => Tensor::from_bytes(carrier, tensor.shape().clone(), tensor.bytes()),
    }
}

/// A tensor of `element` from one that carries it; `None` when this one does not.
///
/// # Errors
///
/// When a number is not one of the type, or there is no memory.
pub fn from_carrier(tensor: &Tensor, element: ElementType) -> Result<Option<Tensor>, Error> {
    if carrier(element) != Some(tensor.element_type()) {
        return Ok(None);
    }
    let shape = match (element, tensor.dims().split_last()) {
        (ElementType::Complex(_), Some((2, dims))) => Shape::new(dims)?,
        (ElementType::Complex(_), _) => return Ok(None),
        _ => tensor.shape().clone(),
    };
    let carried = match element {
        ElementType::Int(_) => Tensor::from_scalars(element, shape, tensor.iter())?,
        _ => Tensor::from_bytes(element, shape, tensor.bytes())?,
    };
    let changed =
        |(carried, given): (Scalar, Scalar)| matches!(element, ElementType::Int(_)) && carried != given;
    let wide =
        element.bits() < 8 && tensor.bytes().iter().any(|byte| u32::from(*byte) >> element.bits() != 0);
    let outside = match element {
        ElementType::Int(_) => carried.iter().zip(tensor.iter()).any(changed),
        _ => wide,
    };
    if outside {
        let reason = format!("a number is not one of type {element}");
        return Err(Error::Malformed { format: "tensor", reason });
    }
    Ok(Some(carried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_was() {
        for element in ElementType::all() {
            let shape = Shape::new([3]).expect("small");
            let values = (0..3).map(|value| Scalar::Int(i128::from(value % 2)));
            let tensor = Tensor::from_scalars(element, shape, values).expect("fits");
            let stored = to_carrier(&tensor).expect("fits");
            if stored.element_type() == element {
                assert!(carrier(element).is_none() && stored.identical(&tensor), "{element}");
                assert!(from_carrier(&stored, element).expect("no error").is_none());
            } else {
                let back = from_carrier(&stored, element).expect("in range").expect("carried");
                assert!(back.identical(&tensor), "{element}");
            }
        }
    }

    #[test]
    fn numbers_outside_the_type_are_refused() {
        let nine = Tensor::from_slice(&[1], &[9i8]).expect("fits");
        assert!(from_carrier(&nine, ElementType::I4).is_err());
        let minus = Tensor::from_slice(&[1], &[-8i8]).expect("fits");
        let carried = from_carrier(&minus, ElementType::I4).expect("in range").expect("carried");
        assert_eq!(carried.get(0), Scalar::Int(-8));
        let wide = Tensor::from_slice(&[1], &[0x10u8]).expect("fits");
        assert!(from_carrier(&wide, "f4E2M1FN".parse().expect("a type")).is_err());
        assert!(from_carrier(&wide, ElementType::F32).expect("no error").is_none());
    }
}
