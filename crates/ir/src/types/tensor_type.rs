//! Ranked tensor types: an element type and dimensions that may be unknown or bounded.

use std::sync::Arc;

use super::{ElementType, QuantizedType};
use crate::Attribute;

/// The largest number of dimensions of a tensor type that is read. Loops over the dimensions of a tensor are nested or
/// recursive in places, and no model comes near.
pub const MAX_RANK: usize = 64;

/// The size of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Known.
    Static(u64),
    /// `?`.
    Dynamic,
    /// `?` with an upper bound, from `#stablehlo.bounds`.
    Bounded(u64),
}

impl Dim {
    /// The size, if it is known.
    pub fn size(self) -> Option<u64> {
        match self {
            Dim::Static(size) => Some(size),
            Dim::Dynamic | Dim::Bounded(_) => None,
        }
    }

    /// The largest size it can have, if there is one.
    pub fn bound(self) -> Option<u64> {
        match self {
            Dim::Static(size) | Dim::Bounded(size) => Some(size),
            Dim::Dynamic => None,
        }
    }

    /// Whether the size is known.
    pub fn is_static(self) -> bool {
        matches!(self, Dim::Static(_))
    }

    /// Whether two dimensions may turn out to have the same size.
    pub fn compatible(self, other: Dim) -> bool {
        match (self, other) {
            (Dim::Static(a), Dim::Static(b)) => a == b,
            (Dim::Static(size), Dim::Bounded(bound)) | (Dim::Bounded(bound), Dim::Static(size)) => {
                size <= bound
            }
            _ => true,
        }
    }
}

/// What one element of a tensor is.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// A number or truth value as stored.
    Plain(ElementType),
    /// An integer that expresses a real number.
    Quantized(Arc<QuantizedType>),
    /// An element type of another dialect, as it is written.
    Opaque(Arc<str>),
}

impl Element {
    /// The element type that is stored: of a quantized element, its integer.
    pub fn storage(&self) -> Option<ElementType> {
        match self {
            Element::Plain(plain) => Some(*plain),
            Element::Quantized(quantized) => Some(ElementType::Int(quantized.storage)),
            Element::Opaque(_) => None,
        }
    }

    /// The plain element type, if it is one.
    pub fn plain(&self) -> Option<ElementType> {
        match self {
            Element::Plain(plain) => Some(*plain),
            _ => None,
        }
    }

    /// The quantized type, if it is one.
    pub fn quantized(&self) -> Option<&Arc<QuantizedType>> {
        match self {
            Element::Quantized(quantized) => Some(quantized),
            _ => None,
        }
    }

    /// Whether it is quantized.
    pub fn is_quantized(&self) -> bool {
        matches!(self, Element::Quantized(_))
    }
}

impl From<ElementType> for Element {
    fn from(plain: ElementType) -> Self {
        Element::Plain(plain)
    }
}

/// A ranked tensor type. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorType {
    dims: Arc<[Dim]>,
    element: Element,
    encoding: Option<Arc<Attribute>>,
}

impl TensorType {
    /// A tensor type.
    pub fn new(dims: impl Into<Arc<[Dim]>>, element: impl Into<Element>) -> Self {
        Self { dims: dims.into(), element: element.into(), encoding: None }
    }

    /// A tensor type whose dimensions are all known.
    pub fn fixed(dims: &[u64], element: impl Into<Element>) -> Self {
        Self::new(dims.iter().map(|&d| Dim::Static(d)).collect::<Vec<_>>(), element)
    }

    /// The same type with an encoding of another dialect.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Option<Attribute>) -> Self {
        self.encoding = encoding.map(Arc::new);
        self
    }

    /// The same shape with other elements.
    #[must_use]
    pub fn with_element(&self, element: impl Into<Element>) -> Self {
        Self { dims: self.dims.clone(), element: element.into(), encoding: self.encoding.clone() }
    }

    /// The same elements with another shape.
    #[must_use]
    pub fn with_dims(&self, dims: impl Into<Arc<[Dim]>>) -> Self {
        Self { dims: dims.into(), element: self.element.clone(), encoding: None }
    }

    /// The dimensions.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// One dimension, if there is such a one.
    pub fn dim(&self, axis: usize) -> Option<Dim> {
        self.dims.get(axis).copied()
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The element type.
    pub fn element(&self) -> &Element {
        &self.element
    }

    /// The encoding, where it is neither absent nor the bounds (those are in the dimensions).
    pub fn encoding(&self) -> Option<&Attribute> {
        self.encoding.as_deref()
    }

    /// Whether all dimensions are known.
    pub fn is_static(&self) -> bool {
        self.dims.iter().all(|d| d.is_static())
    }

    /// The sizes, when all are known.
    pub fn shape(&self) -> Option<Vec<u64>> {
        self.dims.iter().map(|d| d.size()).collect()
    }

    /// The sizes for indexing host memory, when all are known and fit.
    pub fn shape_usize(&self) -> Option<Vec<usize>> {
        self.dims.iter().map(|d| d.size().and_then(|s| usize::try_from(s).ok())).collect()
    }

    /// How many elements there are: `None` when a dimension is unknown or the product overflows.
    pub fn element_count(&self) -> Option<u64> {
        let sizes: Option<Vec<u64>> = self.shape();
        let sizes = sizes?;
        if sizes.contains(&0) {
            return Some(0);
        }
        sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(size))
    }

    /// How many bytes a constant of this type takes, one element per [`ElementType::byte_width`] bytes.
    pub fn byte_count(&self) -> Option<usize> {
        let width = self.element.storage()?.byte_width();
        usize::try_from(self.element_count()?).ok()?.checked_mul(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_checked_for_overflow() {
        let huge = TensorType::fixed(&[1 << 40, 1 << 40], ElementType::F32);
        assert_eq!(huge.element_count(), None);
        let empty = TensorType::fixed(&[1 << 40, 1 << 40, 0], ElementType::F32);
        assert_eq!(empty.element_count(), Some(0), "an empty dimension wins over an overflow");
        let dynamic = TensorType::new(vec![Dim::Dynamic], ElementType::F32);
        assert_eq!(dynamic.element_count(), None);
    }

    #[test]
    fn compatible_dimensions() {
        assert!(Dim::Static(3).compatible(Dim::Dynamic));
        assert!(Dim::Static(3).compatible(Dim::Bounded(3)));
        assert!(!Dim::Static(4).compatible(Dim::Bounded(3)));
        assert!(!Dim::Static(4).compatible(Dim::Static(3)));
    }
}
