//! Attributes: the constant data that operations carry.

mod dict;
mod dims;
mod display;
mod elements;
mod enums;
mod mesh;

use std::fmt;
use std::sync::Arc;

pub use dict::{AttrName, Dict};
pub use dims::{
    ChannelHandle, ConvDims, DotAlgorithm, DotDims, GatherDims, IndexDims, OutputOperandAlias, RaggedDotDims,
    ResultAccuracy, ScatterDims,
};
pub(crate) use display::{Bare, Entry, SymbolText};
pub use elements::{DenseElements, ElementData, ElementsError, int_from_bytes};
pub use enums::{
    ComparisonDirection, ComparisonType, CustomCallApiVersion, EnumValue, FftType, Precision,
    ResultAccuracyMode, RngAlgorithm, RngDistribution, Transpose,
};
pub use mesh::{AxisRef, MAX_MESH_DEVICES, Mesh, MeshAxes, MeshAxis, MeshError, MeshRef, SubAxis};

use crate::types::{ElementType, Type};

/// Constant data of an operation. Cheap to clone.
///
/// The readers bring what the table declares into one form: an `i64s` attribute is always [`Attribute::I64s`], whether
/// the file had `array<i64: …>` or the older `dense<…>`.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Present or not.
    Unit,
    /// A truth value.
    Bool(bool),
    /// An integer with its type.
    Int(i128, Type),
    /// A floating-point number with its type.
    Float(f64, Type),
    /// A string.
    Str(Arc<str>),
    /// A reference to a symbol: `@root::@leaf`.
    Symbol(Arc<[String]>),
    /// A type.
    Type(Type),
    /// A list.
    Array(Arc<[Attribute]>),
    /// A dictionary.
    Dict(Dict),
    /// `array<i64: …>`.
    I64s(Arc<[i64]>),
    /// `array<i1: …>`.
    Bools(Arc<[bool]>),
    /// `array<T: …>` of another element type; the elements are [`Attribute::Int`] or [`Attribute::Float`].
    DenseArray(ElementType, Arc<[Attribute]>),
    /// `dense<…>`.
    Elements(Arc<DenseElements>),
    /// A value of one of StableHLO's enumerations; CHLO has two of the same names.
    Enum(EnumDialect, EnumValue),
    /// `#stablehlo.dot<…>`.
    Dot(Arc<DotDims>),
    /// `#stablehlo.conv<…>`.
    Conv(Arc<ConvDims>),
    /// `#stablehlo.gather<…>`.
    Gather(Arc<GatherDims>),
    /// `#stablehlo.scatter<…>`.
    Scatter(Arc<ScatterDims>),
    /// `#stablehlo.dot_algorithm<…>`.
    DotAlgorithm(Arc<DotAlgorithm>),
    /// `#chlo.ragged_dot<…>`.
    RaggedDot(Arc<RaggedDotDims>),
    /// `#stablehlo.output_operand_alias<…>`.
    Alias(Arc<OutputOperandAlias>),
    /// `#stablehlo.channel_handle<…>`.
    Channel(ChannelHandle),
    /// `#stablehlo.result_accuracy<…>`.
    ResultAccuracy(Arc<ResultAccuracy>),
    /// `#stablehlo.replica_group_mesh_axes<…>`.
    MeshAxes(Arc<MeshAxes>),
    /// `#stablehlo.bounds<…>` outside a tensor type.
    Bounds(Arc<[Option<u64>]>),
    /// An attribute of another dialect, or one of no interest here, as it is written.
    Opaque(Arc<str>),
}

/// Whose enumeration a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnumDialect {
    /// `#stablehlo<…>`.
    StableHlo,
    /// `#chlo<…>`.
    Chlo,
}

impl EnumDialect {
    /// The dialect's name.
    pub fn name(self) -> &'static str {
        match self {
            EnumDialect::StableHlo => "stablehlo",
            EnumDialect::Chlo => "chlo",
        }
    }
}

impl Attribute {
    /// A 64-bit integer.
    pub fn i64(value: i64) -> Self {
        Attribute::Int(i128::from(value), Type::scalar(ElementType::I64))
    }

    /// A 32-bit integer.
    pub fn i32(value: i32) -> Self {
        Attribute::Int(i128::from(value), Type::scalar(ElementType::I32))
    }

    /// An unsigned 64-bit integer.
    pub fn u64(value: u64) -> Self {
        Attribute::Int(i128::from(value), Type::scalar(ElementType::U64))
    }

    /// An unsigned 32-bit integer.
    pub fn u32(value: u32) -> Self {
        Attribute::Int(i128::from(value), Type::scalar(ElementType::U32))
    }

    /// A list of 64-bit integers.
    pub fn i64s(values: impl Into<Arc<[i64]>>) -> Self {
        Attribute::I64s(values.into())
    }

    /// A string.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Attribute::Str(text.into())
    }

    /// A reference to a symbol of the module.
    pub fn symbol(name: impl Into<String>) -> Self {
        Attribute::Symbol(Arc::from([name.into()]))
    }

    /// A value of one of StableHLO's enumerations.
    pub fn enumeration(value: impl Into<EnumValue>) -> Self {
        Attribute::Enum(EnumDialect::StableHlo, value.into())
    }

    /// The integer, if it is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Attribute::Int(value, _) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The integer, if it is one that is not negative and fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Attribute::Int(value, _) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Attribute::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attribute::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The symbol's name, if it is a reference without nesting.
    pub fn as_symbol(&self) -> Option<&str> {
        match self {
            Attribute::Symbol(path) if path.len() == 1 => path.first().map(String::as_str),
            _ => None,
        }
    }

    /// The list of integers, if it is one.
    pub fn as_i64s(&self) -> Option<&[i64]> {
        match self {
            Attribute::I64s(values) => Some(values),
            _ => None,
        }
    }

    /// The list of truth values, if it is one.
    pub fn as_bools(&self) -> Option<&[bool]> {
        match self {
            Attribute::Bools(values) => Some(values),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_array(&self) -> Option<&[Attribute]> {
        match self {
            Attribute::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The dictionary, if it is one.
    pub fn as_dict(&self) -> Option<&Dict> {
        match self {
            Attribute::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    /// The constant, if it is one.
    pub fn as_elements(&self) -> Option<&DenseElements> {
        match self {
            Attribute::Elements(elements) => Some(elements),
            _ => None,
        }
    }

    /// The type, if it is one.
    pub fn as_type(&self) -> Option<&Type> {
        match self {
            Attribute::Type(ty) => Some(ty),
            _ => None,
        }
    }

    /// The value of an enumeration, if it is one of `E`.
    pub fn as_enum<E: TryFrom<EnumValue>>(&self) -> Option<E> {
        match self {
            Attribute::Enum(_, value) => E::try_from(*value).ok(),
            _ => None,
        }
    }
}

impl From<DenseElements> for Attribute {
    fn from(elements: DenseElements) -> Self {
        Attribute::Elements(Arc::new(elements))
    }
}

/// Writes `[1, 2]`.
pub(crate) fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
    f.write_str("[")?;
    crate::types::write_separated(f, values, ", ")?;
    f.write_str("]")
}
