//! Types of values: tensors, tokens, tuples, functions, and what other dialects call theirs.

mod display;
mod tensor_type;

use std::sync::Arc;

pub(crate) use display::write_separated;

pub use tensor_type::{Dim, Element, MAX_RANK, TensorType};
pub use warpforge_tensor::element::{
    ElementType, FloatType, Granularity, IntType, QuantParameters, QuantizedType,
};

/// The type of a value or of a type attribute. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A ranked tensor.
    Tensor(TensorType),
    /// `tensor<*xT>`: a tensor of unknown rank.
    UnrankedTensor(Element),
    /// `!stablehlo.token`: orders side effects.
    Token,
    /// A tuple.
    Tuple(Arc<[Type]>),
    /// A function type.
    Function(Arc<FunctionType>),
    /// A bare element type, as attributes have them: `1 : i32`.
    Scalar(Element),
    /// `none`.
    None,
    /// `!stablehlo.future<…>`: the pending results of an asynchronous operation.
    Future(Arc<[Type]>),
    /// `memref<…>`, which StableHLO uses for buffers.
    Buffer(TensorType),
    /// A type of another dialect, as it is written.
    Opaque(Arc<str>),
}

/// Inputs and results of a function.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FunctionType {
    /// Types of the arguments.
    pub inputs: Vec<Type>,
    /// Types of the results.
    pub results: Vec<Type>,
}

impl Type {
    /// A static tensor of a plain element type.
    pub fn tensor(dims: &[u64], element: ElementType) -> Self {
        Type::Tensor(TensorType::fixed(dims, element))
    }

    /// A bare element type.
    pub fn scalar(element: ElementType) -> Self {
        Type::Scalar(Element::Plain(element))
    }

    /// A function type.
    pub fn function(inputs: Vec<Type>, results: Vec<Type>) -> Self {
        Type::Function(Arc::new(FunctionType { inputs, results }))
    }

    /// The ranked tensor type, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The function type, if it is one.
    pub fn as_function(&self) -> Option<&FunctionType> {
        match self {
            Type::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The element type of a ranked or unranked tensor.
    pub fn element(&self) -> Option<&Element> {
        match self {
            Type::Tensor(tensor) => Some(tensor.element()),
            Type::UnrankedTensor(element) => Some(element),
            _ => None,
        }
    }

    /// Whether this is a tensor, ranked or not.
    pub fn is_tensor(&self) -> bool {
        matches!(self, Type::Tensor(_) | Type::UnrankedTensor(_))
    }
}

impl From<TensorType> for Type {
    fn from(tensor: TensorType) -> Self {
        Type::Tensor(tensor)
    }
}
