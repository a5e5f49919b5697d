//! Products by one thread alone.

use super::drive::multiply;
use super::kind::Engine;
use super::memory::{Memory, MemoryError};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::operand::Shape;
use super::operand::{GemmError, Operand};
use super::packed::PackedView;
use super::product::Gemm;
use super::rows::{MatrixRows, Rows};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::tiles;

/// Memory for one worker's calls of [`Gemm::block`], kept from call to call.
#[derive(Debug, Default)]
pub struct Scratch {
    rows: Vec<*const u8>,
    copy: Option<Memory>,
}

// SAFETY: the addresses are of no meaning between calls.
unsafe impl Send for Scratch {}

impl Gemm {
    /// One product by the calling thread alone: `m` rows of a left operand times a packed operand, all its columns, into
    /// a row-major tile of the type of sums, added to what it holds if `accumulate`.
    ///
    /// # Errors
    ///
    /// As for [`Gemm::product`].
    ///
    /// # Safety
    ///
    /// As for [`Gemm::product`].
    #[allow(clippy::too_many_arguments, reason = "those of a product, as everybody knows them")]
    pub unsafe fn block(
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
        let copy = if self.reads_in_place(lhs) { None } else { Some(self.row_copies(lhs, k)?) };
        let copy_bytes = copy.map_or(0, |copy| m.saturating_mul(copy.stride)).next_multiple_of(64);
        let room = scratch.room(copy_bytes.saturating_add(self.packed_rows_len(m, k)))?;
        let rows = match copy {
            None => MatrixRows::of(lhs, k),
            Some(copy) => {
                // SAFETY: as the caller promises; the room begins with that of the copy.
                unsafe { copy.copy(0..m, room) };
                copy.rows(room)
            }
        };
        match self.engine {
            Engine::Vectors(family) => {
                scratch.rows.resize(m, std::ptr::null());
                rows.addresses(0, m, &mut scratch.rows);
                let panels = 0..rhs.panels();
                // SAFETY: as the caller promises.
                unsafe { multiply(family, &rows, rhs, &scratch.rows, m, panels, out, stride, accumulate) };
            }
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Engine::Tiles(tiles) => {
                scratch.rows.resize(tiles::BLOCK_ROWS, std::ptr::null());
                let (table, shape) = (&mut scratch.rows, Shape { m, n: rhs.n, k });
                let packed = room.wrapping_add(copy_bytes);
                // SAFETY: as the caller promises; the room ends with that of the packed rows.
                unsafe { tiles::block(tiles, shape, &rows, rhs, packed, table, out, stride, accumulate) };
            }
        }
        Ok(())
    }

    /// Bytes of the rows that tiles are packed from.
    fn packed_rows_len(&self, m: usize, k: usize) -> usize {
        match self.engine {
            Engine::Vectors(_) => 0,
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Engine::Tiles(_) => {
                let row = self.arrangement.rows(k).saturating_mul(self.arrangement.format.bytes());
                m.next_multiple_of(tiles::BLOCK_ROWS).saturating_mul(row)
            }
        }
    }
}

impl Scratch {
    fn room(&mut self, bytes: usize) -> Result<*mut u8, MemoryError> {
        match &self.copy {
            Some(copy) if copy.len() >= bytes => Ok(copy.as_ptr()),
            _ => {
                self.copy = None;
                Ok(self.copy.insert(Memory::new(bytes)?).as_ptr())
            }
        }
    }
}
