//! What one element of a tensor is.

mod float;
mod int;
mod quantized;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use float::{FloatFormat, FloatType, Specials};
pub use int::IntType;
pub use quantized::{Granularity, QuantParameters, QuantizedType};

use crate::Error;

/// The type of a tensor's elements as they are stored.
///
/// A quantized tensor is stored as its integers; what they express is in a [`QuantizedType`] beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// Truth value, MLIR's `i1`.
    Bool,
    /// Integer.
    Int(IntType),
    /// Floating point.
    Float(FloatType),
    /// Complex with parts of this type; only binary32 and binary64 occur.
    Complex(FloatType),
    /// MLIR's `index`, stored in 64 bits; only shape computations use it.
    Index,
}

macro_rules! shorthands {
    ($($name:ident = $value:expr;)*) => {
        impl ElementType {
            $(
                #[doc = concat!("Shorthand for `", stringify!($value), "`.")]
                pub const $name: Self = $value;
            )*
        }
    };
}

shorthands! {
    I2 = Self::Int(IntType::I2);
    I4 = Self::Int(IntType::I4);
    I8 = Self::Int(IntType::I8);
    I16 = Self::Int(IntType::I16);
    I32 = Self::Int(IntType::I32);
    I64 = Self::Int(IntType::I64);
    U2 = Self::Int(IntType::U2);
    U4 = Self::Int(IntType::U4);
    U8 = Self::Int(IntType::U8);
    U16 = Self::Int(IntType::U16);
    U32 = Self::Int(IntType::U32);
    U64 = Self::Int(IntType::U64);
    F64 = Self::Float(FloatType::F64);
    F32 = Self::Float(FloatType::F32);
    F16 = Self::Float(FloatType::F16);
    BF16 = Self::Float(FloatType::Bf16);
    C64 = Self::Complex(FloatType::F32);
    C128 = Self::Complex(FloatType::F64);
}

impl ElementType {
    /// Every element type.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Bool, Self::Index, Self::C64, Self::C128]
            .into_iter()
            .chain(IntType::ALL.iter().copied().map(Self::Int))
            .chain(FloatType::ALL.iter().copied().map(Self::Float))
    }

    /// Significant bits of one element.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Int(int) => int.bits(),
            Self::Float(float) => float.format().bits(),
            Self::Complex(part) => 2 * part.format().bits(),
            Self::Index => 64,
        }
    }

    /// Bytes that one element takes in a host tensor: a type narrower than a byte takes a whole one.
    #[must_use]
    pub const fn byte_width(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Whether elements are floating-point numbers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float(_))
    }

    /// Whether elements are complex.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::Complex(_))
    }

    /// Whether elements are integers; truth values and indices are not.
    #[must_use]
    pub const fn is_int(self) -> bool {
        matches!(self, Self::Int(_))
    }

    /// The floating-point type of an element or of its parts.
    #[must_use]
    pub const fn float_part(self) -> Option<FloatType> {
        match self {
            Self::Float(float) | Self::Complex(float) => Some(float),
            Self::Bool | Self::Int(_) | Self::Index => None,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("i1"),
            Self::Int(int) => f.write_str(int.name()),
            Self::Float(float) => f.write_str(float.name()),
            Self::Complex(part) => write!(f, "complex<{}>", part.name()),
            Self::Index => f.write_str("index"),
        }
    }
}

impl FromStr for ElementType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // `si8` is the spelling of the specification for what MLIR writes `i8`.
        let name = match text.strip_prefix("si") {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => &text[1..],
            _ => text,
        };
        Self::all()
            .find(|element| match element {
                Self::Int(int) => int.name() == name,
                Self::Float(float) => float.name() == name,
                other => other.to_string() == name,
            })
            .ok_or_else(|| Error::UnknownElementType(text.to_owned()))
    }
}
