//! Packing right operands.

use std::marker::PhantomData;

use super::drive::Shared;
use super::memory::{Memory, MemoryError};
use super::operand::{GemmError, Operand};
use super::pack::{Part, copier};
use super::packed::{Arrangement, PackedRhs, PackedView};
use super::product::Gemm;
use crate::pool::Pool;

/// How many panels one piece packs at most: whole pages of the source's rows.
const PANELS_TOGETHER: usize = 8;
/// How many rows of a panel are packed before the next panel's.
const ROWS_TOGETHER: usize = 32;
/// How many pieces packing has at least, where there are panels enough.
const PACKING_PIECES: usize = 8;

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
        let together = (panels / PACKING_PIECES).clamp(1, PANELS_TOGETHER);
        // Where rows lie side by side, those of several panels are read while their pages are at hand.
        let depth = if first.column_stride == 1 { ROWS_TOGETHER } else { run.max(1) };
        let pack = |at: usize| {
            let panels = at * together..panels.min((at + 1) * together);
            for (tap, rhs) in taps.iter().enumerate() {
                for row in (0..run).step_by(depth) {
                    let rows = depth.min(run - row);
                    let last = tap + 1 == taps.len() && row + rows == run;
                    let padding = if last { arrangement.rows(k) - k } else { 0 };
                    for panel in panels.clone() {
                        let panel = arrangement.panel(n, panel);
                        // SAFETY: panels do not overlap; the rest is as the caller promises.
                        unsafe {
                            copy(&Part {
                                source: rhs.at(row, panel.first),
                                row_stride: rhs.row_stride,
                                column_stride: rhs.column_stride,
                                rows,
                                columns: panel.columns,
                                rows_written: rows + padding,
                                columns_written: panel.width,
                                first_row: tap * run + row,
                                group: arrangement.group,
                                target: to.get().add(arrangement.offset(k, &panel)),
                                target_stride: panel.width * arrangement.group,
                            });
                        }
                    }
                }
            }
        };
        let pieces = panels.div_ceil(together);
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
