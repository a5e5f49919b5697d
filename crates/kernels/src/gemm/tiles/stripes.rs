//! Products of many rows that have to be packed: each worker packs a stripe of them, and multiplies it with all panels while
//! it is in its own second-level cache.

use super::drive::Piece;
use super::left::{Left, pack_rows};
use super::{BLOCK_ROWS, ROW_BYTES};
use crate::gemm::drive::Shared;
use crate::gemm::memory::{MemoryError, Store};
use crate::gemm::operand::Shape;
use crate::gemm::plan::Cut;
use crate::gemm::rows::Rows;
use crate::pool::Pool;

/// Bytes of a packed stripe at most: half of a second-level cache.
const MOST_BYTES: usize = 1 << 20;
/// How many stripes there are for each worker at least, so that workers finish together.
const STRIPES_EACH: usize = 4;

/// Whether a product is worth cutting into stripes: they fit into a cache, and there are enough of them.
pub(super) fn fit(cut: &Cut, shape: Shape, steps: usize, threads: usize) -> bool {
    let bytes = steps.saturating_mul(cut.rows * ROW_BYTES);
    bytes <= MOST_BYTES && shape.m / cut.rows >= STRIPES_EACH * threads
}

/// Computes a product stripe by stripe. Every piece is the same but for its rows: `piece` is one of no rows.
///
/// # Safety
///
/// All addresses of the rows and the target are good for the sizes given; nobody else uses the target meanwhile.
pub(super) unsafe fn drive(
    pool: &Pool,
    store: &Store,
    cut: &Cut,
    shape: Shape,
    lhs: &dyn Rows,
    piece: &Piece<'_>,
) -> Result<(), MemoryError> {
    let block_bytes = piece.steps * BLOCK_ROWS * ROW_BYTES;
    let packed_bytes = cut.rows / BLOCK_ROWS * block_bytes;
    let table_len = BLOCK_ROWS * lhs.taps();
    let table_bytes = (table_len * size_of::<*const u8>()).next_multiple_of(ROW_BYTES);
    let each = packed_bytes + table_bytes + piece.room_bytes(cut);
    let memory = store.take(each * pool.threads())?;
    let rooms = Shared(memory.as_ptr());
    pool.run(shape.m.div_ceil(cut.rows), &|at, worker| {
        let rows = at * cut.rows..shape.m.min((at + 1) * cut.rows);
        // SAFETY: each worker has its own room, of packed rows, addresses of rows and sums; the rest is as the caller
        // promises.
        unsafe {
            let packed = rooms.get().add(worker * each);
            let table = packed.add(packed_bytes);
            let sums = table.add(table_bytes);
            let table = std::slice::from_raw_parts_mut(table.cast::<*const u8>(), table_len);
            for (block, first) in rows.clone().step_by(BLOCK_ROWS).enumerate() {
                let count = BLOCK_ROWS.min(rows.end - first);
                pack_rows(lhs, first, count, table, piece.steps, packed.add(block * block_bytes));
            }
            let piece = piece.of_rows(rows.start, Left::packed(packed, piece.steps));
            for panels in cut.panel_pieces() {
                piece.compute(0..rows.len(), panels, sums, worker);
            }
        }
    });
    Ok(())
}
