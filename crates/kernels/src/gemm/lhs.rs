//! Left-hand operands: read in place, or copied row by row.

use std::ops::Range;

use warpforge_tensor::ElementType;

use super::compute_type::KernelSet;
use super::matmul::Gemm;
use super::operand::{GemmError, Operand, Shape};
use super::pack::{PackFn, PackRegion, pack_fn};
use super::packed::{PackedFormat, PackedLayout};
use super::rows::MatrixRows;
use crate::buffer::{AllocationError, PooledBuffer};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

impl Gemm {
    /// The element type of left-hand operands that kernels read in place.
    #[must_use]
    pub fn lhs_type(&self) -> ElementType {
        self.packed_layout.format.element()
    }

    /// Whether kernels read rows of this element type in place.
    pub(crate) fn reads_rows_of(&self, element: ElementType) -> bool {
        let format = self.packed_layout.format;
        match self.kernels {
            KernelSet::Vector(_) => {
                !matches!(format, PackedFormat::Bf16AsF32 | PackedFormat::I8AsI32)
                    && format.element() == element
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            KernelSet::Amx(_) => pack_fn(format, element, self.isa).is_some(),
        }
    }

    /// Whether kernels can read the rows of an operand in place.
    pub(super) fn reads_lhs_in_place(&self, lhs: &Operand) -> bool {
        self.reads_rows_of(lhs.element) && lhs.column_stride == 1
    }

    /// Whether to copy rows although kernels could read them in place: rows at multiples of a page map to the same few
    /// cache sets, and many columns amortize the copy. AMX kernels pack in any case.
    pub(super) fn copy_pays_off(&self, lhs: &Operand, shape: Shape) -> bool {
        const PAGE: usize = 4096;
        const MANY_COLUMNS: usize = 512;
        const MANY_ROWS: usize = 64;
        let row_bytes = lhs.row_stride * lhs.element.byte_width();
        matches!(self.kernels, KernelSet::Vector(_))
            && row_bytes.is_multiple_of(PAGE)
            && shape.n >= MANY_COLUMNS
            && shape.m >= MANY_ROWS
    }

    /// The element type that kernels read, and the function that converts to it.
    pub(crate) fn row_pack_fn(&self, element: ElementType) -> Result<(ElementType, PackFn), GemmError> {
        let format = self.packed_layout.format;
        let copy = pack_fn(format, element, self.isa)
            .ok_or(GemmError::Element { compute_type: self.compute_type.name(), element })?;
        Ok((format.element(), copy))
    }

    /// A scratch buffer of at least `bytes` bytes.
    pub(crate) fn scratch_buffer(&self, bytes: usize) -> Result<PooledBuffer<'_>, AllocationError> {
        self.buffers.take(bytes)
    }

    /// The stride of copied rows, in elements: not a multiple of a page, so that rows map to different cache sets.
    fn row_stride(&self, k: usize) -> usize {
        let line = 64 / self.packed_layout.format.bytes();
        let lines = self.packed_layout.rows(k).div_ceil(line);
        (lines + usize::from(lines.is_multiple_of(8))) * line
    }

    /// The copier of rows of a left-hand operand to contiguous elements.
    pub(super) fn row_copier(&self, lhs: &Operand, k: usize) -> Result<RowCopier<'_>, GemmError> {
        let packed_layout = &self.packed_layout;
        let copy = pack_fn(packed_layout.format, lhs.element, self.isa)
            .ok_or_else(|| self.unsupported_element(lhs))?;
        let stride = self.row_stride(k) * packed_layout.format.bytes();
        Ok(RowCopier { lhs: *lhs, function: copy, packed_layout, k, stride })
    }
}

/// Copies rows of a left-hand operand to contiguous elements.
#[derive(Clone, Copy)]
pub(super) struct RowCopier<'a> {
    lhs: Operand,
    function: PackFn,
    packed_layout: &'a PackedLayout,
    k: usize,
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
        // SAFETY: guaranteed by the caller.
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
                target: to,
                target_stride: self.stride / self.packed_layout.format.bytes(),
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
        MatrixRows { data, stride: self.stride, k: self.k, element: self.packed_layout.format.element() }
    }
}
