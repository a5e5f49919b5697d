//! The types of lanes that elements are computed in.

use warpforge_tensor::ElementType;

/// The computation type: narrow floats are held as f32 and rounded after each instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneType {
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

/// The narrow type that values held as f32 are rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NarrowFloat {
    F16,
    Bf16,
}

impl LaneType {
    /// The lane type of an element type, or `None` if it is not supported.
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

impl NarrowFloat {
    /// What values of a type are rounded to.
    pub(super) fn of(element: ElementType) -> Option<Self> {
        match element {
            ElementType::F16 => Some(Self::F16),
            ElementType::BF16 => Some(Self::Bf16),
            _ => None,
        }
    }

    /// A f32 rounded to the type.
    #[inline(always)]
    pub(super) fn round(self, value: f32) -> f32 {
        match self {
            Self::F16 => half::f16::from_f32(value).to_f32(),
            Self::Bf16 => half::bf16::from_f32(value).to_f32(),
        }
    }

    /// An f64 rounded to the type: rounded to odd in f32 first, so that double rounding is exact.
    pub(super) fn round_once(self, value: f64) -> f32 {
        self.round(round_to_odd_f32(value))
    }
}

/// Rounds to odd: truncated to f32, with the last bit set if the result is inexact.
pub(super) fn round_to_odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() || nearest.is_infinite() {
        return nearest;
    }
    let cut = nearest.to_bits() - u32::from(f64::from(nearest).abs() > value.abs());
    f32::from_bits(cut | 1)
}

/// Rounds to odd: truncated to f64, with the last bit set if the result is inexact.
pub(super) fn round_to_odd_f64(value: u64) -> f64 {
    let excess = (64 - value.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let kept = value >> excess << excess;
    f64::from_bits((kept as f64).to_bits() | u64::from(kept != value))
}

/// Evaluates an expression with `T` as the Rust type of a lane; booleans are bytes.
macro_rules! for_lane {
    ($lane:expr, $T:ident => $body:expr) => {
        $crate::dispatch::with_type!($lane, $T => $body; {
            LaneType::Bool | LaneType::U8 => u8,
            LaneType::F32 => f32,
            LaneType::F64 => f64,
            LaneType::I8 => i8,
            LaneType::I16 => i16,
            LaneType::I32 => i32,
            LaneType::I64 => i64,
            LaneType::U16 => u16,
            LaneType::U32 => u32,
            LaneType::U64 => u64,
        })
    };
}

/// The same for unsigned integers of a width: for what only moves bits.
macro_rules! for_width {
    ($width:expr, $T:ident => $body:expr) => {
        $crate::dispatch::with_type!($width, $T => $body; { 1 => u8, 2 => u16, 4 => u32, _ => u64 })
    };
}

pub(super) use {for_lane, for_width};
