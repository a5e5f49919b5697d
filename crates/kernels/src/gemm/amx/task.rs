//! One task of an AMX GEMM: a block of the output.

use std::ops::Range;

use super::lhs::TileLhs;
use super::multiply::{SUM_BYTES, StoreMode, TileOutput, multiply};
use super::{Amx, BLOCK_ROWS};
use crate::gemm::drive::GemmTarget;
use crate::gemm::packed::PackedView;
use crate::gemm::partition::Partition;
use crate::output_block::OutputBlock;

/// Bytes of sums that are passed to the sink at a time: they are still in the L1 cache, and its stores are on their way while the next sums
/// are computed.
const SINK_BYTES: usize = 32 << 10;

/// The panels whose sums are passed to the sink together.
fn panels_of_sink(rows: usize) -> usize {
    (SINK_BYTES / (rows * BLOCK_ROWS * SUM_BYTES).max(1)).max(1)
}

/// The context that all tasks of an AMX GEMM share.
#[derive(Clone, Copy)]
pub(super) struct TileTask<'a> {
    pub(super) tiles: Amx,
    pub(super) steps: usize,
    pub(super) rhs: PackedView<'a>,
    pub(super) target: &'a GemmTarget<'a>,
    /// Whether to use non-temporal stores.
    pub(super) nontemporal: bool,
    /// The row of the output that is the first row of the left-hand operand.
    pub(super) first: usize,
    pub(super) lhs_source: TileLhs,
}

impl TileTask<'_> {
    /// The context for other rows: `first` is their first row in the output.
    pub(super) fn of_rows(self, first: usize, lhs_source: TileLhs) -> Self {
        Self { first, lhs_source, ..self }
    }

    /// Bytes that [`TileTask::compute`] needs for the sums of a task.
    pub(super) fn scratch_bytes(&self, partition: &Partition) -> usize {
        match self.target.out {
            Some(_) => 0,
            // One panel of all rows, or several of fewer.
            None => (partition.rows * BLOCK_ROWS * SUM_BYTES).max(SINK_BYTES),
        }
    }

    /// Computes one block of the output, and passes it to the sink in parts that stay in cache.
    pub(super) unsafe fn compute(
        &self,
        rows: Range<usize>,
        panels: Range<usize>,
        scratch_space: *mut u8,
        worker: usize,
    ) {
        let at_once = match self.target.out {
            Some(_) => panels.len(),
            None => panels_of_sink(rows.len()),
        };
        for first in panels.clone().step_by(at_once.max(1)) {
            let part = first..panels.end.min(first + at_once);
            // SAFETY: guaranteed by the caller.
            unsafe { self.compute_part(rows.clone(), part, scratch_space, worker) };
        }
    }

    unsafe fn compute_part(
        &self,
        rows: Range<usize>,
        panels: Range<usize>,
        scratch_space: *mut u8,
        worker: usize,
    ) {
        let (first, last) = (self.rhs.panel(panels.start).0, self.rhs.panel(panels.end - 1).0);
        let columns = first.first..last.first + last.columns;
        let mode = if self.target.rounded { StoreMode::RoundToBf16 } else { StoreMode::Overwrite };
        let (out, stride) = match self.target.out {
            Some(out) => {
                let at = (self.first + rows.start) * self.target.stride + columns.start;
                (out.wrapping_add(at * mode.bytes()), self.target.stride)
            }
            None => (scratch_space, last.first + last.width - columns.start),
        };
        let config = self.tiles.configure();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let rows = rows.clone();
            let output = TileOutput { out, stride, mode, nontemporal: self.nontemporal };
            multiply(&config, &self.lhs_source, rows, self.steps, self.rhs, panels, output);
        }
        drop(config);
        if let Some(sink) = self.target.sink {
            let origin = self.target.origin;
            let rows = rows.start + self.first + origin.0..rows.end + self.first + origin.0;
            let columns = columns.start + origin.1..columns.end + origin.1;
            sink(&OutputBlock { rows, columns, data: out, stride, worker });
        }
    }
}
