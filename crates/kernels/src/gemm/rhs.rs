//! Packing right operands.

use std::marker::PhantomData;

use super::drive::Shared;
use super::memory::{Memory, MemoryError};
use super::operand::{GemmError, Operand};
use super::pack::{Part, copier};
use super::packed::{Arrangement, PackedRhs, PackedView};
use super::product::Gemm;
use crate::pool::Pool;

/// How many panels one piece packs at most where elements of a row lie apart.
const PANELS_TOGETHER: usize = 8;
/// How many pieces packing has then at least, where there are panels enough.
const PACKING_PIECES: usize = 8;
/// How many panels one piece packs at most where rows lie side by side: rows are read as far as they go.
const PANELS_ALONG: usize = 64;
/// How many rows such a piece has.
const ROWS_EACH: usize = 64;
/// How many rows of all its panels together are packed before the first panel's next ones: what is read is still near.
const ROWS_TOGETHER: usize = 256;

impl Gemm {
    /// Packs a right operand of `k` rows and `n` columns once for many products.
    ///
    /// # Errors
    ///
    /// When there is no memory, or products of this kind take no such elements.
    ///
    /// # Safety
    ///
    /// The operand's address is good for its sizes.
    pub unsafe fn pack_rhs(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let bytes = self.packed_len(k, n)?;
        let memory = Memory::new(bytes)?;
        // SAFETY: as the caller promises; the memory has just been made for the copy.
        unsafe { self.pack_panels(rhs, k, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, arrangement: self.arrangement, k, n })
    }

    /// Bytes that a packed operand of `k` rows and `n` columns takes.
    ///
    /// # Errors
    ///
    /// When the number is too large.
    pub fn packed_len(&self, k: usize, n: usize) -> Result<usize, MemoryError> {
        self.arrangement.bytes(k, n).ok_or(MemoryError { bytes: usize::MAX })
    }

    /// Packs a right operand into memory that the caller reuses, on the calling thread.
    ///
    /// # Errors
    ///
    /// When products of this kind take no such elements.
    ///
    /// # Safety
    ///
    /// The operand's address is good for its sizes; `to` is good for [`Gemm::packed_len`] bytes, begins at a multiple of
    /// 64, and nobody else writes there while the view lives.
    pub unsafe fn pack_into<'a>(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
    ) -> Result<PackedView<'a>, GemmError> {
        // SAFETY: as the caller promises.
        unsafe { self.pack_panels(rhs, k, n, to, None)? };
        Ok(PackedView { data: to, arrangement: self.arrangement, k, n, memory: PhantomData })
    }

    pub(super) unsafe fn pack_panels(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        // SAFETY: as the caller promises.
        unsafe { self.pack_taps(std::slice::from_ref(rhs), k, n, to, pool) }
    }

    /// Packs an operand whose rows come from several matrices of `run` rows each, one for each tap of a window.
    pub(crate) unsafe fn pack_rhs_of(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let k = taps.len().saturating_mul(run);
        let memory = Memory::new(self.packed_len(k, n)?)?;
        // SAFETY: as the caller promises; the memory has just been made for the copy.
        unsafe { self.pack_taps(taps, run, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, arrangement: self.arrangement, k, n })
    }

    unsafe fn pack_taps(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        to: *mut u8,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        let Some(first) = taps.first() else { return Ok(()) };
        let copy =
            copier(self.arrangement.format, first.element, self.isa).ok_or_else(|| self.refuse(first))?;
        let (arrangement, to, k) = (self.arrangement, Shared(to), taps.len() * run);
        let panels = arrangement.panels(n);
        let along = first.column_stride == 1;
        // Rows that end within a group of them are followed by those of the next matrix, in their order.
        let apart = taps.len() == 1 || run.is_multiple_of(arrangement.group);
        let rows_each = if along && apart { ROWS_EACH } else { k.max(1) };
        let together = match along {
            true => PANELS_ALONG.min(panels.max(1)),
            false => (panels / PACKING_PIECES).clamp(1, PANELS_TOGETHER),
        };
        let depth = if along { (ROWS_TOGETHER / together).clamp(8, 32) } else { run.max(1) };
        let panel_pieces = panels.div_ceil(together);
        let pack = |at: usize| {
            let (beside, below) = (at % panel_pieces, at / panel_pieces);
            let panels = beside * together..panels.min((beside + 1) * together);
            let rows = below * rows_each..k.min((below + 1) * rows_each);
            for (tap, rhs) in taps.iter().enumerate().take(rows.end.div_ceil(run)).skip(rows.start / run) {
                let first = tap * run;
                let rows = rows.start.saturating_sub(first)..run.min(rows.end - first);
                for row in rows.clone().step_by(depth) {
                    let count = depth.min(rows.end - row);
                    let padding = if first + row + count == k { arrangement.rows(k) - k } else { 0 };
                    for panel in panels.clone() {
                        let panel = arrangement.panel(n, panel);
                        // SAFETY: pieces do not overlap; the rest is as the caller promises.
                        unsafe {
                            copy(&Part {
                                source: rhs.at(row, panel.first),
                                row_stride: rhs.row_stride,
                                column_stride: rhs.column_stride,
                                rows: count,
                                columns: panel.columns,
                                rows_written: count + padding,
                                columns_written: panel.width,
                                first_row: first + row,
                                group: arrangement.group,
                                target: to.get().add(arrangement.offset(k, &panel)),
                                target_stride: panel.width * arrangement.group,
                            });
                        }
                    }
                }
            }
        };
        let pieces = panel_pieces * k.div_ceil(rows_each);
        match pool {
            Some(pool) => pool.run(pieces, &|at, _| pack(at)),
            None => (0..pieces).for_each(pack),
        }
        Ok(())
    }

    /// Whether a packed operand is what kernels of this kind read, of these sizes.
    pub(super) fn check(&self, view: &PackedView<'_>, k: usize, n: Option<usize>) -> Result<(), GemmError> {
        if view.arrangement == self.arrangement && view.k == k && n.is_none_or(|n| n == view.n) {
            return Ok(());
        }
        let text = |arrangement: &Arrangement, k, n| format!("{k}x{n} {arrangement:?}");
        Err(GemmError::Packed {
            found: text(&view.arrangement, view.k, view.n),
            wanted: text(&self.arrangement, k, n.unwrap_or(view.n)),
        })
    }

    pub(super) fn refuse(&self, operand: &Operand) -> GemmError {
        GemmError::Element { kind: self.kind.name(), element: operand.element }
    }
}
