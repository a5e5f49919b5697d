//! The pieces of a product by tiles on the workers of a pool.

use std::ops::Range;

use super::kernel::{Call, tile};
use super::left::{Left, pack_rows};
use super::{BLOCK_ROWS, Configured, ROW_BYTES, ROWS, Tiles};
use crate::block::Block;
use crate::gemm::drive::{Shared, Target};
use crate::gemm::kernel::fetch;
use crate::gemm::memory::{MemoryError, Store};
use crate::gemm::operand::Shape;
use crate::gemm::packed::PackedView;
use crate::gemm::plan::Cut;
use crate::gemm::rows::Rows;
use crate::pool::Pool;

/// Bytes of a sum.
const SUM: usize = 4;
/// Bytes of packed rows at a time, so that they are in cache when they are multiplied.
const PACKED_AT_ONCE: usize = 4 << 20;
/// Bytes of a right operand that stays in a second-level cache: its panels need not be fetched ahead.
const NEAR_BYTES: usize = 1 << 20;
/// Elements of a square of two by two tiles of the result.
const SQUARE: usize = BLOCK_ROWS * BLOCK_ROWS;

/// Computes `rows` times the packed operand piece by piece, from the rows as they lie or after they are packed.
///
/// # Safety
///
/// All addresses of the rows and the target are good for the sizes given; nobody else uses the target meanwhile.
pub(crate) unsafe fn drive(
    pool: &Pool,
    store: &Store,
    tiles: Tiles,
    shape: Shape,
    lhs: &dyn Rows,
    rhs: PackedView<'_>,
    target: Target<'_>,
) -> Result<(), MemoryError> {
    let steps = shape.k.div_ceil(tiles.depth());
    let block_bytes = steps * BLOCK_ROWS * ROW_BYTES;
    let table_len = BLOCK_ROWS * lhs.taps();
    let in_place = Left::in_place(tiles, lhs);
    let blocks = match in_place {
        Some(_) => shape.m.div_ceil(BLOCK_ROWS),
        None => shape.m.div_ceil(BLOCK_ROWS).min((PACKED_AT_ONCE / block_bytes.max(1)).max(4)),
    };
    let packed = store.take(if in_place.is_some() { 1 } else { blocks }.saturating_mul(block_bytes))?;
    let packed_rows = Shared(packed.as_ptr());
    for first in (0..shape.m).step_by(blocks * BLOCK_ROWS) {
        let m = (blocks * BLOCK_ROWS).min(shape.m - first);
        let tables = store.take(pool.threads() * table_len * size_of::<*const u8>())?;
        let all_tables = Shared(tables.as_ptr());
        let pack = |row: usize, to: usize, worker: usize| {
            let count = BLOCK_ROWS.min(m - row);
            // SAFETY: each worker has its own table, each piece its own block; the rest is as the caller promises.
            unsafe {
                let table = all_tables.get().cast::<*const u8>().add(worker * table_len);
                let table = std::slice::from_raw_parts_mut(table, table_len);
                pack_rows(lhs, first + row, count, table, steps, packed_rows.get().add(to * block_bytes));
            }
        };
        let left = match in_place {
            Some(left) if m.is_multiple_of(BLOCK_ROWS) => left,
            Some(left) => {
                let row = m / BLOCK_ROWS * BLOCK_ROWS;
                pack(row, 0, 0);
                left.with_rest(row, packed.as_ptr())
            }
            None => {
                pool.run(m.div_ceil(BLOCK_ROWS), &|at, worker| pack(at * BLOCK_ROWS, at, worker));
                Left::packed(packed.as_ptr(), steps)
            }
        };
        drop(tables);
        let cut = Cut::new(Shape { m, ..shape }, &rhs.arrangement, BLOCK_ROWS);
        let piece = Piece { tiles, steps, rhs, target: &target, first, left };
        // SAFETY: pieces do not overlap; the rest is as the caller promises.
        unsafe { pieces(pool, store, &cut, &piece)? };
    }
    Ok(())
}

/// What all pieces of a product have in common.
struct Piece<'a> {
    tiles: Tiles,
    steps: usize,
    rhs: PackedView<'a>,
    target: &'a Target<'a>,
    /// The row of the result that is the first row of the left operand.
    first: usize,
    left: Left,
}

unsafe fn pieces(pool: &Pool, store: &Store, cut: &Cut, piece: &Piece<'_>) -> Result<(), MemoryError> {
    let columns = cut.panels * BLOCK_ROWS;
    let elements = if piece.target.out.is_some() { 0 } else { cut.rows * columns };
    let each = (elements * SUM).next_multiple_of(64);
    let memory = store.take(each * pool.threads())?;
    let rooms = Shared(memory.as_ptr());
    pool.run(cut.pieces(), &|at, worker| {
        let (rows, panels) = cut.piece(at);
        // SAFETY: each worker has its own room; the rest is as the caller promises.
        unsafe {
            let room = rooms.get().add(worker * each);
            piece.compute(rows, panels, room, worker);
        }
    });
    Ok(())
}

impl Piece<'_> {
    /// Computes one rectangle of the result and hands it to the sink.
    unsafe fn compute(&self, rows: Range<usize>, panels: Range<usize>, room: *mut u8, worker: usize) {
        let (first, last) = (self.rhs.panel(panels.start).0, self.rhs.panel(panels.end - 1).0);
        let columns = first.first..last.first + last.columns;
        let (out, stride) = match self.target.out {
            Some(out) => {
                let at = (self.first + rows.start) * self.target.stride + columns.start;
                (out.wrapping_add(at * SUM), self.target.stride)
            }
            None => (room, last.first + last.width - columns.start),
        };
        let configured = self.tiles.configure();
        // SAFETY: as the caller promises.
        unsafe {
            let rows = rows.clone();
            multiply(&configured, &self.left, rows, self.steps, self.rhs, panels, out, stride, false);
        }
        drop(configured);
        if let Some(sink) = self.target.sink {
            let origin = self.target.origin;
            let rows = rows.start + self.first + origin.0..rows.end + self.first + origin.0;
            let columns = columns.start + origin.1..columns.end + origin.1;
            sink(&Block { rows, columns, data: out, stride, worker });
        }
    }
}

/// Multiplies rows with some panels. `out` is the element of the first row and the first panel's first column.
#[allow(
    clippy::too_many_arguments,
    reason = "the loop's invariants; a struct of them would be built for one call"
)]
unsafe fn multiply(
    configured: &Configured,
    left: &Left,
    rows: Range<usize>,
    steps: usize,
    rhs: PackedView<'_>,
    panels: Range<usize>,
    out: *mut u8,
    stride: usize,
    accumulate: bool,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let blocks = rows.len().div_ceil(BLOCK_ROWS);
    let far = rhs.arrangement.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > NEAR_BYTES);
    let mut square = [0u32; SQUARE];
    for at in panels.clone() {
        let (panel, data) = rhs.panel(at);
        let ahead = if far { (steps * ROWS * panel.width * SUM).div_ceil(blocks) } else { 0 };
        let ahead = ahead.next_multiple_of(ROW_BYTES);
        let next = rhs.panel((at + 1).min(panels.end - 1)).1;
        for block in 0..blocks {
            let row = block * BLOCK_ROWS;
            let count = BLOCK_ROWS.min(rows.len() - row);
            let two_rows = count > ROWS;
            let direct = count.is_multiple_of(ROWS) && panel.columns == panel.width;
            let out = out.wrapping_add((row * stride + panel.first - first_column) * SUM);
            let (lhs, lhs_stride, lhs_step) = left.block(rows.start + row);
            let mut call = Call {
                lhs,
                lhs_stride,
                lhs_step,
                rhs: data,
                rhs_stride: panel.width * SUM,
                steps,
                out,
                out_stride: stride * SUM,
                accumulate,
            };
            for line in (0..ahead).step_by(ROW_BYTES) {
                fetch(next.wrapping_add(block * ahead + line));
            }
            // SAFETY: the addresses are good for these rows and columns; where they are not whole tiles, the square
            // takes the result first.
            unsafe {
                if direct {
                    tile(configured, &call, two_rows);
                    continue;
                }
                let beside = square.as_mut_ptr();
                if accumulate {
                    copy_rows(out.cast(), stride, beside, BLOCK_ROWS, count, panel.columns);
                }
                (call.out, call.out_stride) = (beside.cast(), BLOCK_ROWS * SUM);
                tile(configured, &call, two_rows);
                copy_rows(beside, BLOCK_ROWS, out.cast(), stride, count, panel.columns);
            }
        }
    }
}

/// Copies a rectangle of sums. The result need not be aligned.
unsafe fn copy_rows(
    from: *const u32,
    from_stride: usize,
    to: *mut u32,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have so many rows and columns.
        unsafe {
            let (from, to) = (from.add(row * from_stride), to.add(row * to_stride));
            to.cast::<u8>().copy_from_nonoverlapping(from.cast(), columns * SUM);
        }
    }
}

/// One product by the calling thread alone; `packed` has room for the packed rows, `table` for the addresses of 32 rows.
///
/// # Safety
///
/// As for [`drive`].
#[allow(clippy::too_many_arguments, reason = "those of a product, as everybody knows them")]
pub(crate) unsafe fn block(
    tiles: Tiles,
    shape: Shape,
    lhs: &dyn Rows,
    rhs: PackedView<'_>,
    packed: *mut u8,
    table: &mut [*const u8],
    out: *mut u8,
    stride: usize,
    accumulate: bool,
) {
    let steps = shape.k.div_ceil(tiles.depth());
    let in_place = Left::in_place(tiles, lhs);
    let whole = if in_place.is_some() { shape.m / BLOCK_ROWS * BLOCK_ROWS } else { 0 };
    for (at, first) in (whole..shape.m).step_by(BLOCK_ROWS).enumerate() {
        let to = packed.wrapping_add(at * BLOCK_ROWS * steps * ROW_BYTES);
        // SAFETY: as the caller promises.
        unsafe { pack_rows(lhs, first, BLOCK_ROWS.min(shape.m - first), table, steps, to) };
    }
    let left = match in_place {
        Some(left) => left.with_rest(whole, packed),
        None => Left::packed(packed, steps),
    };
    let configured = tiles.configure();
    let (rows, panels) = (0..shape.m, 0..rhs.panels());
    // SAFETY: as the caller promises; what is not read in place has just been packed.
    unsafe { multiply(&configured, &left, rows, steps, rhs, panels, out, stride, accumulate) };
}
