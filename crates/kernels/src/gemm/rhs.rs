//! Packing of right-hand operands.

use super::matmul::Gemm;
use super::operand::{GemmError, Operand};
use super::pack::pack_fn;
use super::pack_copy::PackRegion;
use super::packed::{PackedFormat, PackedLayout, PackedRhs, PackedView};
use crate::buffer::{AlignedBuffer, AllocationError};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Maximum panels of a packing task where rows are strided.
const MAX_PANELS_STRIDED: usize = 8;
/// Minimum number of packing tasks where rows are strided.
const MIN_PACKING_TASKS: usize = 8;
/// Maximum panels of a packing task where rows are contiguous: rows are read as far as possible.
const MAX_PANELS_CONTIGUOUS: usize = 64;
/// Rows of such a task.
const ROWS_PER_TASK: usize = 64;
/// Rows of all panels of a task that are packed before the next rows of the first panel, so that source lines are still
/// in cache.
const ROWS_BEFORE_NEXT_PANEL: usize = 256;

impl Gemm {
    /// Packs a right-hand operand of `k` rows and `n` columns once for many GEMMs.
    ///
    /// # Errors
    ///
    /// When memory cannot be allocated, or the compute type does not accept the element type.
    ///
    /// # Safety
    ///
    /// The operand's pointer is valid for its sizes.
    pub unsafe fn pack_rhs(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let bytes = self.packed_len(k, n)?;
        let memory = AlignedBuffer::lasting(bytes)?;
        // SAFETY: guaranteed by the caller; the memory has just been made for the copy.
        unsafe { self.pack_panels(rhs, k, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, packed_layout: self.packed_layout, k, n })
    }

    /// Whether this is how the GEMM packs an operand of those sizes: one that another GEMM has packed can serve here too.
    #[must_use]
    pub fn packs_as(&self, packed: &PackedRhs) -> bool {
        packed.packed_layout == self.packed_layout
    }

    /// Bytes that a packed operand of `k` rows and `n` columns takes.
    ///
    /// # Errors
    ///
    /// When the size overflows.
    pub fn packed_len(&self, k: usize, n: usize) -> Result<usize, AllocationError> {
        self.packed_layout.bytes(k, n).ok_or(AllocationError { bytes: usize::MAX })
    }

    /// Packs a right-hand operand into a buffer of the caller, on the calling thread.
    ///
    /// # Errors
    ///
    /// When the compute type does not accept the element type.
    ///
    /// # Safety
    ///
    /// The operand is valid for its sizes; `to` is valid for [`Gemm::packed_len`] bytes and aligned to 64, and nothing
    /// else writes there while the view lives.
    pub unsafe fn pack_into<'a>(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
    ) -> Result<PackedView<'a>, GemmError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.pack_panels(rhs, k, n, to, None)? };
        Ok(PackedView::new(to, self.packed_layout, k, n))
    }

    pub(super) unsafe fn pack_panels(
        &self,
        rhs: &Operand,
        k: usize,
        n: usize,
        to: *mut u8,
        pool: Option<&Pool>,
    ) -> Result<(), GemmError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.pack_taps(std::slice::from_ref(rhs), k, n, to, pool) }
    }

    /// Packs an operand whose rows come from several matrices of `run` rows each, one per tap of a window.
    pub(crate) unsafe fn pack_rhs_of(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        pool: Option<&Pool>,
    ) -> Result<PackedRhs, GemmError> {
        let k = taps.len().saturating_mul(run);
        let memory = AlignedBuffer::lasting(self.packed_len(k, n)?)?;
        // SAFETY: guaranteed by the caller; the memory has just been made for the copy.
        unsafe { self.pack_taps(taps, run, n, memory.as_ptr(), pool)? };
        Ok(PackedRhs { memory, packed_layout: self.packed_layout, k, n })
    }

    /// Packs such an operand into a buffer of the caller, as [`Gemm::pack_into`] does.
    pub(crate) unsafe fn pack_taps_into<'a>(
        &self,
        taps: &[Operand],
        run: usize,
        n: usize,
        to: *mut u8,
        pool: &Pool,
    ) -> Result<PackedView<'a>, GemmError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.pack_taps(taps, run, n, to, Some(pool))? };
        Ok(PackedView::new(to, self.packed_layout, taps.len() * run, n))
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
        let copy = pack_fn(self.packed_layout.format, first.element, self.isa)
            .ok_or_else(|| self.unsupported_element(first))?;
        let (packed_layout, to, k) = (self.packed_layout, SharedPtr::new(to), taps.len() * run);
        let columns = packed_layout.panels(n);
        let panels = columns.count();
        let lead = packed_layout.format.lead() * packed_layout.format.unit_bytes();
        let contiguous = first.column_stride == 1;
        // A group of interleaved rows may span two matrices: such rows are packed in order by one task.
        let aligned = taps.len() == 1 || run.is_multiple_of(packed_layout.group);
        let rows_each = if contiguous && aligned { ROWS_PER_TASK } else { k.max(1) };
        let together = match contiguous {
            true => MAX_PANELS_CONTIGUOUS.min(panels.max(1)),
            false => (panels / MIN_PACKING_TASKS).clamp(1, MAX_PANELS_STRIDED),
        };
        let depth = if contiguous { (ROWS_BEFORE_NEXT_PANEL / together).clamp(8, 32) } else { run.max(1) };
        let panel_tasks = panels.div_ceil(together);
        let pack = |at: usize| {
            let (across, below) = (at % panel_tasks, at / panel_tasks);
            let panels = across * together..panels.min((across + 1) * together);
            let rows = below * rows_each..k.min((below + 1) * rows_each);
            for (tap, rhs) in taps.iter().enumerate().take(rows.end.div_ceil(run)).skip(rows.start / run) {
                let first = tap * run;
                let rows = rows.start.saturating_sub(first)..run.min(rows.end - first);
                for row in rows.clone().step_by(depth) {
                    let count = depth.min(rows.end - row);
                    let padding = if first + row + count == k { packed_layout.rows(k) - k } else { 0 };
                    for panel in panels.clone() {
                        let panel = columns.at(panel);
                        // SAFETY: tasks do not overlap; the rest is guaranteed by the caller.
                        unsafe {
                            copy(&PackRegion {
                                source: rhs.at(row, panel.first),
                                row_stride: rhs.row_stride,
                                column_stride: rhs.column_stride,
                                rows: count,
                                columns: panel.columns,
                                rows_written: count + padding,
                                columns_written: panel.width,
                                first_row: first + row,
                                group: packed_layout.group,
                                target: to.get().add(packed_layout.offset(k, &panel) + lead * panel.width),
                                target_stride: panel.width * packed_layout.group,
                            });
                        }
                    }
                }
            }
        };
        let tasks = panel_tasks * k.div_ceil(rows_each);
        match pool {
            Some(pool) => pool.run(tasks, &|at, _| pack(at)),
            None => (0..tasks).for_each(pack),
        }
        if packed_layout.format == PackedFormat::I8Quads {
            // SAFETY: the panels have just been packed.
            unsafe { sum_quads(&packed_layout, k, n, to.get()) };
        }
        Ok(())
    }

    /// Checks the format and sizes of a packed operand.
    pub(crate) fn check(&self, view: &PackedView<'_>, k: usize, n: Option<usize>) -> Result<(), GemmError> {
        if view.packed_layout == self.packed_layout && view.k == k && n.is_none_or(|n| n == view.n) {
            return Ok(());
        }
        let text = |packed_layout: &PackedLayout, k, n| format!("{k}x{n} {packed_layout:?}");
        Err(GemmError::Packed {
            found: text(&view.packed_layout, view.k, view.n),
            wanted: text(&self.packed_layout, k, n.unwrap_or(view.n)),
        })
    }

    pub(super) fn unsupported_element(&self, operand: &Operand) -> GemmError {
        GemmError::Element { compute_type: self.compute_type.name(), element: operand.element }
    }
}

/// Writes what starts the panels of quads: minus 128 times the sum of each column.
///
/// # Safety
///
/// The panels behind the pointer are packed.
unsafe fn sum_quads(packed_layout: &PackedLayout, k: usize, n: usize, to: *mut u8) {
    let panels = packed_layout.panels(n);
    for at in 0..panels.count() {
        let panel = panels.at(at);
        // SAFETY: guaranteed by the caller; a panel has its sums and as many quads as there are steps after them.
        unsafe {
            let start = to.add(packed_layout.offset(k, &panel));
            let quads = start.add(4 * panel.width).cast::<i8>();
            for column in 0..panel.width {
                let mut sum = 0i32;
                for step in 0..packed_layout.units(k) - 1 {
                    let quad = quads.add((step * panel.width + column) * 4);
                    sum = (0..4).fold(sum, |sum, byte| sum.wrapping_add(i32::from(*quad.add(byte))));
                }
                start.cast::<i32>().add(column).write_unaligned(sum.wrapping_mul(-128));
            }
        }
    }
}
