//! The pieces of a product on the workers of a pool.

use std::ops::Range;

use super::kernel::{AHEAD, Call, Family};
use super::memory::{MemoryError, Store};
use super::packed::PackedView;
use super::plan::{Cut, stretches};
use super::rows::Rows;
use crate::block::{Block, Sink};
use crate::movement::{PAST_CACHES, copy_past};
use crate::pool::Pool;

/// Where results go.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The result's first element, or none where blocks live only until their sink has seen them.
    pub(crate) out: Option<*mut u8>,
    /// The distance of the result's rows, in elements.
    pub(crate) stride: usize,
    /// Whether the result's elements are the sums rounded to bf16; only tiles of bf16 do that, and no sink sees them.
    pub(crate) rounded: bool,
    /// Sees every block as soon as it is whole.
    pub(crate) sink: Option<&'a Sink<'a>>,
    /// What the rows and columns of blocks are counted from.
    pub(crate) origin: (usize, usize),
}

// SAFETY: pieces write to rectangles of the result that do not overlap; the sink may be called by any thread.
unsafe impl Sync for Target<'_> {}

/// Memory of one worker: addresses of rows, then a block of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// How many addresses there is room for.
    pub(crate) addresses: usize,
    /// How many elements of a result there is room for.
    pub(crate) elements: usize,
}

impl Room {
    /// What a piece of a product needs. A result that is too large to be found in the caches is computed in blocks, each
    /// of which goes past the caches when it is whole: its rows are too far apart to be added to where they lie.
    pub(crate) fn of(cut: &Cut, taps: usize, family: &Family, target: &Target<'_>) -> Self {
        let in_place =
            target.out.is_some() && (target.sink.is_some() || cut.elements() < PAST_CACHES / family.bytes);
        let columns = cut.panels * family.lanes * family.vectors;
        Self { addresses: cut.rows * taps, elements: if in_place { 0 } else { cut.rows * columns } }
    }

    /// Bytes of it, a whole number of lines of cache.
    pub(crate) fn bytes(self, element: usize) -> usize {
        self.block_offset() + (self.elements * element).next_multiple_of(64)
    }

    fn block_offset(self) -> usize {
        (self.addresses * size_of::<*const u8>()).next_multiple_of(64)
    }
}

/// Computes `rows` times the packed operand, piece by piece.
///
/// # Safety
///
/// All addresses of the rows and the target are good for the sizes given; nobody else uses the target meanwhile.
pub(crate) unsafe fn drive(
    pool: &Pool,
    store: &Store,
    family: &Family,
    cut: &Cut,
    lhs: &dyn Rows,
    rhs: PackedView<'_>,
    target: Target<'_>,
) -> Result<(), MemoryError> {
    let room = Room::of(cut, lhs.taps(), family, &target);
    let each = room.bytes(family.bytes);
    let memory = store.take(each * pool.threads())?;
    let rooms = Shared(memory.as_ptr());
    pool.run(cut.pieces(), &|piece, worker| {
        let (rows, panels) = cut.piece(piece);
        // SAFETY: each worker has its own part of the memory; the rest is as the caller promises, and pieces do not
        // overlap.
        unsafe {
            let space = rooms.get().add(worker * each);
            self::piece(family, lhs, rhs, &target, rows, panels, room, space, worker);
        }
    });
    Ok(())
}

/// An address that all workers may see; each uses a part of its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared(pub(crate) *mut u8);

// SAFETY: see above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn get(&self) -> *mut u8 {
        self.0
    }
}

/// Computes one rectangle of the result and hands it to the sink.
///
/// # Safety
///
/// As for [`drive`]; `space` has as many bytes as `room` says, for this call alone.
#[allow(
    clippy::too_many_arguments,
    reason = "the loop's invariants; a struct of them would be built for one call"
)]
pub(crate) unsafe fn piece(
    family: &Family,
    lhs: &dyn Rows,
    rhs: PackedView<'_>,
    target: &Target<'_>,
    rows: Range<usize>,
    panels: Range<usize>,
    room: Room,
    space: *mut u8,
    worker: usize,
) {
    let count = rows.len();
    let first_column = rhs.panel(panels.start).0.first;
    let last = rhs.panel(panels.end - 1).0;
    let columns = first_column..last.first + last.columns;
    // SAFETY: the space begins with room for so many addresses, the block follows; the target is as the caller says.
    let (table, out, stride) = unsafe {
        let table = std::slice::from_raw_parts_mut(space.cast::<*const u8>(), room.addresses);
        match target.out {
            Some(out) if room.elements == 0 => {
                let at = rows.start * target.stride + columns.start;
                (table, out.add(at * family.bytes), target.stride)
            }
            _ => (table, space.add(room.block_offset()), (last.first + last.width) - columns.start),
        }
    };
    lhs.addresses(rows.start, count, table);
    // SAFETY: the addresses have just been written; the rest is as the caller promises.
    unsafe { multiply(family, lhs, rhs, table, count, panels, out, stride, false) };
    match (target.sink, target.out) {
        (Some(sink), _) => {
            let shift = |range: Range<usize>, by: usize| range.start + by..range.end + by;
            let (rows, columns) = (shift(rows, target.origin.0), shift(columns, target.origin.1));
            sink(&Block { rows, columns, data: out, stride, worker });
        }
        (None, Some(result)) if room.elements > 0 => {
            let at = (rows.start * target.stride + columns.start) * family.bytes;
            let [from_stride, to_stride, bytes] =
                [stride, target.stride, columns.len()].map(|n| n * family.bytes);
            // SAFETY: the block has just been computed; the target is as the caller says.
            unsafe { copy_past(out, from_stride, result.add(at), to_stride, count, bytes) };
        }
        (None, _) => {}
    }
}

/// Multiplies the rows at the addresses with some panels. `out` is the element of the first row and the first panel's
/// first column.
///
/// # Safety
///
/// The addresses are good for the runs of `lhs`, the result for so many rows and columns.
#[allow(clippy::too_many_arguments, reason = "as above")]
pub(crate) unsafe fn multiply(
    family: &Family,
    lhs: &dyn Rows,
    rhs: PackedView<'_>,
    table: &[*const u8],
    count: usize,
    panels: Range<usize>,
    out: *mut u8,
    stride: usize,
    accumulate: bool,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let (taps, run) = (lhs.taps(), lhs.run());
    // Even groups: one row alone would keep the multipliers waiting.
    let groups = count.div_ceil(family.rows);
    let none = taps * run == 0;
    // Sums of nothing are zero, which kernels write when they are given no taps.
    let nothing = none.then_some(super::plan::Stretch { tap: 0, taps: 0, skip: 0, run: 0, row: 0 });
    let stretches = nothing.into_iter().chain(stretches(taps, run, count).filter(|_| !none));
    for stretch in stretches {
        for at in panels.clone() {
            let (panel, data) = rhs.panel(at);
            let here = data.wrapping_add(stretch.row * panel.width * family.bytes);
            let bytes = stretch.taps * stretch.run * panel.width * family.bytes;
            let next = match at + 1 < panels.end {
                true => {
                    let (panel, data) = rhs.panel(at + 1);
                    data.wrapping_add(stretch.row * panel.width * family.bytes)
                }
                false => {
                    let (panel, data) = rhs.panel(panels.start);
                    let row = stretch.row + stretch.taps * stretch.run;
                    data.wrapping_add(row * panel.width * family.bytes)
                }
            };
            let each = stretch.taps * stretch.run * AHEAD;
            let mut call = Call {
                rows: table.as_ptr(),
                pitch: count,
                taps: stretch.taps,
                skip: stretch.skip,
                run: stretch.run,
                rhs: here,
                ahead: next,
                out: out.wrapping_add((panel.first - first_column) * family.bytes),
                out_stride: stride,
                columns: panel.columns,
                accumulate: accumulate || stretch.row > 0,
            };
            call.rows = call.rows.wrapping_add(stretch.tap * count);
            let vectors = panel.width / family.lanes;
            for group in 0..groups {
                let rows = (group + 1) * count / groups - group * count / groups;
                call.ahead = if group * each < bytes { next.wrapping_add(group * each) } else { here };
                // SAFETY: the processor has the family's instructions, because the family was chosen by what it has;
                // the addresses are good for these rows, panels and elements.
                unsafe { family.kernel(rows, vectors)(&call) };
                call.rows = call.rows.wrapping_add(rows);
                call.out = call.out.wrapping_add(rows * stride * family.bytes);
            }
        }
    }
}
