//! When two types can be those of the same value.

use crate::types::{Dim, Element, Granularity, TensorType, Type};

/// Whether two types can be those of the same value: unknown dimensions fit any size.
pub fn types(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => tensors(a, b),
        (Type::Tensor(ranked), Type::UnrankedTensor(element))
        | (Type::UnrankedTensor(element), Type::Tensor(ranked)) => elements(ranked.element(), element),
        (Type::Tuple(a), Type::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| types(a, b))
        }
        (a, b) => a == b,
    }
}

/// Whether two tensor types can be those of the same value.
pub fn tensors(a: &TensorType, b: &TensorType) -> bool {
    dims(a.dims(), b.dims()) && elements(a.element(), b.element())
}

/// Whether two shapes can be the same.
pub fn dims(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compatible(*b))
}

/// Whether elements are of the same kind: of quantized ones, storage, expressed type and granularity must be the same,
/// scales and zero points need not.
pub fn elements(a: &Element, b: &Element) -> bool {
    match (a, b) {
        (Element::Quantized(a), Element::Quantized(b)) => {
            let axis = |g: &Granularity| matches!(g, Granularity::PerAxis(_));
            a.storage == b.storage
                && a.expressed == b.expressed
                && axis(&a.granularity) == axis(&b.granularity)
        }
        (a, b) => a == b,
    }
}

/// What two sizes of the same dimension tell together.
pub fn meet(a: Dim, b: Dim) -> Dim {
    match (a, b) {
        (Dim::Static(size), _) | (_, Dim::Static(size)) => Dim::Static(size),
        (Dim::Bounded(a), Dim::Bounded(b)) => Dim::Bounded(a.min(b)),
        (Dim::Bounded(bound), _) | (_, Dim::Bounded(bound)) => Dim::Bounded(bound),
        _ => Dim::Dynamic,
    }
}

/// What the shapes of several tensors of one shape tell together.
pub fn meet_all<'a>(tensors: impl IntoIterator<Item = &'a TensorType>) -> Vec<Dim> {
    let mut dims: Vec<Dim> = Vec::new();
    for (index, tensor) in tensors.into_iter().enumerate() {
        if index == 0 {
            dims = tensor.dims().to_vec();
        }
        for (dim, other) in dims.iter_mut().zip(tensor.dims()) {
            *dim = meet(*dim, *other);
        }
    }
    dims
}
