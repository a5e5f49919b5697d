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

/// Whether two shapes can be the same when bounds are left out of account.
pub fn sizes(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_size(*a, *b))
}

/// Whether two dimensions can have the same size when bounds are left out of account.
pub fn same_size(a: Dim, b: Dim) -> bool {
    a.size().zip(b.size()).is_none_or(|(a, b)| a == b)
}

/// Whether elements are of the same kind: of quantized ones, storage, expressed type and granularity must be the same,
/// scales and zero points need not.
pub fn elements(a: &Element, b: &Element) -> bool {
    match (a, b) {
        (Element::Quantized(a), Element::Quantized(b)) => {
            a.storage == b.storage
                && (a.storage_min, a.storage_max) == (b.storage_min, b.storage_max)
                && a.expressed == b.expressed
                && per_axis(&a.granularity) == per_axis(&b.granularity)
        }
        (a, b) => a == b,
    }
}

fn per_axis(granularity: &Granularity) -> bool {
    matches!(granularity, Granularity::PerAxis(_))
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

/// What two types of the same value tell together. Elements are those of the first.
pub fn most_specific(a: &Type, b: &Type) -> Type {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => {
            let dims: Vec<Dim> = a.dims().iter().zip(b.dims()).map(|(a, b)| meet(*a, *b)).collect();
            Type::Tensor(a.with_dims(dims).with_encoding(a.encoding().cloned()))
        }
        (Type::UnrankedTensor(element), Type::Tensor(ranked)) => {
            Type::Tensor(ranked.with_element(element.clone()))
        }
        (Type::Tuple(a), Type::Tuple(b)) => {
            Type::Tuple(a.iter().zip(b.iter()).map(|(a, b)| most_specific(a, b)).collect())
        }
        (a, _) => a.clone(),
    }
}

/// The type that values of several compatible types are all of: dimensions that differ are not known.
pub fn least_specific<'a>(types: impl IntoIterator<Item = &'a Type>) -> Option<Type> {
    let mut types = types.into_iter();
    let mut joined = types.next()?.clone();
    for ty in types {
        if let (Type::Tensor(a), Type::Tensor(b)) = (&joined, ty) {
            let dims: Vec<Dim> = a.dims().iter().zip(b.dims()).map(|(a, b)| join(*a, *b)).collect();
            joined = Type::Tensor(a.with_dims(dims));
        }
    }
    Some(joined)
}

/// What is known of a dimension that has one of two sizes.
fn join(a: Dim, b: Dim) -> Dim {
    match (a.bound(), b.bound()) {
        _ if a == b => a,
        (Some(a), Some(b)) => Dim::Bounded(a.max(b)),
        _ => Dim::Dynamic,
    }
}
