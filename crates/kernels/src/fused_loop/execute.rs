//! Runs a plan over a block of rows and columns, tile by tile.

// Buffers and tiles are passed as pointers; the public functions of the parent module state their requirements.
#![allow(unsafe_code)]

use std::ops::Range;

use super::compiled::CompiledLoop;
use super::layout::balanced_part;
use super::long_rows;
use super::scratch::Scratch;
use super::tile_eval::{LoopBuffers, Region, TileEvaluator};

/// Runs a plan over a block.
///
/// # Safety
///
/// The buffers and the tile hold the elements of all accesses within the block. Non-temporal stores are used only where
/// [`CompiledLoop::can_stream`] allows them.
pub(super) unsafe fn block(
    compiled: &CompiledLoop,
    scratch: &mut Scratch,
    buffers: &LoopBuffers<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
    nontemporal: bool,
) {
    if rows.is_empty() {
        return;
    }
    let plan = &compiled.plan;
    #[cfg(target_arch = "x86_64")]
    if let Some(code) = &compiled.code {
        // SAFETY: guaranteed by the caller.
        return unsafe { code.run(plan, scratch, buffers, rows, columns, nontemporal) };
    }
    let _ = nontemporal;
    if plan.has_long_rows() {
        // SAFETY: guaranteed by the caller.
        return unsafe { long_rows::run(plan, None, scratch, buffers, rows) };
    }
    let mut state = TileEvaluator::new(plan, scratch, buffers, None);
    let most = if plan.whole_rows { columns.len() } else { balanced_part(columns.len(), plan.capacity) };
    let mut column = columns.start;
    loop {
        let width = most.min(columns.end - column);
        let height = (plan.capacity / width.max(1)).clamp(1, rows.len());
        let mut region = Region { row: rows.start, rows: height, column, columns: width };
        // SAFETY: guaranteed by the caller.
        unsafe { state.evaluate(&region, false) };
        while region.row < rows.end {
            region.rows = height.min(rows.end - region.row);
            // SAFETY: guaranteed by the caller; values that do not vary with rows are those of these columns.
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
