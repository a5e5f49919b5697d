//! Where tiles find the rows of a left operand: as they lie in a matrix, or packed.

use warpforge_tensor::ElementType;

use super::rows::{Block, pack};
use super::{BLOCK_ROWS, Product, ROW_BYTES, Tiles};
use crate::gemm::rows::Rows;

/// Rows that are so far apart share the same few places of a cache.
const PAGE: usize = 4096;

/// A left operand as tiles read it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    data: *const u8,
    /// From one row to the next, in bytes.
    stride: usize,
    /// From one step along the depth to the next, in bytes.
    step: usize,
    /// From one block of rows to the next, in bytes.
    block: usize,
    /// The row from which on rows are packed, fewer than a block, and where.
    rest: Option<(usize, *const u8)>,
}

// SAFETY: the rows are only read while products are made of them.
unsafe impl Sync for Left {}

impl Left {
    /// The rows of a matrix that tiles are best loaded from: elements of the type that tiles multiply, whole steps, each in
    /// one line of cache. Loads of rows that lie across two lines take twice as long.
    pub(super) fn in_place(tiles: Tiles, rows: &dyn Rows) -> Option<Self> {
        let (data, stride) = rows.matrix()?;
        let element = match tiles.product {
            Product::Bf16 => ElementType::BF16,
            Product::I8 => ElementType::I8,
        };
        let fits = rows.element() == element
            && rows.run().is_multiple_of(tiles.depth())
            && data.addr().is_multiple_of(ROW_BYTES)
            && stride.is_multiple_of(ROW_BYTES)
            && !stride.is_multiple_of(PAGE);
        fits.then_some(Self { data, stride, step: ROW_BYTES, block: BLOCK_ROWS * stride, rest: None })
    }

    /// The same with the rows from one on packed: fewer than a block.
    pub(super) fn with_rest(self, first: usize, packed: *const u8) -> Self {
        Self { rest: Some((first, packed)), ..self }
    }

    /// Rows packed into blocks.
    pub(super) fn packed(data: *const u8, steps: usize) -> Self {
        let step = BLOCK_ROWS * ROW_BYTES;
        Self { data, stride: ROW_BYTES, step, block: steps * step, rest: None }
    }

    /// A block by its first row: its address, the bytes from one row to the next and from one step to the next.
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
/// The rows' addresses are good; the target has room for all steps of a block.
pub(super) unsafe fn pack_rows(
    lhs: &dyn Rows,
    first: usize,
    count: usize,
    table: &mut [*const u8],
    steps: usize,
    target: *mut u8,
) {
    lhs.addresses(first, count, table);
    let block = Block { table, count, taps: lhs.taps(), run: lhs.run(), steps, target };
    // SAFETY: as the caller promises.
    unsafe { pack(&block, lhs.element()) }
}
