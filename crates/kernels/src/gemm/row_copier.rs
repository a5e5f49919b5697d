//! Copies of left-hand rows to contiguous elements.

use std::ops::Range;

use super::operand::Operand;
use super::pack_copy::{PackFn, PackRegion};
use super::packed::PackedLayout;
use super::rows::MatrixRows;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Copies rows of a left-hand operand to contiguous elements.
#[derive(Clone, Copy)]
pub(super) struct RowCopier<'a> {
    pub(super) lhs: Operand,
    pub(super) function: PackFn,
    pub(super) packed_layout: &'a PackedLayout,
    pub(super) k: usize,
    /// From one row of a copy to the next, in bytes.
    pub(super) stride: usize,
}

// SAFETY: the caller guarantees that nothing writes to the rows during the call.
unsafe impl Sync for RowCopier<'_> {}

impl RowCopier<'_> {
    /// Copies some rows.
    ///
    /// # Safety
    ///
    /// The operand has these rows; `to` has space for them and nothing else uses it during the call.
    pub(super) unsafe fn copy(&self, rows: Range<usize>, to: *mut u8) {
        let format = self.packed_layout.format.of_rows();
        // SAFETY: guaranteed by the caller; rows have space for what leads them.
        unsafe {
            (self.function)(&PackRegion {
                source: self.lhs.at(rows.start, 0),
                row_stride: self.lhs.row_stride,
                column_stride: self.lhs.column_stride,
                rows: rows.len(),
                columns: self.k,
                rows_written: rows.len(),
                columns_written: self.packed_layout.rows(self.k),
                first_row: 0,
                group: 1,
                target: to.add(format.lead() * format.unit_bytes()),
                target_stride: self.stride / self.packed_layout.format.of_rows().bytes(),
            });
        }
    }

    /// Copies some rows on all workers of a pool.
    ///
    /// # Safety
    ///
    /// As for [`RowCopier::copy`].
    pub(super) unsafe fn copy_parallel(&self, pool: &Pool, rows: Range<usize>, to: *mut u8) {
        /// Rows of a task.
        const ROWS_PER_TASK: usize = 16;
        let to = SharedPtr::new(to);
        pool.run(rows.len().div_ceil(ROWS_PER_TASK), &|at, _| {
            let first = at * ROWS_PER_TASK;
            let these = rows.start + first..rows.end.min(rows.start + first + ROWS_PER_TASK);
            // SAFETY: tasks do not overlap; the rest is guaranteed by the caller.
            unsafe { self.copy(these, to.get().add(first * self.stride)) };
        });
    }

    /// Copied rows as kernels read them.
    pub(super) fn rows(&self, data: *const u8) -> MatrixRows {
        MatrixRows {
            data,
            stride: self.stride,
            k: self.k,
            element: self.packed_layout.format.of_rows().element(),
        }
    }
}
