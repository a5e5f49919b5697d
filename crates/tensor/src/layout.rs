//! Byte layouts other than the host tensor's own: MLIR's dense blobs and packed sub-byte elements.
//!
//! MLIR's dense blob gives each element whole bytes, except truth values, which it packs eight to a byte, lowest bit
//! first; newer releases give those a byte each as well. A blob of a single element fills the whole tensor.

use crate::{ElementType, Error, Scalar, Shape, Tensor};

/// Reads MLIR's dense blob.
///
/// # Errors
///
/// When the number of bytes fits neither all elements nor one, or a code has bits its type does not.
pub fn from_mlir_dense(element: ElementType, shape: Shape, bytes: &[u8]) -> Result<Tensor, Error> {
    let count = shape.num_elements();
    let width = element.byte_width();
    if element == ElementType::Bool {
        return bools_from_dense(shape, bytes);
    }
    if bytes.len() == width && count != 1 {
        let splat = Tensor::from_bytes(element, Shape::scalar(), bytes)?;
        return normalised(Tensor::splat(element, shape, splat.get(0))?);
    }
    normalised(Tensor::from_bytes(element, shape, bytes)?)
}

fn bools_from_dense(shape: Shape, bytes: &[u8]) -> Result<Tensor, Error> {
    let count = shape.num_elements();
    let packed = count.div_ceil(8);
    match bytes {
        // All bits set is how the packed form says "true everywhere".
        [0x00 | 0x01 | 0xff] if count != 1 && (packed != 1 || bytes[0] == 0xff) => {
            Tensor::splat(ElementType::Bool, shape, Scalar::Bool(bytes[0] != 0))
        }
        _ if bytes.len() == packed => {
            let bit = |position: usize| Scalar::Bool(bytes[position / 8] >> (position % 8) & 1 == 1);
            Tensor::from_scalars(ElementType::Bool, shape, (0..count).map(bit))
        }
        _ if bytes.len() == count => {
            Tensor::from_scalars(ElementType::Bool, shape, bytes.iter().map(|&byte| Scalar::Bool(byte != 0)))
        }
        _ => Err(Error::SizeMismatch { what: "number of bytes", expected: packed, found: bytes.len() }),
    }
}

/// Clears the bits above a sub-byte type's width: some writers extend the sign into them.
fn normalised(mut tensor: Tensor) -> Result<Tensor, Error> {
    let bits = tensor.element_type().bits();
    if bits < 8 {
        let mask = (1u8 << bits) - 1;
        tensor.bytes_mut().iter_mut().for_each(|byte| *byte &= mask);
    }
    Ok(tensor)
}

/// Writes MLIR's dense blob, all elements of it: truth values packed, signed sub-byte integers not extended.
#[must_use]
pub fn to_mlir_dense(tensor: &Tensor) -> Vec<u8> {
    if tensor.element_type() == ElementType::Bool {
        return to_packed(tensor);
    }
    tensor.bytes().to_vec()
}

/// Reads elements packed without gaps, lowest bits first; wider types are as in the host tensor.
///
/// # Errors
///
/// When the number of bytes is not what the shape asks for.
pub fn from_packed(element: ElementType, shape: Shape, bytes: &[u8]) -> Result<Tensor, Error> {
    let bits = element.bits() as usize;
    if bits >= 8 {
        return Tensor::from_bytes(element, shape, bytes);
    }
    let mut tensor = Tensor::zeros(element, shape)?;
    let expected = (tensor.len() * bits).div_ceil(8);
    if bytes.len() != expected {
        return Err(Error::SizeMismatch { what: "number of bytes", expected, found: bytes.len() });
    }
    for (position, code) in tensor.bytes_mut().iter_mut().enumerate() {
        let start = position * bits;
        let low = u16::from(bytes[start / 8]);
        let high = u16::from(bytes.get(start / 8 + 1).copied().unwrap_or(0));
        *code = ((low | high << 8) >> (start % 8)) as u8 & ((1 << bits) - 1);
    }
    Ok(tensor)
}

/// Writes elements packed without gaps, lowest bits first; wider types are as in the host tensor.
#[must_use]
pub fn to_packed(tensor: &Tensor) -> Vec<u8> {
    let bits = tensor.element_type().bits() as usize;
    if bits >= 8 {
        return tensor.bytes().to_vec();
    }
    let mut packed = vec![0u8; (tensor.len() * bits).div_ceil(8)];
    for (position, &code) in tensor.bytes().iter().enumerate() {
        let start = position * bits;
        let spread = u16::from(code) << (start % 8);
        packed[start / 8] |= spread as u8;
        if spread > 0xff {
            packed[start / 8 + 1] |= (spread >> 8) as u8;
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FloatType;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).expect("small")
    }

    #[test]
    fn truth_values_are_packed_or_whole() {
        let expected = [true, false, true, true, false, false, false, false, true];
        let read = |bytes: &[u8]| {
            from_mlir_dense(ElementType::Bool, shape(&[9]), bytes)
                .map(|tensor| tensor.iter().map(Scalar::is_true).collect::<Vec<_>>())
                .ok()
        };
        assert_eq!(read(&[0b0000_1101, 1]), Some(expected.to_vec()));
        assert_eq!(read(&[1, 0, 1, 1, 0, 0, 0, 0, 1]), Some(expected.to_vec()));
        assert_eq!(read(&[0xff]), Some(vec![true; 9]));
        assert_eq!(read(&[1, 2, 3]), None);
    }

    #[test]
    fn one_element_fills_the_tensor() {
        let tensor = from_mlir_dense(ElementType::I16, shape(&[3]), &[0xfe, 0xff]).expect("a splat");
        assert_eq!(tensor.as_slice::<i16>().expect("i16"), [-2; 3]);
        assert!(from_mlir_dense(ElementType::I16, shape(&[3]), &[0; 5]).is_err());
    }

    #[test]
    fn extended_signs_are_dropped() {
        let tensor = from_mlir_dense(ElementType::I4, shape(&[2]), &[0xff, 0x07]).expect("two codes");
        assert_eq!(tensor.iter().collect::<Vec<_>>(), [Scalar::Int(-1), Scalar::Int(7)]);
        assert_eq!(tensor.bytes(), [0x0f, 0x07]);
    }

    #[test]
    fn packing_reads_back() {
        for element in
            [ElementType::Bool, ElementType::I2, ElementType::U4, ElementType::Float(FloatType::F6E2M3Fn)]
        {
            let mask = ((1u16 << element.bits()) - 1) as u8;
            let codes: Vec<u8> = (0..13u8).map(|i| i.wrapping_mul(37) & mask).collect();
            let tensor = Tensor::from_bytes(element, shape(&[13]), &codes).expect("fits");
            let packed = to_packed(&tensor);
            assert_eq!(packed.len(), (13 * element.bits() as usize).div_ceil(8));
            assert!(
                from_packed(element, shape(&[13]), &packed).expect("fits").identical(&tensor),
                "{element}"
            );
        }
        let two = Tensor::from_bytes(ElementType::U4, shape(&[2]), &[0x1, 0xa]).expect("fits");
        assert_eq!(to_packed(&two), [0xa1]);
    }
}
