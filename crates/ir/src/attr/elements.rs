//! Dense constants: the bytes of every element, or of one that stands for all.

use crate::Blob;
use crate::types::{ElementType, TensorType};

/// A constant tensor.
///
/// Elements are little-endian and row-major, each in [`ElementType::byte_width`] bytes. A type narrower than a byte has
/// a byte of its own: signed integers are sign-extended into it, other values are zero-extended. Truth values are
/// bytes 0 and 1. Complex elements are the real part, then the imaginary part.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseElements {
    ty: TensorType,
    data: ElementData,
}

/// Where the elements of a constant are.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementData {
    /// One element that all are equal to.
    Splat(Blob),
    /// All elements.
    Raw(Blob),
    /// Named data in the file's resource section that has not been found there.
    Resource(String),
}

/// Why bytes do not make a constant of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementsError {
    /// The type has a dimension that is not known, too many elements, or elements that are no numbers.
    NotConstantType,
    /// The number of bytes is neither that of one element nor that of all.
    WrongSize {
        /// Bytes that all elements take.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
}

impl std::fmt::Display for ElementsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ElementsError::NotConstantType => {
                f.write_str("a constant needs known dimensions and numeric elements")
            }
            ElementsError::WrongSize { expected, found } => {
                write!(f, "the constant has {found} bytes of data where its type takes {expected}")
            }
        }
    }
}

impl std::error::Error for ElementsError {}

impl DenseElements {
    /// A constant whose elements are all equal to the one given.
    pub fn splat(ty: TensorType, element: impl Into<Blob>) -> Result<Self, ElementsError> {
        let element = element.into();
        let width = element_width(&ty)?;
        if ty.element_count().is_none() {
            return Err(ElementsError::NotConstantType);
        }
        if element.len() != width {
            return Err(ElementsError::WrongSize { expected: width, found: element.len() });
        }
        Ok(Self { ty, data: ElementData::Splat(element) })
    }

    /// A constant from the bytes of all its elements. Several equal elements become a splat.
    pub fn raw(ty: TensorType, bytes: impl Into<Blob>) -> Result<Self, ElementsError> {
        let bytes = bytes.into();
        let width = element_width(&ty)?;
        let expected = ty.byte_count().ok_or(ElementsError::NotConstantType)?;
        if bytes.len() != expected {
            return Err(ElementsError::WrongSize { expected, found: bytes.len() });
        }
        // All elements equal the first exactly when the bytes equal themselves shifted by one element.
        if expected > 0 && bytes[width..] == bytes[..expected - width] {
            let one = bytes.slice(0..width).unwrap_or(bytes);
            return Ok(Self { ty, data: ElementData::Splat(Blob::from(one.to_vec())) });
        }
        Ok(Self { ty, data: ElementData::Raw(bytes) })
    }

    /// A constant whose data is named in the file but was not there.
    pub fn resource(ty: TensorType, name: impl Into<String>) -> Self {
        Self { ty, data: ElementData::Resource(name.into()) }
    }

    /// A tensor of 64-bit integers.
    pub fn i64s(dims: &[u64], values: &[i64]) -> Result<Self, ElementsError> {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::raw(TensorType::fixed(dims, ElementType::I64), bytes)
    }

    /// The type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The same data under another type with as many elements of the same width.
    pub fn with_type(&self, ty: TensorType) -> Result<Self, ElementsError> {
        if ty.byte_count() != self.ty.byte_count() || element_width(&ty)? != element_width(&self.ty)? {
            return Err(ElementsError::NotConstantType);
        }
        Ok(Self { ty, data: self.data.clone() })
    }

    /// The data.
    pub fn data(&self) -> &ElementData {
        &self.data
    }

    /// The bytes of the element that all are equal to, if they are.
    pub fn as_splat(&self) -> Option<&[u8]> {
        match &self.data {
            ElementData::Splat(element) => Some(element),
            _ => None,
        }
    }

    /// The bytes of all elements: shared when stored, built when a splat, `None` when the data is missing or too large.
    pub fn bytes(&self) -> Option<Blob> {
        match &self.data {
            ElementData::Raw(bytes) => Some(bytes.clone()),
            ElementData::Splat(element) => {
                let count = usize::try_from(self.ty.element_count()?).ok()?;
                count.checked_mul(element.len())?;
                Some(Blob::from(element.repeat(count)))
            }
            ElementData::Resource(_) => None,
        }
    }

    /// The bytes of the element at a row-major index.
    pub fn element_bytes(&self, index: usize) -> Option<&[u8]> {
        match &self.data {
            ElementData::Splat(element) => Some(element),
            ElementData::Raw(bytes) => {
                let width = element_width(&self.ty).ok()?;
                bytes.get(index.checked_mul(width)?..(index + 1).checked_mul(width)?)
            }
            ElementData::Resource(_) => None,
        }
    }

    /// The element at a row-major index as an integer; `None` unless elements are integers or truth values.
    pub fn int(&self, index: usize) -> Option<i128> {
        let storage = self.ty.element().storage()?;
        let bytes = self.element_bytes(index)?;
        int_from_bytes(storage, bytes)
    }

    /// All elements as 64-bit integers; `None` unless they are integers or truth values that fit.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        let count = usize::try_from(self.ty.element_count()?).ok()?;
        // A splat of an absurd size must not be spread out.
        if self.as_splat().is_some() && count > 1 << 20 {
            return None;
        }
        (0..count).map(|index| i64::try_from(self.int(index)?).ok()).collect()
    }
}

fn element_width(ty: &TensorType) -> Result<usize, ElementsError> {
    ty.element().storage().map(ElementType::byte_width).ok_or(ElementsError::NotConstantType)
}

/// An integer or truth value from the bytes of one element.
pub fn int_from_bytes(storage: ElementType, bytes: &[u8]) -> Option<i128> {
    let signed = match storage {
        ElementType::Bool => false,
        ElementType::Index => true,
        ElementType::Int(int) => int.is_signed(),
        _ => return None,
    };
    let mut wide = [0u8; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    if signed && bytes.last().is_some_and(|top| top & 0x80 != 0) {
        wide[bytes.len()..].fill(0xFF);
    }
    Some(i128::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_elements_become_a_splat() {
        let elements = DenseElements::i64s(&[3], &[7, 7, 7]).unwrap();
        assert!(elements.as_splat().is_some());
        assert_eq!(elements.to_i64s(), Some(vec![7, 7, 7]));
        assert_eq!(elements.bytes().map(|b| b.len()), Some(24));
        assert!(DenseElements::i64s(&[2], &[1, 2]).unwrap().as_splat().is_none());
        assert!(DenseElements::i64s(&[0], &[]).unwrap().as_splat().is_none());
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(
            DenseElements::i64s(&[3], &[1, 2]),
            Err(ElementsError::WrongSize { expected: 24, found: 16 })
        );
        let huge = TensorType::fixed(&[1 << 40, 1 << 40], ElementType::I8);
        assert_eq!(DenseElements::splat(huge, vec![0u8]), Err(ElementsError::NotConstantType));
    }

    #[test]
    fn signed_elements_keep_their_sign() {
        let ty = TensorType::fixed(&[2], ElementType::I4);
        let elements = DenseElements::raw(ty, vec![0xFFu8, 7]).unwrap();
        assert_eq!(elements.to_i64s(), Some(vec![-1, 7]));
    }
}
