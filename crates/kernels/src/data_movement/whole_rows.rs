//! Copies of runs of several sources that make up whole rows of the target: row by row, so that memory is written in one direction.

use super::copy_batch::{CopyPart, SHARED_BYTES};
use super::loop_nest::TASK_BYTES;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Longest rows; the runs of longer ones are long enough to be copied source by source.
const MOST_ROW_BYTES: usize = 16 << 10;

/// Bytes that are copied as a whole where a run is a multiple of them.
const LINE: usize = 64;

/// Runs of a multiple of [`LINE`] up to this length are copied line by line: a call of `memcpy` takes longer.
const FEW_LINES: usize = 8 * LINE;

/// The run that a source has in each row; offsets and strides in bytes.
#[derive(Debug, Clone)]
struct Run {
    source: usize,
    source_offset: usize,
    source_stride: isize,
    target_offset: usize,
    length: usize,
}

/// A copy row by row.
#[derive(Debug, Clone)]
pub(super) struct WholeRows {
    runs: Vec<Run>,
    rows: usize,
    row_bytes: usize,
    rows_per_task: usize,
}

impl WholeRows {
    /// The same copies as those parts; none where their runs are not those of rows.
    pub(super) fn of(parts: &[CopyPart]) -> Option<Self> {
        let [first, _, ..] = parts else { return None };
        let (rows, _) = first.nest.runs()?;
        let mut runs = Vec::with_capacity(parts.len());
        for CopyPart { nest, source, source_offset, target_offset } in parts {
            let (own, length) = nest.runs()?;
            if (own.size, own.target) != (rows.size, rows.target) {
                return None;
            }
            let (source, source_offset, target_offset) = (*source, *source_offset, *target_offset);
            runs.push(Run { source, source_offset, source_stride: own.source, target_offset, length });
        }
        let row_bytes: usize = runs.iter().map(|run| run.length).sum();
        let fits = rows.size > 1 && row_bytes <= MOST_ROW_BYTES && rows.target == row_bytes as isize;
        let rows_per_task = (TASK_BYTES / row_bytes.max(1)).max(1);
        fits.then_some(Self { runs, rows: rows.size, row_bytes, rows_per_task })
    }

    /// Runs the copy.
    ///
    /// # Safety
    ///
    /// As for the copies of the parts.
    pub(super) unsafe fn run(&self, pool: &Pool, sources: &[*const u8], target: *mut u8) {
        let (sources, target) = (SharedPtr::new(sources), SharedPtr::new(target));
        let task = |at: usize| {
            let first = at * self.rows_per_task;
            for row in first..self.rows.min(first + self.rows_per_task) {
                for run in &self.runs {
                    // SAFETY: the run is one of a part's, and no other task has the row.
                    unsafe {
                        let from = sources.get()[run.source].add(run.source_offset);
                        let from = from.offset(row as isize * run.source_stride);
                        copy(from, target.get().add(row * self.row_bytes + run.target_offset), run.length);
                    }
                }
            }
        };
        let tasks = self.rows.div_ceil(self.rows_per_task);
        if self.rows * self.row_bytes < SHARED_BYTES {
            (0..tasks).for_each(task);
        } else {
            pool.run(tasks, &|at, _| task(at));
        }
    }
}

/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: guaranteed by the caller; lines are inside the run.
    unsafe {
        if length.is_multiple_of(LINE) && length <= FEW_LINES {
            for at in (0..length).step_by(LINE) {
                let line = from.add(at).cast::<[u8; LINE]>().read_unaligned();
                to.add(at).cast::<[u8; LINE]>().write_unaligned(line);
            }
        } else {
            std::ptr::copy_nonoverlapping(from, to, length);
        }
    }
}
