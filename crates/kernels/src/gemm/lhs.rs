//! Left operands as kernels read them.

use warpforge_tensor::ElementType;

use super::drive::Shared;
use super::kind::Engine;
use super::memory::{Lent, MemoryError};
use super::operand::{GemmError, Operand, Shape};
use super::pack::{Copy, Part, copier};
use super::packed::Format;
use super::product::Gemm;
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
    pub(super) fn row_stride(&self, k: usize) -> usize {
        let line = 64 / self.arrangement.format.bytes();
        let lines = self.arrangement.rows(k).div_ceil(line);
        (lines + usize::from(lines.is_multiple_of(8))) * line
    }

    /// Copies rows of a left operand so that their elements lie side by side.
    pub(super) unsafe fn copy_rows(
        &self,
        lhs: &Operand,
        m: usize,
        k: usize,
        to: *mut u8,
        stride: usize,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        /// Rows that are copied as one piece.
        const TOGETHER: usize = 16;
        let copy = copier(self.arrangement.format, lhs.element, self.isa).ok_or_else(|| self.refuse(lhs))?;
        let to = Shared(to);
        let bytes = self.arrangement.format.bytes();
        let piece = |at: usize| {
            let first = at * TOGETHER;
            let rows = TOGETHER.min(m - first);
            // SAFETY: pieces do not overlap; the rest is as the caller promises.
            unsafe {
                copy(&Part {
                    source: lhs.at(first, 0),
                    row_stride: lhs.row_stride,
                    column_stride: lhs.column_stride,
                    rows,
                    columns: k,
                    rows_written: rows,
                    columns_written: self.arrangement.rows(k),
                    first_row: 0,
                    group: 1,
                    target: to.get().add(first * stride * bytes),
                    target_stride: stride,
                });
            }
        };
        let pieces = m.div_ceil(TOGETHER);
        match pool {
            Some(pool) => pool.run(pieces, &|at, _| piece(at)),
            None => (0..pieces).for_each(piece),
        }
        Ok(())
    }
}
