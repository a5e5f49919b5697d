//! The pieces of a product by tiles on the workers of a pool.

use std::ops::Range;
use std::ptr::null;

use half::bf16;

use super::left::{Left, pack_rows};
use super::multiply::{BLOCKS_BESIDE, Mode, Place, SUM, multiply};
use super::{BLOCK_ROWS, ROW_BYTES, Tiles, stripes};
use crate::block::Block;
use crate::gemm::drive::{Shared, Target};
use crate::gemm::memory::{MemoryError, Store};
use crate::gemm::operand::Shape;
use crate::gemm::packed::PackedView;
use crate::gemm::plan::{Cut, Order, Wishes};
use crate::gemm::rows::Rows;
use crate::movement::PAST_CACHES;
use crate::pool::Pool;

/// Bytes of packed rows at a time, so that they are in cache when they are multiplied.
const PACKED_AT_ONCE: usize = 4 << 20;

/// The rows of a piece of a product of many rows: they are multiplied with a part of a panel while it is in the first-level
/// cache, so they are many, unless there would be too few pieces.
fn piece_rows(shape: Shape) -> usize {
    const MANY: usize = 1 << 21;
    if shape.m.saturating_mul(shape.n) < MANY {
        BLOCKS_BESIDE * BLOCK_ROWS / 2
    } else {
        BLOCKS_BESIDE * BLOCK_ROWS
    }
}

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
    let past = past_caches(&target, shape);
    let piece = |first, left| Piece { tiles, steps, rhs, target: &target, past, first, left };
    let whole = cut(shape, &rhs);
    if in_place.is_none() && stripes::fit(&whole, shape, steps, pool.threads()) {
        let piece = piece(0, Left::packed(null(), steps));
        // SAFETY: as the caller promises.
        return unsafe { stripes::drive(pool, store, &whole, shape, lhs, &piece) };
    }
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
        // SAFETY: pieces do not overlap; the rest is as the caller promises.
        unsafe { pieces(pool, store, &cut(Shape { m, ..shape }, &rhs), &piece(first, left))? };
    }
    Ok(())
}

/// How a product is cut into pieces.
fn cut(shape: Shape, rhs: &PackedView<'_>) -> Cut {
    let wishes = Wishes { tile_rows: BLOCK_ROWS, many_rows: piece_rows(shape), order: Order::Rows };
    Cut::new(shape, &rhs.arrangement, wishes)
}

/// Whether a result is written past the caches: too large to be found there, and nobody looks at it at once.
fn past_caches(target: &Target<'_>, shape: Shape) -> bool {
    let element = if target.rounded { size_of::<bf16>() } else { SUM };
    target.sink.is_none() && shape.m.saturating_mul(shape.n * element) >= PAST_CACHES
}

/// What all pieces of a product have in common.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    tiles: Tiles,
    pub(super) steps: usize,
    rhs: PackedView<'a>,
    target: &'a Target<'a>,
    /// Whether the result is written past the caches.
    past: bool,
    /// The row of the result that is the first row of the left operand.
    first: usize,
    left: Left,
}

unsafe fn pieces(pool: &Pool, store: &Store, cut: &Cut, piece: &Piece<'_>) -> Result<(), MemoryError> {
    let each = piece.room_bytes(cut);
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
    /// Pieces of other rows: the row of the result that is their first.
    pub(super) fn of_rows(self, first: usize, left: Left) -> Self {
        Self { first, left, ..self }
    }

    /// Bytes that [`Piece::compute`] needs for the sums of a piece.
    pub(super) fn room_bytes(&self, cut: &Cut) -> usize {
        let elements = if self.target.out.is_some() { 0 } else { cut.rows * cut.panels * BLOCK_ROWS };
        (elements * SUM).next_multiple_of(ROW_BYTES)
    }

    /// Computes one rectangle of the result and hands it to the sink.
    pub(super) unsafe fn compute(
        &self,
        rows: Range<usize>,
        panels: Range<usize>,
        room: *mut u8,
        worker: usize,
    ) {
        let (first, last) = (self.rhs.panel(panels.start).0, self.rhs.panel(panels.end - 1).0);
        let columns = first.first..last.first + last.columns;
        let mode = if self.target.rounded { Mode::Round } else { Mode::Write };
        let (out, stride) = match self.target.out {
            Some(out) => {
                let at = (self.first + rows.start) * self.target.stride + columns.start;
                (out.wrapping_add(at * mode.bytes()), self.target.stride)
            }
            None => (room, last.first + last.width - columns.start),
        };
        let configured = self.tiles.configure();
        // SAFETY: as the caller promises.
        unsafe {
            let rows = rows.clone();
            let place = Place { out, stride, mode, past: self.past };
            multiply(&configured, &self.left, rows, self.steps, self.rhs, panels, place);
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
    let mode = if accumulate { Mode::Add } else { Mode::Write };
    // SAFETY: as the caller promises; what is not read in place has just been packed.
    unsafe {
        multiply(&configured, &left, rows, steps, rhs, panels, Place { out, stride, mode, past: false });
    };
}
