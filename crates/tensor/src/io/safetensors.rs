//! `safetensors` files: named tensors.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use super::io_error;
use crate::layout::{from_packed, to_packed};
use crate::{ElementType, Error, FloatType, Shape, Tensor};

const FORMAT: &str = "safetensors";

/// The pairs of file type and element type.
const TYPES: &[(Dtype, ElementType)] = &[
    (Dtype::BOOL, ElementType::Bool),
    (Dtype::U8, ElementType::U8),
    (Dtype::I8, ElementType::I8),
    (Dtype::U16, ElementType::U16),
    (Dtype::I16, ElementType::I16),
    (Dtype::U32, ElementType::U32),
    (Dtype::I32, ElementType::I32),
    (Dtype::U64, ElementType::U64),
    (Dtype::I64, ElementType::I64),
    (Dtype::F16, ElementType::F16),
    (Dtype::BF16, ElementType::BF16),
    (Dtype::F32, ElementType::F32),
    (Dtype::F64, ElementType::F64),
    (Dtype::C64, ElementType::C64),
    (Dtype::F4, ElementType::Float(FloatType::F4E2M1Fn)),
    (Dtype::F6_E2M3, ElementType::Float(FloatType::F6E2M3Fn)),
    (Dtype::F6_E3M2, ElementType::Float(FloatType::F6E3M2Fn)),
    (Dtype::F8_E4M3, ElementType::Float(FloatType::F8E4M3Fn)),
    (Dtype::F8_E5M2, ElementType::Float(FloatType::F8E5M2)),
    (Dtype::F8_E8M0, ElementType::Float(FloatType::F8E8M0Fnu)),
];

fn malformed(reason: impl Into<String>) -> Error {
    Error::Malformed { format: FORMAT, reason: reason.into() }
}

#[allow(clippy::needless_pass_by_value)] // The shape `map_err` asks for.
fn refused(error: SafeTensorError) -> Error {
    malformed(error.to_string())
}

/// Reads all tensors of a file's bytes, by name.
///
/// # Errors
///
/// When the header, a type or a size is not as the format asks for.
pub fn decode(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, Error> {
    let file = SafeTensors::deserialize(bytes).map_err(refused)?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.tensors() {
        let element =
            TYPES.iter().find(|(dtype, _)| *dtype == view.dtype()).map(|(_, element)| *element).ok_or_else(
                || malformed(format!("tensor `{name}` has the unknown type {:?}", view.dtype())),
            )?;
        let shape = Shape::new(view.shape())?;
        let tensor = match element {
            ElementType::Bool => Tensor::from_bytes(element, shape, view.data())?,
            _ => from_packed(element, shape, view.data())?,
        };
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// The bytes of a file that holds these tensors.
///
/// # Errors
///
/// When the format has no code for an element type.
pub fn encode<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, Error> {
    let mut data = Vec::new();
    for (name, tensor) in tensors {
        let element = tensor.element_type();
        let dtype = TYPES
            .iter()
            .find(|(_, candidate)| *candidate == element)
            .map(|(dtype, _)| *dtype)
            .ok_or(Error::UnsupportedElement { format: FORMAT, element })?;
        let bytes = if element == ElementType::Bool { tensor.bytes().to_vec() } else { to_packed(tensor) };
        data.push((name, dtype, tensor.dims().to_vec(), bytes));
    }
    let mut views = Vec::new();
    for (name, dtype, dims, bytes) in &data {
        views.push((*name, TensorView::new(*dtype, dims.clone(), bytes).map_err(refused)?));
    }
    safetensors::serialize(views, None).map_err(refused)
}

/// Reads all tensors of a file, by name.
///
/// # Errors
///
/// When the file cannot be read or is not a `safetensors` file.
pub fn read(path: &Path) -> Result<BTreeMap<String, Tensor>, Error> {
    decode(&std::fs::read(path).map_err(io_error(path))?)
}

/// Writes tensors to a file.
///
/// # Errors
///
/// When the format has no code for an element type or the file cannot be written.
pub fn write<'a>(path: &Path, tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<(), Error> {
    std::fs::write(path, encode(tensors)?).map_err(io_error(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;

    #[test]
    fn every_type_of_the_format_reads_back() {
        for (_, element) in TYPES {
            let shape = Shape::new([2, 4]).expect("small");
            let values = (0..8).map(|i| {
                if element.is_complex() { Scalar::Complex(1.0, 2.0) } else { Scalar::Int(i % 2 + 1) }
            });
            let tensor = Tensor::from_scalars(*element, shape, values).expect("fits");
            let bytes = encode([("x", &tensor)]).expect("a type of the format");
            let back = decode(&bytes).expect("what was written");
            assert!(back["x"].identical(&tensor), "{element}");
        }
    }

    #[test]
    fn files_round_trip() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.safetensors");
        let tensor = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).expect("fits");
        write(&path, [("weights", &tensor)]).expect("writable");
        assert!(read(&path).expect("readable")["weights"].identical(&tensor));
        assert!(matches!(read(&folder.path().join("none")), Err(Error::Io { .. })));
    }

    #[test]
    fn damage_is_an_error() {
        let tensor = Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).expect("fits");
        let bytes = encode([("x", &tensor)]).expect("a type of the format");
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let complex = Tensor::zeros(ElementType::C128, Shape::scalar()).expect("small");
        assert!(matches!(encode([("x", &complex)]), Err(Error::UnsupportedElement { .. })));
    }
}
