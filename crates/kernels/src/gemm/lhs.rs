//! Left operands as kernels read them.

use std::ops::Range;

use warpforge_tensor::ElementType;

use super::drive::Shared;
use super::kind::Engine;
use super::memory::{Lent, MemoryError};
use super::operand::{GemmError, Operand, Shape};
use super::pack::{Copy, Part, copier};
use super::packed::{Arrangement, Format};
use super::product::Gemm;
use super::rows::MatrixRows;
use crate::pool::Pool;

impl Gemm {
    /// The type of left operands that costs least: kernels read it as it lies.
    #[must_use]
    pub fn reads(&self) -> ElementType {
        self.arrangement.format.element()
    }

    /// Whether kernels read rows of such elements where they lie.
    pub(crate) fn reads_rows_of(&self, element: ElementType) -> bool {
        let format = self.arrangement.format;
        match self.engine {
            Engine::Vectors(_) => {
                !matches!(format, Format::Rounded | Format::Widened) && format.element() == element
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Engine::Tiles(_) => copier(format, element, self.isa).is_some(),
        }
    }

    /// Whether kernels can read the rows of an operand where they lie.
    pub(super) fn reads_in_place(&self, lhs: &Operand) -> bool {
        self.reads_rows_of(lhs.element) && lhs.column_stride == 1
    }

    /// Whether rows are better copied although kernels can read them: rows that are whole pages apart share the same few
    /// places of a cache, and many columns repay the copy. Tiles are packed in any case.
    pub(super) fn worth_copying(&self, lhs: &Operand, shape: Shape) -> bool {
        const PAGE: usize = 4096;
        const MANY_COLUMNS: usize = 512;
        const MANY_ROWS: usize = 64;
        let apart = lhs.row_stride * lhs.element.byte_width();
        matches!(self.engine, Engine::Vectors(_))
            && apart.is_multiple_of(PAGE)
            && shape.n >= MANY_COLUMNS
            && shape.m >= MANY_ROWS
    }

    /// The type that kernels read rows of, and the function that makes its elements of others.
    pub(crate) fn row_copy(&self, element: ElementType) -> Result<(ElementType, Copy), GemmError> {
        let format = self.arrangement.format;
        let copy = copier(format, element, self.isa)
            .ok_or(GemmError::Element { kind: self.kind.name(), element })?;
        Ok((format.element(), copy))
    }

    /// Memory of at least so many bytes until the end of a call.
    pub(crate) fn lend(&self, bytes: usize) -> Result<Lent<'_>, MemoryError> {
        self.store.take(bytes)
    }

    /// The distance of copied rows, in elements: not a multiple of a page, so that rows do not share the same few places
    /// of a cache.
    fn row_stride(&self, k: usize) -> usize {
        let line = 64 / self.arrangement.format.bytes();
        let lines = self.arrangement.rows(k).div_ceil(line);
        (lines + usize::from(lines.is_multiple_of(8))) * line
    }

    /// How rows of a left operand are copied so that their elements lie side by side.
    pub(super) fn row_copies(&self, lhs: &Operand, k: usize) -> Result<RowCopy<'_>, GemmError> {
        let arrangement = &self.arrangement;
        let copy = copier(arrangement.format, lhs.element, self.isa).ok_or_else(|| self.refuse(lhs))?;
        let stride = self.row_stride(k) * arrangement.format.bytes();
        Ok(RowCopy { lhs: *lhs, function: copy, arrangement, k, stride })
    }
}

/// Copies of rows whose elements lie side by side.
#[derive(Clone, Copy)]
pub(super) struct RowCopy<'a> {
    lhs: Operand,
    function: Copy,
    arrangement: &'a Arrangement,
    k: usize,
    /// From one row of a copy to the next, in bytes.
    pub(super) stride: usize,
}

// SAFETY: who makes copies promises that nobody writes to the rows meanwhile.
unsafe impl Sync for RowCopy<'_> {}

impl RowCopy<'_> {
    /// Copies some rows.
    ///
    /// # Safety
    ///
    /// The operand has these rows; `to` has room for them and nobody else uses it.
    pub(super) unsafe fn copy(&self, rows: Range<usize>, to: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe {
            (self.function)(&Part {
                source: self.lhs.at(rows.start, 0),
                row_stride: self.lhs.row_stride,
                column_stride: self.lhs.column_stride,
                rows: rows.len(),
                columns: self.k,
                rows_written: rows.len(),
                columns_written: self.arrangement.rows(self.k),
                first_row: 0,
                group: 1,
                target: to,
                target_stride: self.stride / self.arrangement.format.bytes(),
            });
        }
    }

    /// Copies some rows, by all workers of a pool.
    ///
    /// # Safety
    ///
    /// As for [`RowCopy::copy`].
    pub(super) unsafe fn copy_by(&self, pool: &Pool, rows: Range<usize>, to: *mut u8) {
        /// Rows that are copied as one piece.
        const TOGETHER: usize = 16;
        let to = Shared(to);
        pool.run(rows.len().div_ceil(TOGETHER), &|at, _| {
            let first = at * TOGETHER;
            let these = rows.start + first..rows.end.min(rows.start + first + TOGETHER);
            // SAFETY: pieces do not overlap; the rest is as the caller promises.
            unsafe { self.copy(these, to.get().add(first * self.stride)) };
        });
    }

    /// Copied rows as kernels read them.
    pub(super) fn rows(&self, data: *const u8) -> MatrixRows {
        MatrixRows { data, stride: self.stride, k: self.k, element: self.arrangement.format.element() }
    }
}
