//! The numbers that GPUs compute with, and matrices of them.

use warpforge_codegen::Units;
use warpforge_tensor::{ElementType, FloatType};

use crate::library::Vendor;
use crate::products::Sums;

/// Random numbers are made for so many bytes and repeated.
const PATTERN_BYTES: usize = 4 << 20;

/// Numbers that are computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// 32-bit floats rounded to 19 bits for the tensor cores.
    Tf32,
    /// 16-bit floats; products have sums of 32 bits.
    F16,
    /// The upper half of 32-bit floats; products have sums of 32 bits.
    Bf16,
    /// 8-bit floats with four bits of exponent; sums of 32 bits.
    E4m3,
    /// 8-bit floats with five bits of exponent, times such with four: libraries have no products of two with five.
    E5m2,
    /// 8-bit integers; sums of 32 bits.
    I8,
}

impl Numbers {
    /// All of them.
    pub const ALL: [Numbers; 8] =
        [Self::F64, Self::F32, Self::Tf32, Self::F16, Self::Bf16, Self::E4m3, Self::E5m2, Self::I8];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::I8 => "int8",
        }
    }

    /// The elements of the left and the right operand and of the result.
    pub(super) fn elements(self) -> [ElementType; 3] {
        let bf16 = ElementType::BF16;
        let e4m3 = ElementType::Float(FloatType::F8E4M3Fn);
        match self {
            Self::F64 => [ElementType::F64; 3],
            Self::F32 | Self::Tf32 => [ElementType::F32; 3],
            Self::F16 => [ElementType::F16; 3],
            Self::Bf16 => [bf16; 3],
            Self::E4m3 => [e4m3, e4m3, bf16],
            Self::E5m2 => [e4m3, ElementType::Float(FloatType::F8E5M2), bf16],
            Self::I8 => [ElementType::I8, ElementType::I8, ElementType::I32],
        }
    }

    pub(super) fn sums(self) -> Sums {
        match self {
            Self::F64 => Sums::F64,
            Self::Tf32 => Sums::Tf32,
            Self::I8 => Sums::I32,
            _ => Sums::F32,
        }
    }

    /// The ordinary units for them; none where only tensor cores have them.
    pub(super) fn units(self) -> Option<Units> {
        match self {
            Self::F64 => Some(Units::F64),
            Self::F32 => Some(Units::F32),
            Self::F16 => Some(Units::F16),
            Self::Bf16 => Some(Units::Bf16),
            Self::I8 => Some(Units::I8),
            Self::Tf32 | Self::E4m3 | Self::E5m2 => None,
        }
    }

    /// Whether the vendor's library computes their products on tensor cores, by what a device is capable of.
    pub(super) fn on_tensor_cores(self, vendor: Vendor, (major, minor): (u32, u32)) -> bool {
        match (self, vendor) {
            // The large chips of each generation from 8.0 on.
            (Self::F64, Vendor::Cuda) => major >= 8 && minor == 0,
            (Self::F32, Vendor::Cuda) => false,
            // The chips for data centres are gfx9.
            (Self::F64 | Self::F32, Vendor::Hip) => major == 9,
            _ => true,
        }
    }
}

/// Bytes of random numbers of magnitude below one, or of any integers.
pub(super) fn pattern(element: ElementType) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(PATTERN_BYTES);
    while bytes.len() < PATTERN_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let number = (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
        let top = (state >> 56) as u8;
        match element {
            ElementType::Float(FloatType::F64) => bytes.extend(f64::from(number).to_le_bytes()),
            // The sign, an exponent below one, and the upper bits of the fraction.
            ElementType::Float(FloatType::F16) => {
                let half = ((state >> 48) as u16 & 0x83ff) | 0x3800;
                bytes.extend(half.to_le_bytes());
            }
            ElementType::Float(FloatType::F8E4M3Fn) => bytes.push((top & 0x87) | 0x30),
            ElementType::Float(FloatType::F8E5M2) => bytes.push((top & 0x83) | 0x38),
            ElementType::I8 => bytes.push(top),
            ElementType::Float(FloatType::Bf16) => bytes.extend(&number.to_le_bytes()[2..]),
            _ => bytes.extend(number.to_le_bytes()),
        }
    }
    bytes.truncate(PATTERN_BYTES);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_numbers_below_one() {
        for bytes in pattern(ElementType::F32).chunks_exact(4) {
            let number = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!(number.abs() <= 1.0, "{number}");
        }
        // All exponents are that of numbers from a half to one.
        for bytes in pattern(ElementType::F16).chunks_exact(2) {
            assert_eq!(u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7c00, 0x3800);
        }
        for (float, bias) in [(FloatType::F8E4M3Fn, 7), (FloatType::F8E5M2, 15)] {
            let fraction = if bias == 7 { 3 } else { 2 };
            let below_one = |byte: &u8| (byte & 0x7f) >> fraction == bias - 1;
            assert!(pattern(ElementType::Float(float)).iter().all(below_one), "{float:?}");
        }
    }

    #[test]
    fn tensor_cores_are_known_by_generation() {
        let on = |numbers: Numbers, vendor, capability| numbers.on_tensor_cores(vendor, capability);
        assert!(on(Numbers::F64, Vendor::Cuda, (9, 0)) && !on(Numbers::F64, Vendor::Cuda, (8, 9)));
        assert!(!on(Numbers::F32, Vendor::Cuda, (9, 0)) && on(Numbers::Tf32, Vendor::Cuda, (9, 0)));
        assert!(on(Numbers::F32, Vendor::Hip, (9, 4)) && !on(Numbers::F32, Vendor::Hip, (11, 0)));
    }
}
