//! Constants from the bytes that files have: text in hexadecimal, bytecode, resources.

use warpforge_ir::Blob;
use warpforge_ir::attr::DenseElements;
use warpforge_ir::types::{ElementType, TensorType};

/// A constant from the bytes that MLIR keeps of it: those of one element, which stands for all, or of every element.
///
/// Truth values may be packed in bits. The bytes are shared where they already have the layout of constants.
pub(crate) fn from_file(ty: TensorType, bytes: Blob) -> Result<DenseElements, String> {
    if ty.element().is_quantized() {
        return Err("a constant of quantized elements is given in its storage type".to_owned());
    }
    let storage = ty.element().storage().ok_or("a constant needs numeric elements")?;
    let count = ty.element_count().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or("a constant needs known dimensions")?;
    let splat = match (storage, &*bytes) {
        _ if count <= 1 => false,
        // Of up to eight truth values one byte may also be the bits: only all bits set or none are one value.
        (ElementType::Bool, [only]) => count > 8 || matches!(only, 0 | 0xFF),
        _ => bytes.len() == storage.byte_width(),
    };
    let built = if splat {
        DenseElements::splat(ty, widen(storage, 1, bytes))
    } else if count == 0 {
        DenseElements::raw(ty, Vec::new())
    } else {
        DenseElements::raw(ty, widen(storage, count, bytes))
    };
    built.map_err(|error| error.to_string())
}

/// Bytes as files have them in the layout of constants: truth values packed in bits are spread out, and narrow signed
/// integers get their sign; bits beside a narrow number mean nothing.
fn widen(storage: ElementType, count: usize, bytes: Blob) -> Blob {
    match storage {
        ElementType::Bool if bytes.len() == count => {
            if bytes.iter().all(|b| *b < 2) {
                return bytes;
            }
            // All bits set is another spelling of true.
            Blob::from(bytes.iter().map(|b| u8::from(*b != 0)).collect::<Vec<u8>>())
        }
        ElementType::Bool if bytes.len() == count.div_ceil(8) => {
            let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
            Blob::from(bits.take(count).collect::<Vec<u8>>())
        }
        ElementType::Int(int) if int.bits() < 8 => {
            let narrow = |byte: &u8| int.wrap(i128::from(*byte)) as u8;
            Blob::from(bytes.iter().map(narrow).collect::<Vec<u8>>())
        }
        ElementType::Float(float) if float.format().bits() < 8 => {
            let mask = (1u8 << float.format().bits()) - 1;
            if bytes.iter().all(|byte| byte & !mask == 0) {
                return bytes;
            }
            Blob::from(bytes.iter().map(|byte| byte & mask).collect::<Vec<u8>>())
        }
        _ => bytes,
    }
}

/// The bytes that MLIR keeps of a constant: the other way round.
pub(crate) fn to_file(elements: &DenseElements) -> Option<Blob> {
    let storage = elements.ty().element().storage()?;
    let splat = elements.as_splat();
    let bytes = match splat {
        Some(element) => Blob::from(element.to_vec()),
        None => elements.bytes()?,
    };
    let count = usize::try_from(elements.ty().element_count()?).ok()?;
    Some(match storage {
        ElementType::Bool if splat.is_some() && count > 1 => {
            Blob::from(bytes.iter().map(|b| if *b == 0 { 0 } else { 0xFF }).collect::<Vec<u8>>())
        }
        ElementType::Bool => {
            let pack = |bits: &[u8]| bits.iter().rev().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit != 0));
            Blob::from(bytes.chunks(8).map(pack).collect::<Vec<u8>>())
        }
        ElementType::Int(int) if int.bits() < 8 => {
            let mask = (1u8 << int.bits()) - 1;
            Blob::from(bytes.iter().map(|b| b & mask).collect::<Vec<u8>>())
        }
        _ => bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(element: ElementType, count: u64, bytes: &[u8]) -> Option<Vec<i64>> {
        from_file(TensorType::fixed(&[count], element), Blob::from(bytes.to_vec())).ok()?.to_i64s()
    }

    #[test]
    fn truth_values_are_bits_bytes_or_one_for_all() {
        assert_eq!(read(ElementType::Bool, 3, &[0b101]), Some(vec![1, 0, 1]));
        assert_eq!(read(ElementType::Bool, 3, &[0xFF]), Some(vec![1, 1, 1]));
        assert_eq!(read(ElementType::Bool, 3, &[0, 1, 1]), Some(vec![0, 1, 1]));
        assert_eq!(read(ElementType::Bool, 9, &[1]), Some(vec![1; 9]));
        assert_eq!(read(ElementType::Bool, 9, &[0b10, 1]), Some(vec![0, 1, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(read(ElementType::Bool, 1, &[0xFF]), Some(vec![1]));
        assert_eq!(read(ElementType::Bool, 9, &[1, 1, 1]), None);
    }

    #[test]
    fn narrow_integers_get_their_sign() {
        assert_eq!(read(ElementType::I4, 2, &[0x0F, 0x07]), Some(vec![-1, 7]));
        assert_eq!(read(ElementType::U4, 2, &[0x0F, 0x07]), Some(vec![15, 7]));
        assert_eq!(read(ElementType::I2, 4, &[0x03]), Some(vec![-1; 4]));
    }

    #[test]
    fn bits_beside_narrow_floats_are_dropped() {
        let ty = TensorType::fixed(&[2], ElementType::Float(warpforge_ir::types::FloatType::F4E2M1Fn));
        let read = from_file(ty, Blob::from(vec![0xF6, 0x03])).unwrap();
        assert_eq!(read.bytes().unwrap().to_vec(), [0x06, 0x03]);
    }

    #[test]
    fn what_is_written_reads_back() {
        for (element, bytes) in [
            (ElementType::Bool, vec![1u8, 0, 1]),
            (ElementType::Bool, vec![1; 3]),
            (ElementType::Bool, vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (ElementType::I4, vec![0xFF, 7, 0xF8]),
            (ElementType::I8, vec![1, 2, 3]),
        ] {
            let ty = TensorType::fixed(&[bytes.len() as u64], element);
            let elements = DenseElements::raw(ty.clone(), bytes).unwrap();
            assert_eq!(from_file(ty, to_file(&elements).unwrap()).unwrap(), elements);
        }
    }
}
