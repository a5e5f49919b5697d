//! Element conversions for packing.

use half::{bf16, f16};

/// Conversion to the element type of a packed operand.
pub(super) trait Convert<S>: Copy {
    /// The value of padding.
    const ZERO: Self;
    /// The nearest value.
    fn convert(from: S) -> Self;
}

/// An f32 that holds a bf16 value, for bf16 GEMMs on CPUs without bf16 instructions. Products of such values are exact
/// in f32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bf16AsF32(f32);

/// Rounds to the nearest bf16, ties to even, without branches that would prevent vectorization.
#[inline(always)]
pub(super) fn to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if value.is_nan() { quiet as u16 } else { rounded as u16 })
}

/// Widens exactly.
#[inline(always)]
pub(super) fn from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// An i8 plus 128.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct OffsetI8(u8);

macro_rules! convert {
    ($($from:ty => $to:ty, $zero:expr, |$value:ident| $result:expr;)*) => {
        $(
            impl Convert<$from> for $to {
                const ZERO: Self = $zero;

                #[inline(always)]
                fn convert($value: $from) -> Self {
                    $result
                }
            }
        )*
    };
}

convert! {
    f32 => f32, 0.0, |value| value;
    bf16 => f32, 0.0, |value| from_bf16(value);
    f16 => f32, 0.0, |value| value.to_f32();
    f64 => f64, 0.0, |value| value;
    f32 => bf16, bf16::ZERO, |value| to_bf16(value);
    bf16 => bf16, bf16::ZERO, |value| value;
    f16 => bf16, bf16::ZERO, |value| to_bf16(value.to_f32());
    i8 => OffsetI8, OffsetI8(0x80), |value| OffsetI8(value.cast_unsigned() ^ 0x80);
    u8 => u8, 0, |value| value;
    i8 => i8, 0, |value| value;
    i8 => i32, 0, |value| i32::from(value);
    u8 => i32, 0, |value| i32::from(value);
    i16 => i32, 0, |value| i32::from(value);
    u16 => i32, 0, |value| i32::from(value);
    i32 => i32, 0, |value| value;
    u32 => i32, 0, |value| value.cast_signed();
    i8 => i64, 0, |value| i64::from(value);
    u8 => i64, 0, |value| i64::from(value);
    i16 => i64, 0, |value| i64::from(value);
    u16 => i64, 0, |value| i64::from(value);
    i32 => i64, 0, |value| i64::from(value);
    u32 => i64, 0, |value| i64::from(value);
    i64 => i64, 0, |value| value;
    u64 => i64, 0, |value| value.cast_signed();
    f32 => Bf16AsF32, Bf16AsF32(0.0), |value| Bf16AsF32(from_bf16(to_bf16(value)));
    bf16 => Bf16AsF32, Bf16AsF32(0.0), |value| Bf16AsF32(from_bf16(value));
    f16 => Bf16AsF32, Bf16AsF32(0.0), |value| Bf16AsF32(from_bf16(to_bf16(value.to_f32())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounding_matches_half() {
        let mut random = fastrand::Rng::with_seed(3);
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-45, f32::NAN, 1.003_906_3];
        for value in special.into_iter().chain((0..100_000).map(|_| f32::from_bits(random.u32(..)))) {
            let (ours, theirs) = (to_bf16(value), bf16::from_f32(value));
            assert_eq!(ours.to_bits(), theirs.to_bits(), "{value}");
        }
    }
}
