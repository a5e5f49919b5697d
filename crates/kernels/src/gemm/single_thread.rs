//! Single-threaded GEMMs.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx;
use super::compute_type::KernelSet;
use super::drive::multiply;
use super::matmul::Gemm;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::operand::Shape;
use super::operand::{GemmError, Operand};
use super::packed::PackedView;
use super::rows::{LhsRows, MatrixRows};
use crate::buffer::{AlignedBuffer, AllocationError};

/// Scratch memory of one worker for [`Gemm::multiply_single_threaded`], kept from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: Vec<*const u8>,
    copy: Option<AlignedBuffer>,
}

// SAFETY: the pointers are not used between calls.
unsafe impl Send for Scratch {}

impl Gemm {
    /// Multiplies `m` rows of a left-hand operand by all columns of a packed operand on the calling thread, into a
    /// row-major tile of the accumulator type; adds to the tile if `accumulate`.
    ///
    /// # Errors
    ///
    /// As for [`Gemm::multiply`].
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`].
    #[allow(clippy::too_many_arguments, reason = "the usual parameters of a GEMM")]
    pub unsafe fn multiply_single_threaded(
        &self,
        scratch: &mut Scratch,
        m: usize,
        k: usize,
        lhs: &Operand,
        rhs: PackedView<'_>,
        out: *mut u8,
        stride: usize,
        accumulate: bool,
    ) -> Result<(), GemmError> {
        self.check(&rhs, k, None)?;
        if m == 0 || rhs.n == 0 {
            return Ok(());
        }
        let copy = if self.reads_lhs_in_place(lhs) { None } else { Some(self.row_copier(lhs, k)?) };
        let copy_bytes = copy.map_or(0, |copy| m.saturating_mul(copy.stride)).next_multiple_of(64);
        let scratch_space = scratch.scratch_space(copy_bytes.saturating_add(self.packed_rows_len(m, k)))?;
        let rows = match copy {
            None => MatrixRows::of(lhs, k),
            Some(copy) => {
                // SAFETY: guaranteed by the caller; the scratch space starts with that of the copy.
                unsafe { copy.copy(0..m, scratch_space) };
                copy.rows(scratch_space)
            }
        };
        match self.kernels {
            KernelSet::Vector(family) => {
                scratch.rows.resize(m, std::ptr::null());
                rows.addresses(0, m, &mut scratch.rows);
                let panels = 0..rhs.panels();
                // SAFETY: guaranteed by the caller.
                unsafe { multiply(family, &rows, rhs, &scratch.rows, m, panels, out, stride, accumulate) };
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            KernelSet::Amx(tiles) => {
                scratch.rows.resize(amx::BLOCK_ROWS, std::ptr::null());
                let (table, shape) = (&mut scratch.rows, Shape { m, n: rhs.n, k });
                let packed = scratch_space.wrapping_add(copy_bytes);
                // SAFETY: guaranteed by the caller; the scratch space ends with that of the packed rows.
                unsafe { amx::block(tiles, shape, &rows, rhs, packed, table, out, stride, accumulate) };
            }
        }
        Ok(())
    }

    /// Bytes of the rows packed for AMX.
    fn packed_rows_len(&self, m: usize, k: usize) -> usize {
        match self.kernels {
            KernelSet::Vector(_) => 0,
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            KernelSet::Amx(_) => {
                let row = self.packed_layout.rows(k).saturating_mul(self.packed_layout.format.bytes());
                m.next_multiple_of(amx::BLOCK_ROWS).saturating_mul(row)
            }
        }
    }
}

impl Scratch {
    fn scratch_space(&mut self, bytes: usize) -> Result<*mut u8, AllocationError> {
        match &self.copy {
            Some(copy) if copy.len() >= bytes => Ok(copy.as_ptr()),
            _ => {
                self.copy = None;
                Ok(self.copy.insert(AlignedBuffer::new(bytes)?).as_ptr())
            }
        }
    }
}
