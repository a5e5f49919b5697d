//! The element types that the graph's operations take.

use warpforge_ir::{TensorType, Type};
use warpforge_tensor::{ElementType, FloatType, IntType};

/// How a value is stored, when it is a tensor of known sizes.
pub(super) fn storage(ty: &Type) -> Option<(ElementType, Vec<usize>)> {
    let tensor: &TensorType = ty.as_tensor()?;
    Some((tensor.element().storage()?, tensor.shape_usize()?))
}

/// The element type, when it is one that the graph's own operations take.
pub(super) fn fast(ty: &Type) -> Option<ElementType> {
    let element = ty.as_tensor()?.element().plain()?;
    let known = match element {
        ElementType::Bool => true,
        ElementType::Int(int) => !matches!(int, IntType::I2 | IntType::I4 | IntType::U2 | IntType::U4),
        ElementType::Float(float) => {
            matches!(float, FloatType::F64 | FloatType::F32 | FloatType::F16 | FloatType::Bf16)
        }
        ElementType::Complex(_) | ElementType::Index => false,
    };
    known.then_some(element)
}

/// The element type, when it is one of [`fast`] or one of the floats of 8 bits that some devices have kernels for.
pub(super) fn fast_or_float8(ty: &Type) -> Option<ElementType> {
    let float8 = |element: &ElementType| {
        matches!(element, ElementType::Float(FloatType::F8E4M3Fn | FloatType::F8E5M2))
    };
    fast(ty).or_else(|| ty.as_tensor()?.element().plain().filter(float8))
}

/// The element type, when matrix products take it: floats of 8 bits and fewer too.
pub(super) fn multiplied(ty: &Type) -> Option<ElementType> {
    let narrow = |element: &ElementType| element.is_float() && element.byte_width() == 1;
    fast(ty).or_else(|| ty.as_tensor()?.element().plain().filter(narrow))
}
