//! Numeric formats of GEMMs and test data for them.

use warpforge_codegen::Units;
use warpforge_tensor::{ElementType, FloatType};

use crate::blas::ComputeType;
use crate::vendor::Vendor;

/// Bytes of random data, repeated to fill buffers.
const PATTERN_BYTES: usize = 4 << 20;

/// A numeric format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumericFormat {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// 32-bit floats rounded to tf32.
    Tf32,
    /// 16-bit floats, accumulated in f32.
    F16,
    /// bfloat16, accumulated in f32.
    Bf16,
    /// 8-bit floats with a 4-bit exponent, accumulated in f32.
    E4m3,
    /// 8-bit floats with a 5-bit exponent, times e4m3: libraries have no e5m2 by e5m2 GEMM.
    E5m2,
    /// 8-bit integers, accumulated in 32 bits.
    I8,
}

impl NumericFormat {
    /// All of them.
    pub const ALL: [NumericFormat; 8] =
        [Self::F64, Self::F32, Self::Tf32, Self::F16, Self::Bf16, Self::E4m3, Self::E5m2, Self::I8];

    /// The name.
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

    /// Element types of both operands and of the result.
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

    pub(super) fn compute_type(self) -> ComputeType {
        match self {
            Self::F64 => ComputeType::F64,
            Self::Tf32 => ComputeType::Tf32,
            Self::I8 => ComputeType::I32,
            _ => ComputeType::F32,
        }
    }

    /// The arithmetic units without tensor cores; none for tensor-core formats.
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

    /// Whether the vendor's BLAS uses tensor cores for this format on a device.
    pub(super) fn on_tensor_cores(self, vendor: Vendor, (major, minor): (u32, u32)) -> bool {
        match (self, vendor) {
            // Data-centre chips from 8.0 on.
            (Self::F64, Vendor::Cuda) => major >= 8 && minor == 0,
            (Self::F32, Vendor::Cuda) => false,
            // Data-centre chips are gfx9.
            (Self::F64 | Self::F32, Vendor::Hip) => major == 9,
            _ => true,
        }
    }
}

/// Random bytes: floats below one, or any integers.
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
            // Sign, exponent below one, high fraction bits.
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
    fn patterns_are_below_one() {
        for bytes in pattern(ElementType::F32).chunks_exact(4) {
            let number = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!(number.abs() <= 1.0, "{number}");
        }
        // All exponents are those of [0.5, 1).
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
    fn tensor_cores_by_generation() {
        let on = |format: NumericFormat, vendor, capability| format.on_tensor_cores(vendor, capability);
        assert!(
            on(NumericFormat::F64, Vendor::Cuda, (9, 0)) && !on(NumericFormat::F64, Vendor::Cuda, (8, 9))
        );
        assert!(
            !on(NumericFormat::F32, Vendor::Cuda, (9, 0)) && on(NumericFormat::Tf32, Vendor::Cuda, (9, 0))
        );
        assert!(on(NumericFormat::F32, Vendor::Hip, (9, 4)) && !on(NumericFormat::F32, Vendor::Hip, (11, 0)));
    }
}
