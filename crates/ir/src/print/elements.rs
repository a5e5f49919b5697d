//! Constants as MLIR writes them: a splat, a nested list, or one hexadecimal string when there are many elements.

use std::fmt::{self, Write};

use super::float_code_text;
use crate::attr::{DenseElements, ElementData, int_from_bytes};
use crate::types::{ElementType, FloatType};

/// Constants with more elements than this are written as one hexadecimal string.
const LISTED: u64 = 100;

/// Writes `dense<…> : tensor<…>`.
pub(crate) fn write_elements(out: &mut impl Write, elements: &DenseElements) -> fmt::Result {
    let ty = elements.ty();
    match (elements.data(), ty.element().storage()) {
        (ElementData::Resource(name), _) => write!(out, "dense_resource<{name}>")?,
        (ElementData::Splat(element), Some(storage)) => {
            out.write_str("dense<")?;
            write_element(out, storage, element)?;
            out.write_str(">")?;
        }
        (ElementData::Raw(bytes), Some(storage)) => {
            out.write_str("dense<")?;
            let count = ty.element_count().unwrap_or(0);
            if count > LISTED {
                write_hex(out, storage, bytes)?;
            } else if count > 0 {
                let shape = ty.shape_usize().unwrap_or_default();
                let mut pieces = bytes.chunks_exact(storage.byte_width());
                write_nested(out, storage, &shape, &mut pieces)?;
            }
            out.write_str(">")?;
        }
        (_, None) => out.write_str("dense<>")?,
    }
    write!(out, " : {ty}")
}

fn write_nested<'a>(
    out: &mut impl Write,
    storage: ElementType,
    shape: &[usize],
    pieces: &mut impl Iterator<Item = &'a [u8]>,
) -> fmt::Result {
    let Some((&size, inner)) = shape.split_first() else {
        return pieces.next().map_or(Ok(()), |piece| write_element(out, storage, piece));
    };
    out.write_str("[")?;
    for index in 0..size {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_nested(out, storage, inner, pieces)?;
    }
    out.write_str("]")
}

fn write_element(out: &mut impl Write, storage: ElementType, bytes: &[u8]) -> fmt::Result {
    let code = |bytes: &[u8]| {
        let mut wide = [0u8; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    let float = |format: FloatType, bytes: &[u8]| float_code_text(format, code(bytes));
    match storage {
        ElementType::Bool => out.write_str(if bytes.iter().any(|b| *b != 0) { "true" } else { "false" }),
        ElementType::Int(_) | ElementType::Index => {
            write!(out, "{}", int_from_bytes(storage, bytes).unwrap_or_default())
        }
        ElementType::Float(format) => out.write_str(&float(format, bytes)),
        ElementType::Complex(format) => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            write!(out, "({},{})", float(format, real), float(format, imaginary))
        }
    }
}

fn write_hex(out: &mut impl Write, storage: ElementType, bytes: &[u8]) -> fmt::Result {
    out.write_str("\"0x")?;
    hex_digits(storage, bytes, |digits| out.write_str(digits))?;
    out.write_str("\"")
}

/// The hexadecimal digits of elements, piece by piece.
pub(super) fn hex_digits<E>(
    storage: ElementType,
    bytes: &[u8],
    mut take: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    // Large enough for a buffered writer to pass the digits on as they are.
    const PIECE: usize = 1 << 19;
    // A type narrower than a byte is written zero-extended.
    let mask = if storage.bits() < 8 { (1u8 << storage.bits()) - 1 } else { 0xFF };
    let mut text = vec![0; 2 * bytes.len().min(PIECE)];
    for chunk in bytes.chunks(PIECE) {
        let text = &mut text[..2 * chunk.len()];
        for (pair, byte) in text.chunks_exact_mut(2).zip(chunk) {
            pair.copy_from_slice(&two_digits(byte & mask));
        }
        take(std::str::from_utf8(text).unwrap_or_default())?;
    }
    Ok(())
}

/// The two digits of a byte, both at once and without a table, so that a loop of it is done many bytes at a time.
#[inline]
fn two_digits(byte: u8) -> [u8; 2] {
    let halves = u16::from(byte >> 4) | u16::from(byte & 15) << 8;
    // A half of ten or more carries into its fifth bit when six is added.
    let letters = ((halves + 0x0606) >> 4) & 0x0101;
    (halves + 0x3030 + letters * u16::from(b'A' - b'9' - 1)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TensorType;

    fn text(elements: &DenseElements) -> String {
        let mut out = String::new();
        write_elements(&mut out, elements).unwrap();
        out
    }

    #[test]
    fn many_elements_become_a_hexadecimal_string() {
        let bytes: Vec<u8> = (0..101).map(|i| if i == 0 { 0xFE } else { 1 }).collect();
        let ty = TensorType::fixed(&[101], ElementType::I4);
        let shown = text(&DenseElements::raw(ty, bytes).unwrap());
        assert!(shown.starts_with("dense<\"0x0E0101"), "{shown}");
        assert!(shown.ends_with("01\"> : tensor<101xi4>"));
    }

    #[test]
    fn every_byte_has_its_digits() {
        for byte in 0..=255u8 {
            assert_eq!(two_digits(byte), format!("{byte:02X}").as_bytes());
        }
    }

    #[test]
    fn complex_and_empty_constants() {
        let mut bytes = 1.0f32.to_le_bytes().to_vec();
        bytes.extend(2.0f32.to_le_bytes());
        let ty = TensorType::fixed(&[], ElementType::C64);
        assert_eq!(
            text(&DenseElements::raw(ty, bytes).unwrap()),
            "dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>"
        );
        let empty = TensorType::fixed(&[2, 0], ElementType::F32);
        assert_eq!(text(&DenseElements::raw(empty, vec![]).unwrap()), "dense<> : tensor<2x0xf32>");
    }
}
