//! What a node takes and gives: tensors, numbers, lists.

use std::rc::Rc;

use warpforge_ir::{Dim, ElementType, TensorType, Type, ValueId};

use super::alias::Var;
use crate::graph::size::Size;

/// A tensor while its graph is lowered: a value of the module and what PyTorch knows about it.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    /// The value.
    pub(crate) id: ValueId,
    /// The element type.
    pub(crate) dtype: ElementType,
    /// The sizes; the module's type has `?` where they are not numbers.
    pub(crate) dims: Rc<[Size]>,
    /// The variable that it was read from; what an operation computes belongs to none.
    pub(crate) var: Option<Var>,
}

impl Tensor {
    /// How many dimensions it has.
    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The size of a dimension; one where there is no such dimension.
    pub(crate) fn dim(&self, axis: usize) -> Size {
        self.dims.get(axis).cloned().unwrap_or(Size::Int(1))
    }

    /// How many elements it has.
    pub(crate) fn numel(&self) -> Size {
        Size::product(self.dims.iter())
    }

    /// The same value as a tensor of its own: writing to it changes nothing else.
    pub(crate) fn fresh(&self) -> Self {
        Self { var: None, ..self.clone() }
    }

    /// Whether it is of a floating-point or complex type.
    pub(crate) fn is_inexact(&self) -> bool {
        self.dtype.is_float() || self.dtype.is_complex()
    }
}

/// The module's type of a tensor.
pub(crate) fn tensor_type(dtype: ElementType, dims: &[Size]) -> TensorType {
    let dims: Vec<Dim> = dims
        .iter()
        .map(|size| match size.as_int() {
            Some(size) => Dim::Static(size.unsigned_abs()),
            None => Dim::Dynamic,
        })
        .collect();
    TensorType::new(dims, dtype)
}

/// The module's type of a tensor, as a type.
pub(crate) fn value_type(dtype: ElementType, dims: &[Size]) -> Type {
    Type::Tensor(tensor_type(dtype, dims))
}

/// A Python number.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    /// An `int`, perhaps of dynamic dimensions.
    Int(Size),
    /// A `float`.
    Float(f64),
    /// A `bool`.
    Bool(bool),
    /// A `complex`.
    Complex(f64, f64),
    /// A number that is known only when the module runs: a tensor of no dimensions.
    Computed(Tensor),
}

impl Number {
    /// The number as a double, if it is a known real one.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Number::Int(size) => size.as_int().map(|value| value as f64),
            Number::Float(value) => Some(*value),
            Number::Bool(value) => Some(f64::from(u8::from(*value))),
            Number::Complex(..) | Number::Computed(_) => None,
        }
    }
}

/// A tensor or a number where an operation takes either.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Number(Number),
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Self {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Self {
        Operand::Tensor(tensor.clone())
    }
}

impl From<Number> for Operand {
    fn from(number: Number) -> Self {
        Operand::Number(number)
    }
}

/// Any value of the graph.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// `None`.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors, some of which may be `None`.
    Tensors(Vec<Option<Tensor>>),
    /// A number.
    Number(Number),
    /// A list of numbers.
    Numbers(Vec<Number>),
    /// A string.
    Str(String),
    /// An element type.
    Dtype(ElementType),
    /// The code of a memory format.
    MemoryFormat(i64),
    /// A device, by its kind.
    Device(String),
    /// A layout; the text says which, `None` for a strided one.
    Layout(Option<String>),
    /// Something that no operation computes with, described.
    Other(&'static str),
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

impl From<Vec<Tensor>> for Value {
    fn from(tensors: Vec<Tensor>) -> Self {
        Value::Tensors(tensors.into_iter().map(Some).collect())
    }
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Tensor(_) => "a tensor",
            Value::Tensors(_) => "a list of tensors",
            Value::Number(Number::Computed(_)) => "a number computed by the model",
            Value::Number(Number::Int(_)) => "an integer",
            Value::Number(Number::Float(_)) => "a float",
            Value::Number(Number::Bool(_)) => "a bool",
            Value::Number(Number::Complex(..)) => "a complex number",
            Value::Numbers(_) => "a list of numbers",
            Value::Str(_) => "a string",
            Value::Dtype(_) => "an element type",
            Value::MemoryFormat(_) => "a memory format",
            Value::Device(_) => "a device",
            Value::Layout(_) => "a layout",
            Value::Other(what) => what,
        }
    }
}
