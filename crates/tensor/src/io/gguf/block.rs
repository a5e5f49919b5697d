//! How numbers are stored: float types, and blocks of 32 quantized numbers with a scale.

use half::{bf16, f16};

/// Numbers of a quantized block.
const BLOCK: usize = 32;

/// A storage type of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredType {
    /// f32.
    F32,
    /// f16.
    F16,
    /// bf16.
    Bf16,
    /// Blocks of 32 numbers of 4 bits around zero, and a scale.
    Q4_0,
    /// Blocks of 32 numbers of 4 bits, a scale and a minimum.
    Q4_1,
    /// Blocks of 32 numbers of 8 bits, and a scale.
    Q8_0,
}

impl StoredType {
    /// The type of a code; none where it is not known.
    pub(super) fn of(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            8 => Self::Q8_0,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// Numbers of a block.
    #[must_use]
    pub fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => BLOCK,
        }
    }

    /// Bytes of a block.
    fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 2 + BLOCK / 2,
            Self::Q4_1 => 4 + BLOCK / 2,
            Self::Q8_0 => 2 + BLOCK,
        }
    }

    /// Bytes of that many numbers; none on overflow or where they are not whole blocks.
    pub(super) fn bytes(self, elements: usize) -> Option<usize> {
        let whole = elements.is_multiple_of(self.block());
        (elements / self.block()).checked_mul(self.block_bytes()).filter(|_| whole)
    }

    /// The numbers of whole blocks.
    pub(super) fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let half = |block: &[u8], at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        let blocks = bytes.chunks_exact(self.block_bytes());
        let mut values = Vec::with_capacity(blocks.len() * self.block());
        for block in blocks {
            match self {
                Self::F32 => values.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
                Self::F16 => values.push(half(block, 0)),
                Self::Bf16 => values.push(bf16::from_le_bytes([block[0], block[1]]).to_f32()),
                Self::Q4_0 => {
                    let scale = half(block, 0);
                    values.extend(nibbles(&block[2..]).map(|number| (f32::from(number) - 8.0) * scale));
                }
                Self::Q4_1 => {
                    let (scale, least) = (half(block, 0), half(block, 2));
                    values.extend(nibbles(&block[4..]).map(|number| f32::from(number) * scale + least));
                }
                Self::Q8_0 => {
                    let scale = half(block, 0);
                    values.extend(block[2..].iter().map(|&number| f32::from(number as i8) * scale));
                }
            }
        }
        values
    }
}

/// The lower halves of all bytes, then the upper ones.
fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.iter().map(|byte| byte & 15).chain(bytes.iter().map(|byte| byte >> 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_decoded() {
        let half = |value: f32| f16::from_f32(value).to_le_bytes();
        let bytes: Vec<u8> = (0..16).map(|at| at | (15 - at) << 4).collect();
        let block = [&half(0.5)[..], &bytes].concat();
        let found = StoredType::Q4_0.decode(&block);
        assert_eq!((found[0], found[15], found[16], found[31]), (-4.0, 3.5, 3.5, -4.0));
        let block = [&half(0.5)[..], &half(-1.0), &bytes].concat();
        let found = StoredType::Q4_1.decode(&block);
        assert_eq!((found.len(), found[0], found[2], found[31]), (32, -1.0, 0.0, -1.0));
        let block = [&half(0.25)[..], &[0xff; 32]].concat();
        assert_eq!(StoredType::Q8_0.decode(&block), [-0.25; 32]);
        assert_eq!(StoredType::Bf16.decode(&bf16::from_f32(-1.5).to_le_bytes()), [-1.5]);
        assert_eq!(StoredType::F16.decode(&half(0.125)), [0.125]);
        assert_eq!(StoredType::Q4_1.bytes(64), Some(40));
        assert_eq!(StoredType::Q4_1.bytes(33), None);
    }
}
