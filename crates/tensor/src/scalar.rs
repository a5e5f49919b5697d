//! One element on its own.

use std::fmt;

use crate::{ElementType, FloatFormat, IntType};

/// The value of one element, exact for every element type.
///
/// A scalar does not know how wide its type is: every integer fits `i128`, every float is a binary64. Encoding rounds or
/// wraps it to the type it is stored as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Truth value.
    Bool(bool),
    /// Integer, or index.
    Int(i128),
    /// Floating-point number.
    Float(f64),
    /// Complex number: real part, imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// Zero of an element type; for formats without a zero, what zero rounds to.
    #[must_use]
    pub const fn zero(element: ElementType) -> Self {
        match element {
            ElementType::Bool => Self::Bool(false),
            ElementType::Int(_) | ElementType::Index => Self::Int(0),
            ElementType::Float(_) => Self::Float(0.0),
            ElementType::Complex(_) => Self::Complex(0.0, 0.0),
        }
    }

    /// One of an element type.
    #[must_use]
    pub const fn one(element: ElementType) -> Self {
        match element {
            ElementType::Bool => Self::Bool(true),
            ElementType::Int(_) | ElementType::Index => Self::Int(1),
            ElementType::Float(_) => Self::Float(1.0),
            ElementType::Complex(_) => Self::Complex(1.0, 0.0),
        }
    }

    /// The element stored in `bytes`, little-endian; `bytes` is as long as the element type is wide.
    pub(crate) fn decode(element: ElementType, bytes: &[u8]) -> Self {
        match element {
            ElementType::Bool => Self::Bool(bytes[0] != 0),
            ElementType::Index => Self::Int(i128::from(read(bytes) as i64)),
            ElementType::Int(int) => Self::Int(int.wrap(i128::from(read(bytes)))),
            ElementType::Float(float) => Self::Float(decode_float(float.format(), bytes)),
            ElementType::Complex(part) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                let format = part.format();
                Self::Complex(decode_float(format, real), decode_float(format, imaginary))
            }
        }
    }

    /// Stores the element in `bytes`, rounded or wrapped to the type; a scalar of another kind is converted first.
    pub(crate) fn encode(self, element: ElementType, bytes: &mut [u8]) {
        match element {
            ElementType::Bool => bytes[0] = u8::from(self.is_true()),
            ElementType::Index => write(bytes, self.to_i128() as u64),
            ElementType::Int(int) => write(bytes, int.wrap(self.to_i128()) as u64 & mask(int)),
            ElementType::Float(float) => write(bytes, float.format().encode(self.to_f64())),
            ElementType::Complex(part) => {
                let (re, im) = self.to_complex();
                let middle = bytes.len() / 2;
                let (real, imaginary) = bytes.split_at_mut(middle);
                write(real, part.format().encode(re));
                write(imaginary, part.format().encode(im));
            }
        }
    }

    /// The value with the rounding or wrap-around of `element` applied.
    #[must_use]
    pub fn rounded_to(self, element: ElementType) -> Self {
        match element {
            ElementType::Bool => Self::Bool(self.is_true()),
            ElementType::Index => Self::Int(IntType::I64.wrap(self.to_i128())),
            ElementType::Int(int) => Self::Int(int.wrap(self.to_i128())),
            ElementType::Float(float) => Self::Float(float.format().round(self.to_f64())),
            ElementType::Complex(part) => {
                let (re, im) = self.to_complex();
                Self::Complex(part.format().round(re), part.format().round(im))
            }
        }
    }

    /// Whether the value is not zero.
    #[must_use]
    pub fn is_true(self) -> bool {
        match self {
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Float(value) => value != 0.0,
            Self::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// The integer value; floats are truncated towards zero and saturate, NaN gives 0.
    #[must_use]
    pub fn to_i128(self) -> i128 {
        match self {
            Self::Bool(value) => i128::from(value),
            Self::Int(value) => value,
            Self::Float(value) | Self::Complex(value, _) => value as i128,
        }
    }

    /// The value as a binary64, nearest for wide integers; of a complex number the real part.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Int(value) => value as f64,
            Self::Float(value) | Self::Complex(value, _) => value,
        }
    }

    /// Real and imaginary part.
    #[must_use]
    pub fn to_complex(self) -> (f64, f64) {
        match self {
            Self::Complex(re, im) => (re, im),
            other => (other.to_f64(), 0.0),
        }
    }

    /// Whether the value or a part of it is NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        match self {
            Self::Float(value) => value.is_nan(),
            Self::Complex(re, im) => re.is_nan() || im.is_nan(),
            Self::Bool(_) | Self::Int(_) => false,
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Complex(re, im) => write!(f, "({re:?}, {im:?})"),
        }
    }
}

fn decode_float(format: FloatFormat, bytes: &[u8]) -> f64 {
    match bytes {
        // Binary32 is by far the most common, and the hardware widens it.
        &[a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => format.decode(read(bytes)),
    }
}

fn mask(int: IntType) -> u64 {
    u64::MAX >> (64 - int.bits())
}

fn read(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn write(bytes: &mut [u8], word: u64) {
    let count = bytes.len();
    bytes.copy_from_slice(&word.to_le_bytes()[..count]);
}
