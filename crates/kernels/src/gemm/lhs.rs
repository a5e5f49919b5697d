//! Left-hand operands: read in place, or copied row by row.

use warpforge_tensor::ElementType;

use super::compute_type::KernelSet;
use super::matmul::Gemm;
use super::operand::{GemmError, Operand, Shape};
use super::pack::pack_fn;
use super::pack_copy::PackFn;
use super::packed::PackedFormat;
use super::row_copier::RowCopier;
use crate::buffer::{AllocationError, PooledBuffer};

impl Gemm {
    /// The element type of left-hand operands that kernels read in place.
    #[must_use]
    pub fn lhs_type(&self) -> ElementType {
        self.packed_layout.format.of_rows().element()
    }

    /// Whether kernels read rows of this element type in place.
    pub(crate) fn reads_rows_of(&self, element: ElementType) -> bool {
        let format = self.packed_layout.format.of_rows();
        match self.kernels {
            KernelSet::Vector(_) => {
                !matches!(format, PackedFormat::Bf16AsF32 | PackedFormat::I8AsI32 | PackedFormat::I8Offset)
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

    /// Whether to copy rows although kernels could read them in place: rows at multiples of a page, and parts of longer rows, map to the same
    /// few cache sets, and many columns amortize the copy. AMX kernels pack in any case.
    pub(super) fn copy_pays_off(&self, lhs: &Operand, shape: Shape) -> bool {
        const PAGE: usize = 4096;
        const MANY_COLUMNS: usize = 512;
        const MANY_ROWS: usize = 64;
        let row_bytes = lhs.row_stride * lhs.element.byte_width();
        let of_longer_rows = lhs.row_stride >= 2 * shape.k && row_bytes >= PAGE;
        matches!(self.kernels, KernelSet::Vector(_))
            && (row_bytes.is_multiple_of(PAGE) || of_longer_rows)
            && shape.n >= MANY_COLUMNS
            && shape.m >= MANY_ROWS
    }

    /// The element type that kernels read, and the function that converts to it.
    pub(crate) fn row_pack_fn(&self, element: ElementType) -> Result<(ElementType, PackFn), GemmError> {
        let format = self.packed_layout.format.of_rows();
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
        let line = 64 / self.packed_layout.format.of_rows().bytes();
        let format = self.packed_layout.format.of_rows();
        let lines = (format.lead() * format.unit() + self.packed_layout.rows(k)).div_ceil(line);
        (lines + usize::from(lines.is_multiple_of(8))) * line
    }

    /// The copier of rows of a left-hand operand to contiguous elements.
    pub(super) fn row_copier(&self, lhs: &Operand, k: usize) -> Result<RowCopier<'_>, GemmError> {
        let packed_layout = &self.packed_layout;
        let copy = pack_fn(packed_layout.format.of_rows(), lhs.element, self.isa)
            .ok_or_else(|| self.unsupported_element(lhs))?;
        let stride = self.row_stride(k) * packed_layout.format.of_rows().bytes();
        Ok(RowCopier { lhs: *lhs, function: copy, packed_layout, k, stride })
    }
}
