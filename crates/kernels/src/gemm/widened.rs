//! GEMMs of many rows by weights of few bits: the weights are widened to the bf16 panels of another GEMM, as many columns at a time as fit
//! into the buffer. A weight that bf16 does not hold is the sum of two that it does.

use super::drive::{GemmTarget, with_widened};
use super::matmul::{Gemm, MAX_PACKED_BYTES};
use super::microkernel::{KernelFamily, WidenFn};
use super::operand::{GemmError, Operand, Shape};
use super::pack::pack_fn;
use super::pack_copy::{PackFn, PackRegion};
use super::packed::{PackedFormat, PackedView};
use super::rows::{LhsRows, MatrixRows, RepeatedRows};
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Rows that are widened at once: they stay in an L1 cache until they are packed.
const ROWS_AT_ONCE: usize = 128;

impl Gemm {
    /// Multiplies rows by packed weights that are widened for another GEMM.
    ///
    /// # Safety
    ///
    /// As for [`Gemm::multiply`].
    pub(super) unsafe fn multiply_widened(
        &self,
        wide: &Self,
        pool: &Pool,
        shape: Shape,
        lhs: &Operand,
        weights: PackedView<'_>,
        target: GemmTarget<'_>,
    ) -> Result<(), GemmError> {
        let format = weights.packed_layout.format;
        let widen = KernelFamily::widening(format, weights.packed_layout.lanes).map(|(widen, _)| widen);
        let pack = pack_fn(wide.packed_layout.format, ELEMENT, wide.isa);
        let (Some(widen), Some(pack)) = (widen, pack) else {
            return Err(self.unsupported_element(lhs));
        };
        let terms = match format {
            PackedFormat::Int4 { .. } => 2,
            _ => 1,
        };
        let rows = MatrixRows::of(lhs, shape.k);
        let repeated = RepeatedRows { rows, times: terms };
        let rows: &dyn LhsRows = if terms == 1 { &rows } else { &repeated };
        let k = terms * shape.k;
        let columns_at_once = {
            let width = wide.packed_layout.lanes * wide.packed_layout.vectors;
            (MAX_PACKED_BYTES / wide.packed_len(k, width)?.max(1)).max(1) * width
        };
        let memory = wide.buffers.take(wide.packed_len(k, columns_at_once.min(shape.n))?)?;
        for first in (0..shape.n).step_by(columns_at_once) {
            let n = columns_at_once.min(shape.n - first);
            let part = PackedView::new(memory.as_ptr(), wide.packed_layout, k, n);
            let widening = Widening { widen, pack, weights, terms, part, first };
            let to = SharedPtr::new(memory.as_ptr());
            // SAFETY: panels do not overlap, and the memory has space for the part; the rest is guaranteed by the caller.
            unsafe {
                pool.run(weights.panels(), &|panel, _| widening.panel(panel, to.get()));
                let out = target.out.map(|out| out.add(first * wide.result_bytes(&target)));
                let origin = (target.origin.0, target.origin.1 + first);
                let target = GemmTarget { out, origin, ..target };
                wide.multiply_rows(pool, Shape { n, k, ..shape }, rows, part, target)?;
            }
        }
        Ok(())
    }
}

/// The nearest bf16, ties to even, of a value that is finite.
fn rounded(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

/// The element type of widened weights before they are packed.
const ELEMENT: warpforge_tensor::ElementType = warpforge_tensor::ElementType::F32;

/// Widens panels of weights to those columns that a part of the operand has.
struct Widening<'a> {
    widen: WidenFn,
    pack: PackFn,
    weights: PackedView<'a>,
    /// The values of bf16 that a weight is the sum of; each has its rows in the part.
    terms: usize,
    part: PackedView<'a>,
    /// The first column of the part.
    first: usize,
}

impl Widening<'_> {
    /// Widens one panel into the memory of the part.
    ///
    /// # Safety
    ///
    /// The memory has space for the part, and nothing else uses the columns of the panel during the call.
    unsafe fn panel(&self, at: usize, to: *mut u8) {
        let (panel, data) = self.weights.panel(at);
        let (lanes, k) = (self.weights.packed_layout.lanes, self.weights.k);
        let columns = self.first..self.first + self.part.n.next_multiple_of(lanes);
        let vectors = (panel.first..panel.first + panel.width).step_by(lanes);
        if !vectors.clone().any(|column| columns.contains(&column)) {
            return;
        }
        let format = self.weights.packed_layout.format;
        let at_once = ROWS_AT_ONCE.next_multiple_of(format.unit());
        for row in (0..k).step_by(at_once) {
            let rows = at_once.min(k - row);
            let steps = rows.div_ceil(format.unit());
            with_widened(steps * format.unit() * panel.width, |wide| {
                let from = data.wrapping_add(row / format.unit() * panel.width * format.unit_bytes());
                // SAFETY: the panel has these rows, and the memory space for them.
                unsafe { (self.widen)(from, steps, format.unit(), panel.width, wide) };
                for term in 0..self.terms {
                    for column in vectors.clone().filter(|column| columns.contains(column)) {
                        let source = wide.wrapping_add(column - panel.first).cast::<u8>();
                        let to_row = term * k + row;
                        // SAFETY: as above; the columns of a vector are in one panel of the part.
                        unsafe {
                            self.pack_vector(source, panel.width, to_row, rows, column - self.first, to);
                        };
                    }
                    if term + 1 < self.terms {
                        // SAFETY: as above.
                        let values = unsafe { std::slice::from_raw_parts_mut(wide, rows * panel.width) };
                        values.iter_mut().for_each(|value| *value -= rounded(*value));
                    }
                }
            });
        }
    }

    /// Packs some rows of a vector of columns.
    ///
    /// # Safety
    ///
    /// The source has these rows; the rest as for [`Widening::panel`].
    unsafe fn pack_vector(
        &self,
        source: *const u8,
        row_stride: usize,
        row: usize,
        rows: usize,
        column: usize,
        to: *mut u8,
    ) {
        let layout = self.part.packed_layout;
        let width = layout.lanes * layout.vectors;
        let (panel, data) = self.part.panel(column / width);
        let offset = data as usize - self.part.data as usize
            + (column - panel.first) * layout.group * layout.format.bytes();
        let padding = if row + rows == self.part.k { layout.rows(self.part.k) - self.part.k } else { 0 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            (self.pack)(&PackRegion {
                source,
                row_stride,
                column_stride: 1,
                rows,
                columns: layout.lanes,
                rows_written: rows + padding,
                columns_written: layout.lanes,
                first_row: row,
                group: layout.group,
                target: to.add(offset),
                target_stride: panel.width * layout.group,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    #[test]
    fn values_round_to_the_nearest_bf16() {
        let mut random = fastrand::Rng::with_seed(5);
        let ties = [1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, 0.0, -0.0, 1e-40, -7.5, 3.3e38];
        for value in ties.into_iter().chain((0..10_000).map(|_| f32::from_bits(random.u32(..)))) {
            if value.is_finite() {
                assert_eq!(rounded(value), bf16::from_f32(value).to_f32(), "{value}");
            }
        }
    }
}
