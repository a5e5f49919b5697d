//! Left-hand operands of AMX kernels: rows of a matrix in place, or packed blocks.

use warpforge_tensor::ElementType;

use super::pack_lhs::{LhsBlock, pack_block};
use super::{Amx, BLOCK_ROWS, ROW_BYTES, TileElement};
use crate::gemm::rows::LhsRows;

/// Rows at a multiple of this stride map to the same few cache sets.
const PAGE: usize = 4096;

/// A left-hand operand as AMX kernels read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileLhs {
    data: *const u8,
    /// From one row to the next, in bytes.
    stride: usize,
    /// From one step along the depth to the next, in bytes.
    step: usize,
    /// From one block of rows to the next, in bytes.
    block: usize,
    /// The first of the remaining rows, fewer than a block, and their packed copy.
    rest: Option<(usize, *const u8)>,
}

// SAFETY: the rows are only read during a GEMM.
unsafe impl Sync for TileLhs {}

impl TileLhs {
    /// The rows of a matrix, if tiles can be loaded from them efficiently: elements of the tile type, whole steps, each
    /// step in one cache line. Loads of rows that straddle cache lines take twice as long.
    pub(super) fn in_place(tiles: Amx, rows: &dyn LhsRows) -> Option<Self> {
        let (data, stride) = rows.matrix()?;
        let element = match tiles.element {
            TileElement::Bf16 => ElementType::BF16,
            TileElement::I8 => ElementType::I8,
        };
        let fits = rows.element() == element
            && rows.run().is_multiple_of(tiles.depth())
            && data.addr().is_multiple_of(ROW_BYTES)
            && stride.is_multiple_of(ROW_BYTES)
            && !stride.is_multiple_of(PAGE);
        fits.then_some(Self { data, stride, step: ROW_BYTES, block: BLOCK_ROWS * stride, rest: None })
    }

    /// The same with the remaining rows, fewer than a block, packed.
    pub(super) fn with_rest(self, first: usize, packed: *const u8) -> Self {
        Self { rest: Some((first, packed)), ..self }
    }

    /// Rows packed into blocks.
    pub(super) fn packed(data: *const u8, steps: usize) -> Self {
        let step = BLOCK_ROWS * ROW_BYTES;
        Self { data, stride: ROW_BYTES, step, block: steps * step, rest: None }
    }

    /// The pointer, row stride and step stride, in bytes, of the block of a row.
    pub(super) fn block(&self, row: usize) -> (*const u8, usize, usize) {
        match self.rest {
            Some((first, data)) if row >= first => (data, ROW_BYTES, BLOCK_ROWS * ROW_BYTES),
            _ => (self.data.wrapping_add(row / BLOCK_ROWS * self.block), self.stride, self.step),
        }
    }
}

/// Packs up to 32 rows.
///
/// # Safety
///
/// The rows' addresses are good; the target has space for all steps of a block.
pub(super) unsafe fn pack_rows(
    lhs: &dyn LhsRows,
    first: usize,
    count: usize,
    table: &mut [*const u8],
    steps: usize,
    target: *mut u8,
) {
    lhs.addresses(first, count, table);
    let block = LhsBlock { table, count, taps: lhs.taps(), run: lhs.run(), steps, target };
    // SAFETY: guaranteed by the caller.
    unsafe { pack_block(&block, lhs.element()) }
}
