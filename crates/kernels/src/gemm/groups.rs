//! Packing of weights of 4 bits in groups.

use half::bf16;

use super::matmul::Gemm;
use super::microkernel::ROWS_OF_WORD;
use super::operand::GemmError;
use super::packed::{PackedFormat, PackedRhs};
use crate::buffer::AlignedBuffer;

/// Weights of 4 bits, row by row: a row for each column of the result.
#[derive(Debug, Clone, Copy)]
pub struct GroupedRhs<'a> {
    /// Codes in the lower 4 bits of bytes, two's complement.
    pub codes: &'a [u8],
    /// What the codes of each group are multiplied by.
    pub scales: &'a [bf16],
    /// What is added to each.
    pub offsets: &'a [bf16],
}

impl Gemm {
    /// Packs weights of 4 bits, `n` rows of `k` codes, for a GEMM of such.
    ///
    /// # Errors
    ///
    /// When the GEMM is for other weights, sizes do not agree, or memory cannot be allocated.
    pub fn pack_groups(&self, weights: GroupedRhs<'_>, k: usize, n: usize) -> Result<PackedRhs, GemmError> {
        let layout = self.packed_layout;
        let mismatch = |wanted: String| GemmError::Packed {
            found: format!("{} codes and {} scales for {k}x{n}", weights.codes.len(), weights.scales.len()),
            wanted,
        };
        let PackedFormat::Int4 { group } = layout.format else {
            return Err(mismatch(format!("{:?}", layout.format)));
        };
        let fits = group > 0 && group.is_multiple_of(ROWS_OF_WORD) && k.is_multiple_of(group);
        let groups = k / group.max(1);
        let counts = [weights.codes.len(), weights.scales.len(), weights.offsets.len()];
        if !fits || counts != [k * n, groups * n, groups * n] {
            return Err(mismatch(format!("groups of {group}")));
        }
        let memory = AlignedBuffer::lasting(self.packed_len(k, n)?)?;
        // SAFETY: the memory is that long and has just been made.
        let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), memory.len()) };
        bytes.fill(0);
        let panels = layout.panels(n);
        for at in 0..panels.count() {
            let panel = panels.at(at);
            let (start, width) = (layout.offset(k, &panel), panel.width);
            for step in 0..groups {
                let block = &mut bytes[start + step * width * layout.format.unit_bytes()..];
                for column in 0..panel.columns {
                    let row = panel.first + column;
                    let scale = weights.scales[row * groups + step].to_le_bytes();
                    let offset = weights.offsets[row * groups + step].to_le_bytes();
                    block[2 * column..2 * column + 2].copy_from_slice(&scale);
                    block[2 * (width + column)..2 * (width + column) + 2].copy_from_slice(&offset);
                    let codes = &weights.codes[row * k + step * group..][..group];
                    for (word, codes) in codes.chunks_exact(ROWS_OF_WORD).enumerate() {
                        let packed =
                            codes.iter().rev().fold(0u32, |word, &code| word << 4 | u32::from(code & 0xf));
                        let to = 4 * width + 4 * (word * width + column);
                        block[to..to + 4].copy_from_slice(&packed.to_le_bytes());
                    }
                }
            }
        }
        Ok(PackedRhs { memory, packed_layout: layout, k, n })
    }
}
