//! Rows times panels: parts of the depth of a panel, each while it is in the first-level cache.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;

use half::bf16;

use super::kernel::{AHEAD, Call, tile};
use super::left::Left;
use super::{BLOCK_ROWS, Configured, ROW_BYTES, ROWS};
use crate::gemm::convert::to_bf16;
use crate::gemm::kernel::fetch;
use crate::gemm::packed::{PackedView, Panel};

/// Bytes of a sum.
pub(super) const SUM: usize = 4;
/// Bytes of a right operand that stays in a second-level cache: its panels need not be fetched ahead.
pub(super) const NEAR_BYTES: usize = 1 << 20;
/// Steps of a panel that stay in the first-level cache while the rows of a piece are multiplied with them.
const STEPS_AT_ONCE: usize = 16;
/// Blocks of rows whose sums are kept beside until a panel's last steps.
pub(super) const BLOCKS_BESIDE: usize = 8;
/// Elements of a square of two by two tiles of the result.
const SQUARE: usize = BLOCK_ROWS * BLOCK_ROWS;

/// Sums of some blocks of rows; their rows begin at lines of cache.
#[repr(align(64))]
struct Squares(#[allow(dead_code, reason = "used by address")] [u32; SQUARE * BLOCKS_BESIDE]);

/// Where products go: the first row's first column, and what happens to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) out: *mut u8,
    /// From one row to the next, in elements.
    pub(super) stride: usize,
    pub(super) mode: Mode,
}

/// What happens to sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are the result.
    Write,
    /// They are added to what is there.
    Add,
    /// They are written as the nearest bf16.
    Round,
}

impl Mode {
    /// Bytes of an element of the result.
    pub(super) fn bytes(self) -> usize {
        if self == Self::Round { size_of::<bf16>() } else { SUM }
    }
}

/// Multiplies rows with some panels. The place's first column is the first panel's.
///
/// # Safety
///
/// The addresses are good for these rows and panels; nobody else uses the place meanwhile. Only sums of f32 are rounded.
pub(super) unsafe fn multiply(
    configured: &Configured,
    left: &Left,
    rows: Range<usize>,
    steps: usize,
    rhs: PackedView<'_>,
    panels: Range<usize>,
    place: Place,
) {
    let first_column = rhs.panel(panels.start).0.first;
    let far = rhs.arrangement.bytes(rhs.k, rhs.n).is_none_or(|bytes| bytes > NEAR_BYTES);
    let mut beside = MaybeUninit::<Squares>::uninit();
    let Place { out, stride, mode } = place;
    let together = Together { configured, left, steps, far, stride, mode };
    for at in panels {
        let (panel, data) = rhs.panel(at);
        let out = out.wrapping_add((panel.first - first_column) * mode.bytes());
        for first in (0..rows.len()).step_by(BLOCKS_BESIDE * BLOCK_ROWS) {
            let count = (BLOCKS_BESIDE * BLOCK_ROWS).min(rows.len() - first);
            let out = out.wrapping_add(first * stride * mode.bytes());
            let rows = rows.start + first..rows.start + first + count;
            // SAFETY: as the caller promises.
            unsafe { together.multiply(rows, &panel, data, out, beside.as_mut_ptr().cast()) };
        }
    }
}

/// What blocks of rows that are multiplied with a panel have in common.
struct Together<'a> {
    configured: &'a Configured,
    left: &'a Left,
    steps: usize,
    far: bool,
    stride: usize,
    mode: Mode,
}

impl Together<'_> {
    /// Multiplies up to [`BLOCKS_BESIDE`] blocks of rows with a panel, a part of its depth after another. `beside` has room
    /// for a square for each block.
    unsafe fn multiply(
        &self,
        rows: Range<usize>,
        panel: &Panel,
        data: *const u8,
        out: *mut u8,
        beside: *mut u32,
    ) {
        let blocks = rows.len().div_ceil(BLOCK_ROWS);
        let parts = if blocks == 1 { 1 } else { self.steps.div_ceil(STEPS_AT_ONCE).max(1) };
        let step_bytes = ROWS * panel.width * SUM;
        let two_columns = panel.width > ROWS;
        for part in 0..parts {
            let steps = part * self.steps / parts..(part + 1) * self.steps / parts;
            let here = data.wrapping_add(steps.start * step_bytes);
            let bytes = steps.len() * step_bytes;
            for block in 0..blocks {
                let row = block * BLOCK_ROWS;
                let count = BLOCK_ROWS.min(rows.len() - row);
                let whole = count.is_multiple_of(ROWS) && panel.columns == panel.width;
                let in_place = whole && self.mode != Mode::Round;
                let out = out.wrapping_add(row * self.stride * self.mode.bytes());
                let (lhs, lhs_stride, lhs_step) = self.left.block(rows.start + row);
                let square = (beside.wrapping_add(block * SQUARE), BLOCK_ROWS);
                let result = (out.cast::<u32>(), self.stride);
                let (first, last) = (part == 0, part + 1 == parts);
                // Sums are kept beside the result until the last part, and where the result has no whole tiles of them.
                let from = match (first, self.mode) {
                    (true, Mode::Write | Mode::Round) => (null_mut(), 0),
                    (true, Mode::Add) if in_place => result,
                    _ => square,
                };
                let to = if last && in_place { result } else { square };
                let call = Call {
                    lhs: lhs.wrapping_add(steps.start * lhs_step),
                    lhs_stride,
                    lhs_step,
                    rhs: here,
                    rhs_stride: panel.width * SUM,
                    steps: steps.len(),
                    out: to.0.cast(),
                    out_stride: to.1 * SUM,
                    from: from.0.cast(),
                    from_stride: from.1 * SUM,
                    // What follows the part is the next one, or the next panel.
                    ahead: if self.far { here.wrapping_add(bytes + bytes / blocks * block) } else { here },
                };
                if self.far {
                    let fetched = if count > ROWS && two_columns { steps.len() * AHEAD } else { 0 };
                    for at in (fetched..bytes / blocks).step_by(ROW_BYTES) {
                        fetch(call.ahead.wrapping_add(at));
                    }
                }
                // SAFETY: the addresses are good for these rows and columns; the square is where the result is not.
                unsafe {
                    if first && self.mode == Mode::Add && !in_place {
                        copy_rows(result.0, result.1, square.0, square.1, count, panel.columns);
                    }
                    tile(self.configured, &call, count > ROWS);
                    match self.mode {
                        _ if !last || in_place => {}
                        Mode::Round => {
                            round_rows(square.0, square.1, out.cast(), self.stride, count, panel.columns);
                        }
                        Mode::Write | Mode::Add => {
                            copy_rows(square.0, square.1, result.0, result.1, count, panel.columns);
                        }
                    }
                }
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

/// Writes a rectangle of sums of f32 as the nearest bf16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn round_rows(
    from: *const u32,
    from_stride: usize,
    to: *mut bf16,
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        // SAFETY: both have so many rows and columns, and nothing else uses them meanwhile.
        let (from, to) = unsafe {
            let from = from.cast::<f32>().add(row * from_stride);
            (
                std::slice::from_raw_parts(from, columns),
                std::slice::from_raw_parts_mut(to.add(row * to_stride), columns),
            )
        };
        for (to, &from) in to.iter_mut().zip(from) {
            *to = to_bf16(from);
        }
    }
}
