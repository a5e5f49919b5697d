//! Running a plan over a block of rows and columns, tile by tile.

// Buffers and tiles are given as addresses; the public functions of this module's parent say what must hold of them.
#![allow(unsafe_code)]

use std::ops::Range;

use super::long;
use super::plan::Plan;
use super::scratch::Scratch;
use super::tile::{Buffers, Region, State};

/// Runs a plan over a block.
///
/// # Safety
///
/// The buffers hold what the program's accesses name within the block, and so does the tile. Results are written past the
/// caches only where [`Plan::can_stream`] says so.
pub(super) unsafe fn block(
    plan: &Plan,
    scratch: &mut Scratch,
    buffers: &Buffers<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    past_caches: bool,
) {
    if rows.is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(code) = &plan.code {
        // SAFETY: the caller's promise.
        return unsafe { code.run(plan, scratch, buffers, rows, columns, past_caches) };
    }
    let _ = past_caches;
    if plan.long_rows() {
        // SAFETY: the caller's promise.
        return unsafe { long::run(plan, None, scratch, buffers, rows) };
    }
    let mut state = State::new(plan, scratch, buffers, None);
    let most = if plan.whole_rows { columns.len() } else { even_part(columns.len(), plan.capacity) };
    let mut column = columns.start;
    loop {
        let width = most.min(columns.end - column);
        let height = (plan.capacity / width.max(1)).clamp(1, rows.len());
        let mut region = Region { row: rows.start, rows: height, column, columns: width };
        // SAFETY: the caller's promise.
        unsafe { state.evaluate(&region, false) };
        while region.row < rows.end {
            region.rows = height.min(rows.end - region.row);
            // SAFETY: the caller's promise; values that do not vary with rows are those of these columns.
            unsafe {
                state.evaluate(&region, true);
                state.store(&region);
            }
            region.row += region.rows;
        }
        column += width;
        if column >= columns.end {
            return;
        }
    }
}

/// The size of parts, none above `most`, that a count is cut into as evenly as whole cache lines allow.
pub(super) fn even_part(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).next_multiple_of(64).min(most)
}
