//! How elements are held in registers.

use warpforge_tensor::ElementType;

/// The type that computes: narrow floats are held as binary32 and rounded after each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

/// The narrow type that values held as binary32 are rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Narrow {
    F16,
    Bf16,
}

impl Lane {
    /// How elements of a type are held, or `None` for types that programs do not know.
    pub(super) fn of(element: ElementType) -> Option<Self> {
        Some(match element {
            ElementType::Bool => Self::Bool,
            ElementType::I8 => Self::I8,
            ElementType::I16 => Self::I16,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
            ElementType::U8 => Self::U8,
            ElementType::U16 => Self::U16,
            ElementType::U32 => Self::U32,
            ElementType::U64 => Self::U64,
            ElementType::F32 | ElementType::F16 | ElementType::BF16 => Self::F32,
            ElementType::F64 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of one.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl Narrow {
    /// What values of a type are rounded to.
    pub(super) fn of(element: ElementType) -> Option<Self> {
        match element {
            ElementType::F16 => Some(Self::F16),
            ElementType::BF16 => Some(Self::Bf16),
            _ => None,
        }
    }

    /// A binary32 rounded to the type.
    #[inline(always)]
    pub(super) fn round(self, value: f32) -> f32 {
        match self {
            Self::F16 => half::f16::from_f32(value).to_f32(),
            Self::Bf16 => half::bf16::from_f32(value).to_f32(),
        }
    }

    /// A binary64 rounded to the type once: it is cut to odd first, so that rounding twice gives the same.
    pub(super) fn round_once(self, value: f64) -> f32 {
        self.round(odd_f32(value))
    }
}

/// The number cut to binary32, its last bit set if anything was cut off.
pub(super) fn odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() || nearest.is_infinite() {
        return nearest;
    }
    let cut = nearest.to_bits() - u32::from(f64::from(nearest).abs() > value.abs());
    f32::from_bits(cut | 1)
}

/// The number cut to binary64, its last bit set if anything was cut off.
pub(super) fn odd_f64(value: u64) -> f64 {
    let excess = (64 - value.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let kept = value >> excess << excess;
    f64::from_bits((kept as f64).to_bits() | u64::from(kept != value))
}

/// Evaluates an expression with `T` as the Rust type of a lane; truth values are bytes.
macro_rules! for_lane {
    ($lane:expr, $T:ident => $body:expr) => {
        match $lane {
            Lane::Bool | Lane::U8 => {
                type $T = u8;
                $body
            }
            Lane::F32 => {
                type $T = f32;
                $body
            }
            Lane::F64 => {
                type $T = f64;
                $body
            }
            Lane::I8 => {
                type $T = i8;
                $body
            }
            Lane::I16 => {
                type $T = i16;
                $body
            }
            Lane::I32 => {
                type $T = i32;
                $body
            }
            Lane::I64 => {
                type $T = i64;
                $body
            }
            Lane::U16 => {
                type $T = u16;
                $body
            }
            Lane::U32 => {
                type $T = u32;
                $body
            }
            Lane::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}

/// The same for unsigned integers of a width: for what only moves bits.
macro_rules! for_width {
    ($width:expr, $T:ident => $body:expr) => {
        match $width {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

pub(super) use {for_lane, for_width};
