//! How numbers are stored: float types, blocks of 32 quantized numbers with a scale, and blocks of 256 whose parts have scales of few
//! bits.

use half::{bf16, f16};

/// Numbers of a quantized block.
const BLOCK: usize = 32;
/// Numbers of a block whose scales are quantized too.
const LONG_BLOCK: usize = 256;

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
    /// Blocks of 256 numbers of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// Blocks of 256 numbers of 6 bits around zero; each 16 have a scale of 8 bits.
    Q6K,
}

impl StoredType {
    /// Every type.
    const ALL: [Self; 8] =
        [Self::F32, Self::F16, Self::Bf16, Self::Q4_0, Self::Q4_1, Self::Q8_0, Self::Q4K, Self::Q6K];

    /// The type of a code; none where it is not known.
    pub(super) fn of(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|stored| stored.code() == code)
    }

    /// Its code in files.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q8_0 => 8,
            Self::Q4K => 12,
            Self::Q6K => 14,
            Self::Bf16 => 30,
        }
    }

    /// Numbers of a block.
    #[must_use]
    pub fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => BLOCK,
            Self::Q4K | Self::Q6K => LONG_BLOCK,
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
            Self::Q4K => 4 + 12 + LONG_BLOCK / 2,
            Self::Q6K => LONG_BLOCK / 2 + LONG_BLOCK / 4 + LONG_BLOCK / 16 + 2,
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
                Self::Q4K => {
                    let (scale, least) = (half(block, 0), half(block, 2));
                    let (parts, codes) = block[4..].split_at(12);
                    for (at, codes) in codes.chunks_exact(BLOCK).enumerate() {
                        let both: Vec<u8> = nibbles(codes).collect();
                        for (part, codes) in both.chunks_exact(BLOCK).enumerate() {
                            let (factor, offset) = six_bits(parts, 2 * at + part);
                            let (scale, least) = (scale * f32::from(factor), least * f32::from(offset));
                            values.extend(codes.iter().map(|&code| scale * f32::from(code) - least));
                        }
                    }
                }
                Self::Q6K => values.extend((0..LONG_BLOCK).map(|at| {
                    let scale = half(block, block.len() - 2) * f32::from(block[192 + at / 16].cast_signed());
                    scale * (f32::from(six_bit_code(block, at)) - 32.0)
                })),
            }
        }
        values
    }
}

/// The scale and the minimum of one of the eight parts of a block of [`StoredType::Q4K`].
fn six_bits(packed: &[u8], part: usize) -> (u8, u8) {
    match part {
        0..4 => (packed[part] & 63, packed[part + 4] & 63),
        _ => {
            let low = packed[part + 4];
            (low & 15 | packed[part - 4] >> 6 << 4, low >> 4 | packed[part] >> 6 << 4)
        }
    }
}

/// A number of a block of [`StoredType::Q6K`]: four bits, then two more.
fn six_bit_code(block: &[u8], at: usize) -> u8 {
    let (half, quarter, column) = (at / 128, at % 128 / 32, at % 32);
    let low = block[64 * half + 32 * (quarter % 2) + column] >> (4 * (quarter / 2)) & 15;
    let high = block[128 + 32 * half + column] >> (2 * quarter) & 3;
    low | high << 4
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

    /// Sums of the Python package `gguf` 0.19 for the same bytes.
    #[test]
    fn long_blocks_are_those_of_llama_cpp() {
        let half = |value: f32| f16::from_f32(value).to_le_bytes();
        let bytes = |count: usize| -> Vec<u8> { (0..count).map(|at| (at * 37 + 11) as u8).collect() };
        let weighted = |values: &[f32]| -> f64 {
            values.iter().enumerate().map(|(at, &value)| at as f64 * f64::from(value)).sum()
        };
        let mut block = bytes(144);
        block[..4].copy_from_slice(&[half(0.5), half(0.25)].concat());
        let found = StoredType::Q4K.decode(&block);
        assert_eq!(
            (found[0], found[1], found[70], found[161], found[255]),
            (157.75, -12.75, 169.25, 352.5, 24.25)
        );
        assert_eq!((found.iter().sum::<f32>(), weighted(&found)), (27_220.0, 3_759_200.0));
        let mut block = bytes(210);
        block[208..].copy_from_slice(&half(0.5));
        let found = StoredType::Q6K.decode(&block);
        assert_eq!((found[0], found[32], found[127], found[128]), (-715.5, 115.5, 750.0, -175.5));
        assert_eq!((found.iter().sum::<f32>(), weighted(&found)), (2306.0, 389_904.0));
        assert_eq!((StoredType::Q4K.bytes(512), StoredType::Q6K.bytes(256)), (Some(288), Some(210)));
        assert_eq!(StoredType::Q6K.bytes(128), None);
    }
}
