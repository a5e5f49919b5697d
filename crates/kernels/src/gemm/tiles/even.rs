//! Products of rows that lie evenly apart, which tiles are loaded from as they are: nothing is packed.

use std::arch::asm;
use std::ops::Range;

use super::multiply::{NEAR_BYTES, SUM};
use super::{Configured, ROW_BYTES, ROWS, Tiles};
use crate::block::Block;
use crate::gemm::drive::{Shared, Target};
use crate::gemm::kernel::fetch;
use crate::gemm::memory::{MemoryError, Store};
use crate::gemm::packed::PackedView;
use crate::pool::Pool;

/// Rows of a piece, about.
const PIECE_ROWS: usize = 128;
/// How many pieces a product has, about, so that threads finish together.
const PIECES: usize = 16;
/// Bytes of a piece's sums at most, so that they are in cache when they go to their sink.
const RESULT_BYTES: usize = 512 << 10;

/// A left operand of bf16: pixels of images as one sees them through a window. All of its addresses may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Even<'a> {
    /// The first row's first element.
    pub(crate) data: *const u8,
    /// From one row to the next, in bytes.
    pub(crate) row_bytes: usize,
    /// Where the runs of a row begin, in bytes from the row.
    pub(crate) taps: &'a [usize],
    /// 64 bytes each: what a run is long.
    pub(crate) steps: usize,
    /// How many images there are.
    pub(crate) images: usize,
    /// From one image to the next, in bytes.
    pub(crate) image_bytes: usize,
    /// Lines of rows in an image.
    pub(crate) lines: usize,
    /// Rows of a line that belong to the result.
    pub(crate) wanted: usize,
    /// Rows from one line to the next. Those between are computed and forgotten.
    pub(crate) pitch: usize,
}

// SAFETY: who makes a product of the rows promises that nobody writes to them meanwhile.
unsafe impl Sync for Even<'_> {}

impl Even<'_> {
    /// Whether there are enough rows for a tile.
    pub(crate) fn fills_a_tile(&self) -> bool {
        self.lines > 0 && self.rows(self.lines) >= ROWS && self.steps > 0
    }

    /// Rows from the first to the last that is wanted, of so many lines.
    fn rows(&self, lines: usize) -> usize {
        (lines.max(1) - 1) * self.pitch + self.wanted
    }
}

/// How the product is cut, by its sizes alone: lines of an image times panels.
struct Cut {
    /// Pieces of each image's lines, and of the panels.
    pieces: (usize, usize),
    lines: usize,
    panels: usize,
}

impl Cut {
    fn new(even: &Even<'_>, panels: usize) -> Self {
        let wanted = (PIECE_ROWS / even.pitch).max(ROWS.div_ceil(even.pitch) + 1);
        let down = (even.lines / wanted).clamp(1, PIECES);
        let rows = even.rows(even.lines.div_ceil(down));
        let most = (RESULT_BYTES / (rows * 2 * ROWS * SUM)).max(1);
        let across = (PIECES / (down * even.images)).max(panels.div_ceil(most)).clamp(1, panels);
        Self { pieces: (down, across), lines: even.lines, panels }
    }

    fn part(at: usize, of: usize, whole: usize) -> Range<usize> {
        at * whole / of..(at + 1) * whole / of
    }

    /// The image, lines and panels of a piece. Pieces that share panels follow each other.
    fn piece(&self, at: usize, images: usize) -> (usize, Range<usize>, Range<usize>) {
        let (down, across) = self.pieces;
        let (row, panel) = (at % (images * down), at / (images * down));
        (row / down, Self::part(row % down, down, self.lines), Self::part(panel, across, self.panels))
    }
}

/// Computes rows times the packed operand, piece by piece.
///
/// # Safety
///
/// All addresses of the rows and the target are good for the sizes given; nobody else uses the target meanwhile. The rows
/// fill a tile.
pub(crate) unsafe fn drive(
    pool: &Pool,
    store: &Store,
    tiles: Tiles,
    even: &Even<'_>,
    rhs: PackedView<'_>,
    target: Target<'_>,
) -> Result<(), MemoryError> {
    let cut = Cut::new(even, rhs.panels());
    let (down, across) = cut.pieces;
    let rows = even.rows(even.lines.div_ceil(down));
    let each = rows * rhs.panels().div_ceil(across) * 2 * ROWS * SUM;
    let memory = store.take(each * pool.threads())?;
    let rooms = Shared(memory.as_ptr());
    pool.run(even.images * down * across, &|at, worker| {
        let (image, lines, panels) = cut.piece(at, even.images);
        // SAFETY: each worker has its own room; the rest is as the caller promises.
        unsafe {
            let room = rooms.get().add(worker * each);
            piece(tiles, even, rhs, &target, image, lines, panels, room, worker);
        }
    });
    Ok(())
}

/// Computes some lines of an image times some panels and hands them to the sink.
#[allow(clippy::too_many_arguments, reason = "a piece of a product")]
unsafe fn piece(
    tiles: Tiles,
    even: &Even<'_>,
    rhs: PackedView<'_>,
    target: &Target<'_>,
    image: usize,
    lines: Range<usize>,
    panels: Range<usize>,
    room: *mut u8,
    worker: usize,
) {
    let (first, last) = (rhs.panel(panels.start).0, rhs.panel(panels.end - 1).0);
    let columns = first.first..last.first + last.columns;
    let stride = last.first + last.width - first.first;
    let rows = even.rows(lines.len());
    let data = even.data.wrapping_add(image * even.image_bytes + lines.start * even.pitch * even.row_bytes);
    let configured = tiles.configure();
    let far = rhs.arrangement.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > NEAR_BYTES);
    let blocks = rows.div_ceil(2 * ROWS);
    for panel in panels {
        let (panel, rhs) = rhs.panel(panel);
        let out = room.wrapping_add((panel.first - columns.start) * SUM);
        let bytes = even.taps.len() * even.steps * ROWS * panel.width * SUM;
        // Each block of rows fetches its part of the next panel.
        let part = bytes / blocks;
        let mut next = rhs.wrapping_add(bytes);
        let mut row = 0;
        while row < rows {
            // Whole tiles only: the last begins early enough to be one, and computes a few rows again.
            let (at, two) = match rows - row {
                32.. => (row, true),
                17.. if rows >= 2 * ROWS => (rows - 2 * ROWS, true),
                16.. => (row, false),
                _ => (rows - ROWS, false),
            };
            let call = Call {
                lhs: data.wrapping_add(at * even.row_bytes),
                below: ROWS * even.row_bytes,
                steps: even.steps,
                out: out.wrapping_add(at * stride * SUM),
                out_below: ROWS * stride * SUM,
                out_stride: stride * SUM,
                lhs_stride: even.row_bytes,
                rhs,
                ahead: if far { next } else { rhs },
            };
            let two_columns = panel.width == 2 * ROWS;
            if far {
                let fetched = if two && two_columns { even.taps.len() * even.steps * AHEAD } else { 0 };
                (fetched..part).step_by(ROW_BYTES).for_each(|at| fetch(next.wrapping_add(at)));
                next = next.wrapping_add(part);
            }
            row = at + if two { 2 * ROWS } else { ROWS };
            // SAFETY: the addresses are good for whole tiles.
            unsafe { tile(&configured, &call, even.taps, two, two_columns) };
        }
    }
    drop(configured);
    let together = if even.pitch == even.wanted { lines.len() } else { 1 };
    for line in lines.clone().step_by(together.max(1)) {
        let first = (image * even.lines + line) * even.wanted;
        let rows = first..first + together * even.wanted;
        let from = room.wrapping_add((line - lines.start) * even.pitch * stride * SUM);
        let (data, stride) = match target.out {
            Some(out) => {
                for (at, row) in rows.clone().enumerate() {
                    let to = out.wrapping_add((row * target.stride + columns.start) * SUM);
                    // SAFETY: the result has such a row, the room too.
                    unsafe {
                        to.copy_from_nonoverlapping(from.add(at * stride * SUM), columns.len() * SUM);
                    }
                }
                (out.wrapping_add((first * target.stride + columns.start) * SUM), target.stride)
            }
            None => (from, stride),
        };
        if let Some(sink) = target.sink {
            let rows = rows.start + target.origin.0..rows.end + target.origin.0;
            let columns = columns.start + target.origin.1..columns.end + target.origin.1;
            sink(&Block { rows, columns, data, stride, worker });
        }
    }
}

/// One call of a kernel. The order of its fields is known to the instructions below.
#[repr(C)]
struct Call {
    /// The first row.
    lhs: *const u8,
    /// From the first tile of rows to the second, in bytes.
    below: usize,
    /// Lines of 64 bytes of each run.
    steps: usize,
    /// The result's first element.
    out: *mut u8,
    /// From the first tile of the result to the one below, in bytes.
    out_below: usize,
    /// From one row of the result to the next, in bytes.
    out_stride: usize,
    /// From one row to the next, in bytes.
    lhs_stride: usize,
    /// The panel.
    rhs: *const u8,
    /// What comes after the panel: two by two tiles fetch [`AHEAD`] bytes of it in each step.
    ahead: *const u8,
}

/// Bytes that a step of two by two tiles fetches ahead.
const AHEAD: usize = 512;

/// Computes one or two tiles of rows times one or two tiles of columns.
///
/// # Safety
///
/// The addresses are good for whole tiles; there is a tap and a step.
unsafe fn tile(_configured: &Configured, call: &Call, taps: &[usize], two_rows: bool, two_columns: bool) {
    // SAFETY: as the caller promises.
    unsafe {
        match (two_rows, two_columns) {
            (true, true) => two_by_two(call, taps),
            (false, true) => one_by_two(call, taps),
            (true, false) => {
                one_by_one(call, taps);
                let (lhs, out) = (call.lhs.wrapping_add(call.below), call.out.wrapping_add(call.out_below));
                one_by_one(&Call { lhs, out, ..*call }, taps);
            }
            (false, false) => one_by_one(call, taps),
        }
    }
}

/// A kernel: what happens first, in each step, after each step, and last.
macro_rules! kernel {
    ($name:ident, [$($first:literal)*], [$($step:literal)*], $panel_step:literal, [$($last:literal)*]) => {
        unsafe fn $name(call: &Call, taps: &[usize]) {
            let taps = taps.as_ptr_range();
            // SAFETY: the tiles are configured, and the addresses are good for whole tiles.
            unsafe {
                asm!(
                    $($first,)*
                    "2:",
                    "mov {lhs}, [{taps}]",
                    "add {lhs}, [{call}]",
                    "mov {lower}, {lhs}",
                    "add {lower}, [{call} + 8]",
                    "mov {steps}, [{call} + 16]",
                    "3:",
                    $($step,)*
                    "add {lhs}, 64",
                    "add {lower}, 64",
                    concat!("add {rhs}, ", $panel_step),
                    "add {ahead}, 512",
                    "dec {steps}",
                    "jnz 3b",
                    "add {taps}, 8",
                    "cmp {taps}, {end}",
                    "jne 2b",
                    "mov {lhs}, [{call} + 24]",
                    "mov {lower}, {lhs}",
                    "add {lower}, [{call} + 32]",
                    "mov {steps}, [{call} + 40]",
                    $($last,)*
                    call = in(reg) &raw const *call,
                    taps = inout(reg) taps.start => _,
                    end = in(reg) taps.end,
                    lhs = out(reg) _,
                    lower = out(reg) _,
                    steps = out(reg) _,
                    lhs_stride = in(reg) call.lhs_stride,
                    rhs = inout(reg) call.rhs => _,
                    rhs_stride = in(reg) $panel_step / ROWS,
                    ahead = inout(reg) call.ahead => _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

kernel!(
    two_by_two,
    ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"],
    [
        "prefetcht1 [{ahead}]"
        "prefetcht1 [{ahead} + 64]"
        "prefetcht1 [{ahead} + 128]"
        "prefetcht1 [{ahead} + 192]"
        "prefetcht1 [{ahead} + 256]"
        "prefetcht1 [{ahead} + 320]"
        "prefetcht1 [{ahead} + 384]"
        "prefetcht1 [{ahead} + 448]"
        "tileloaddt1 tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]"
        "tdpbf16ps tmm1, tmm4, tmm7"
        "tileloaddt1 tmm5, [{lower} + {lhs_stride}]"
        "tdpbf16ps tmm2, tmm5, tmm6"
        "tdpbf16ps tmm3, tmm5, tmm7"
    ],
    2048,
    [
        "tilestored [{lhs} + {steps}], tmm0"
        "tilestored [{lhs} + {steps} + 64], tmm1"
        "tilestored [{lower} + {steps}], tmm2"
        "tilestored [{lower} + {steps} + 64], tmm3"
    ]
);
kernel!(
    one_by_two,
    ["tilezero tmm0" "tilezero tmm1"],
    [
        "tileloadd tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tileloadd tmm7, [{rhs} + {rhs_stride} + 64]"
        "tdpbf16ps tmm0, tmm4, tmm6"
        "tdpbf16ps tmm1, tmm4, tmm7"
    ],
    2048,
    ["tilestored [{lhs} + {steps}], tmm0" "tilestored [{lhs} + {steps} + 64], tmm1"]
);
kernel!(
    one_by_one,
    ["tilezero tmm0"],
    [
        "tileloadd tmm4, [{lhs} + {lhs_stride}]"
        "tileloadd tmm6, [{rhs} + {rhs_stride}]"
        "tdpbf16ps tmm0, tmm4, tmm6"
    ],
    1024,
    ["tilestored [{lhs} + {steps}], tmm0"]
);

const _: () = assert!(AHEAD == 512 && ROW_BYTES == 64 && ROWS == 16 && size_of::<usize>() == 8);
