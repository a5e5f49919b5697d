//! Triangular solves whose solutions are the right-hand operand of the next product, as in an LU factorization.

use std::ops::Range;
use std::ptr;

use super::compute_type::KernelSet;
use super::drive::GemmTarget;
use super::matmul::Gemm;
use super::microkernel::{KernelArgs, KernelFamily};
use super::operand::{GemmError, Operand, Shape, size_of_element};
use super::packed::{PackedFormat, PackedLayout, PackedView, Panel};
use crate::buffer::PooledBuffer;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// A solution, packed with its signs flipped.
#[derive(Debug)]
pub struct NegatedRhs<'a> {
    memory: PooledBuffer<'a>,
    packed_layout: PackedLayout,
    k: usize,
    n: usize,
}

/// A row-major matrix that a call changes.
#[derive(Debug, Clone, Copy)]
pub struct OperandMut {
    /// The element of row 0 and column 0, of the accumulator type.
    pub data: *mut u8,
    /// From one row to the next, in elements.
    pub stride: usize,
}

// SAFETY: who changes the matrix by several threads makes sure that they change different parts.
unsafe impl Send for OperandMut {}
// SAFETY: as above.
unsafe impl Sync for OperandMut {}

impl Gemm {
    /// Whether [`Gemm::solve_unit_lower`] and [`Gemm::subtract`] are supported: kernels read the elements of both operands as they are.
    #[must_use]
    pub fn subtracts(&self) -> bool {
        matches!(self.kernels, KernelSet::Vector(_))
            && matches!(self.packed_layout.format, PackedFormat::F32 | PackedFormat::F64)
    }

    /// Solves `L X = B` in place for the `n` columns of B, where L is the unit lower triangle of an operand of `k` rows with contiguous
    /// columns; its other elements are not read. Returns −X for [`Gemm::subtract`], or none unless [`Gemm::subtracts`].
    ///
    /// # Errors
    ///
    /// When memory cannot be allocated, or the operand has another element type.
    ///
    /// # Safety
    ///
    /// The pointers are valid for these sizes, L and B do not overlap, and nothing else uses B during the call.
    pub unsafe fn solve_unit_lower(
        &self,
        pool: &Pool,
        lower: &Operand,
        b: OperandMut,
        k: usize,
        n: usize,
    ) -> Result<Option<NegatedRhs<'_>>, GemmError> {
        let KernelSet::Vector(family) = self.kernels else { return Ok(None) };
        if !self.subtracts() {
            return Ok(None);
        }
        if !self.reads_lhs_in_place(lower) {
            return Err(self.unsupported_element(lower));
        }
        let packed_layout = self.packed_layout;
        let memory = self.buffers.take(self.packed_len(k, n)?)?;
        let (to, columns) = (SharedPtr::new(memory.as_ptr()), packed_layout.panels(n));
        let rows_at_once =
            (LOWER_BYTES / (k.max(1) * family.bytes)).max(family.rows).next_multiple_of(family.rows);
        for first in (0..k).step_by(rows_at_once) {
            let rows = first..k.min(first + rows_at_once);
            pool.run(columns.count(), &|at, _| {
                let panel = columns.at(at);
                // SAFETY: panels do not overlap, in B and where they are packed; the rest is guaranteed by the caller.
                unsafe {
                    let packed = to.get().add(packed_layout.offset(k, &panel));
                    solve_panel(family, lower, b, rows.clone(), &panel, packed);
                }
            });
        }
        Ok(Some(NegatedRhs { memory, packed_layout, k, n }))
    }

    /// `C -= A X`, for the solution of a triangular solve.
    ///
    /// # Errors
    ///
    /// When memory cannot be allocated, or the operand has another element type.
    ///
    /// # Safety
    ///
    /// The pointers are valid for `m` rows, and for as many columns as X has rows and columns; C overlaps no other operand, and nothing
    /// else uses it during the call.
    pub unsafe fn subtract(
        &self,
        pool: &Pool,
        m: usize,
        lhs: &Operand,
        x: &NegatedRhs<'_>,
        c: OperandMut,
    ) -> Result<(), GemmError> {
        let target = GemmTarget {
            out: Some(c.data),
            stride: c.stride,
            rounded: false,
            accumulate: true,
            sink: None,
            origin: (0, 0),
        };
        let view = PackedView::new(x.memory.as_ptr(), x.packed_layout, x.k, x.n);
        // SAFETY: guaranteed by the caller.
        unsafe { self.multiply_packed_rhs(pool, Shape { m, n: x.n, k: x.k }, lhs, view, target) }
    }
}

/// Solves for some rows of the columns of a panel, a few at a time: first the product with the rows above them is subtracted, then row by
/// row those among themselves. What is solved is packed at once, as the operand of the next products.
///
/// # Safety
///
/// As for [`Gemm::solve_unit_lower`]; `packed` has space for the panel, and the rows above are solved.
unsafe fn solve_panel(
    family: &KernelFamily,
    lower: &Operand,
    b: OperandMut,
    rows: Range<usize>,
    panel: &Panel,
    packed: *mut u8,
) {
    let (bytes, vectors) = (family.bytes, panel.width / family.lanes);
    let row_of = |row: usize| b.data.wrapping_add((row * b.stride + panel.first) * bytes);
    let mut table = [ptr::null(); MAX_ROWS];
    let most = family.rows.min(MAX_ROWS);
    for first in rows.clone().step_by(most) {
        let count = most.min(rows.end - first);
        for (at, row) in table[..count].iter_mut().enumerate() {
            *row = lower.data.wrapping_add((first + at) * lower.row_stride * size_of_element(lower.element));
        }
        let mut args = KernelArgs {
            rows: table.as_ptr(),
            pitch: count,
            taps: 1,
            skip: 0,
            run: first,
            unit: 1,
            rhs: packed,
            prefetch: packed,
            out: row_of(first),
            out_stride: b.stride,
            columns: panel.columns,
            accumulate: true,
            next_out: row_of(first + count),
        };
        // SAFETY: the rows above have been packed; the family was selected by the features of the CPU.
        unsafe { family.kernel(count, vectors)(&args) };
        (args.skip, args.rhs) = (first, packed.wrapping_add(first * panel.width * bytes));
        for at in 0..count {
            (args.rows, args.run, args.out) = (table[at..].as_ptr(), at, row_of(first + at));
            // SAFETY: as above; the row and its place in the panel have these columns.
            unsafe {
                if at > 0 {
                    family.kernel(1, vectors)(&args);
                }
                pack_negated(args.out, panel, bytes, packed.add((first + at) * panel.width * bytes));
            }
        }
    }
}

/// Bytes of the rows of L that are used for all columns before the next ones: half of an L2 cache.
const LOWER_BYTES: usize = 512 << 10;

/// The most rows of a micro-kernel.
const MAX_ROWS: usize = 16;

/// Packs a row of f32 or f64 with its signs flipped.
///
/// # Safety
///
/// The row has the columns of the panel, and `to` space for its width.
unsafe fn pack_negated(row: *const u8, panel: &Panel, bytes: usize, to: *mut u8) {
    macro_rules! pack {
        ($bits:ty) => {{
            let (row, to) = (row.cast::<$bits>(), to.cast::<$bits>());
            // SAFETY: guaranteed by the caller.
            unsafe {
                for at in 0..panel.columns {
                    *to.add(at) = *row.add(at) ^ (1 << (<$bits>::BITS - 1));
                }
                for at in panel.columns..panel.width {
                    *to.add(at) = 0;
                }
            }
        }};
    }
    match bytes {
        4 => pack!(u32),
        _ => pack!(u64),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::gemm::ComputeType;
    use crate::isa::Isa;

    /// Solves and subtracts with small integers, which are exact, in matrices with more columns than are named. Returns B and C.
    fn solved<T: Copy + From<i8>>(
        gemm: &Gemm,
        pool: &Pool,
        (m, n, k): (usize, usize, usize),
        mut random: fastrand::Rng,
    ) -> [Vec<T>; 2]
    where
        f64: From<T>,
    {
        let (wide, tall) = (n + 3, k + 5);
        let mut integers = |count: usize, most: i8| -> Vec<T> {
            (0..count).map(|_| T::from(random.i8(-most..=most))).collect()
        };
        let (lower, mut b) = (integers(tall * (k + 1), 1), integers((k + 1) * wide, 9));
        let (a, mut c) = (integers((m + 1) * tall, 3), integers((m + 1) * wide, 9));
        let operand = |data: &[T]| Operand {
            data: data.as_ptr().cast(),
            element: gemm.lhs_type(),
            row_stride: tall,
            column_stride: 1,
        };
        let operand_mut = |data: &mut [T]| OperandMut { data: data.as_mut_ptr().cast(), stride: wide };
        // SAFETY: the vectors have these sizes.
        unsafe {
            let x =
                gemm.solve_unit_lower(pool, &operand(&lower), operand_mut(&mut b), k, n).unwrap().unwrap();
            gemm.subtract(pool, m, &operand(&a), &x, operand_mut(&mut c)).unwrap();
        }
        [b, c]
    }

    /// The same by substitution.
    fn expected((m, n, k): (usize, usize, usize), mut random: fastrand::Rng) -> [Vec<f64>; 2] {
        let (wide, tall) = (n + 3, k + 5);
        let mut integers = |count: usize, most: i8| -> Vec<f64> {
            (0..count).map(|_| f64::from(random.i8(-most..=most))).collect()
        };
        let (lower, mut b) = (integers(tall * (k + 1), 1), integers((k + 1) * wide, 9));
        let (a, mut c) = (integers((m + 1) * tall, 3), integers((m + 1) * wide, 9));
        for column in 0..n {
            for row in 0..k {
                for above in 0..row {
                    b[row * wide + column] -= lower[row * tall + above] * b[above * wide + column];
                }
            }
            for row in 0..m {
                for at in 0..k {
                    c[row * wide + column] -= a[row * tall + at] * b[at * wide + column];
                }
            }
        }
        [b, c]
    }

    #[test]
    fn solutions_and_what_they_leave_are_those_of_substitution() {
        for shape in [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (9, 49, 8), (40, 25, 13), (130, 120, 17)] {
            for isa in Isa::available() {
                for threads in [1, 3] {
                    let pool = Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap();
                    let random = fastrand::Rng::with_seed(shape.1 as u64);
                    let right = expected(shape, random.clone());
                    let found =
                        solved::<f64>(&Gemm::with_isa(ComputeType::F64, isa), &pool, shape, random.clone());
                    assert!(found == right, "f64, {shape:?}, {isa:?}");
                    let found = solved::<f32>(&Gemm::with_isa(ComputeType::F32, isa), &pool, shape, random);
                    let found = found.map(|values| values.into_iter().map(f64::from).collect::<Vec<_>>());
                    // Sums of more than 17 rows would not be exact in f32.
                    assert!(found == right, "f32, {shape:?}, {isa:?}");
                }
            }
        }
    }

    #[test]
    fn long_solves_leave_small_residuals() {
        let (k, n) = (300, 130);
        let mut random = fastrand::Rng::with_seed(7);
        let lower: Vec<f64> = (0..k * k).map(|_| random.f64() - 0.5).collect();
        let b: Vec<f64> = (0..k * n).map(|_| random.f64() - 0.5).collect();
        let (gemm, pool) = (Gemm::new(ComputeType::F64), Pool::new(NonZeroUsize::new(2).unwrap()).unwrap());
        let operand = Operand {
            data: lower.as_ptr().cast(),
            element: gemm.lhs_type(),
            row_stride: k,
            column_stride: 1,
        };
        let mut x = b.clone();
        let target = OperandMut { data: x.as_mut_ptr().cast(), stride: n };
        // SAFETY: the vectors have these sizes.
        unsafe { gemm.solve_unit_lower(&pool, &operand, target, k, n) }.unwrap().unwrap();
        for row in 0..k {
            for column in 0..n {
                let products: Vec<f64> =
                    (0..row).map(|at| lower[row * k + at] * x[at * n + column]).collect();
                let size: f64 = products.iter().map(|product| product.abs()).sum();
                let sum = products.iter().sum::<f64>() + x[row * n + column];
                assert!(
                    (sum - b[row * n + column]).abs() <= 1e-13 * (1.0 + size),
                    "row {row}, column {column}"
                );
            }
        }
    }

    #[test]
    fn gemms_that_convert_their_operands_do_not_subtract() {
        let pool = Pool::new(NonZeroUsize::MIN).unwrap();
        let operand = Operand {
            data: ptr::null(),
            element: warpforge_tensor::ElementType::F32,
            row_stride: 0,
            column_stride: 1,
        };
        let target = OperandMut { data: ptr::null_mut(), stride: 0 };
        let gemm = Gemm::new(ComputeType::Bf16);
        // SAFETY: there are no rows and no columns.
        let solved = unsafe { gemm.solve_unit_lower(&pool, &operand, target, 0, 0) }.unwrap();
        assert!(!gemm.subtracts() && solved.is_none());
        let gemm = Gemm::new(ComputeType::F64);
        // SAFETY: as above.
        let error = unsafe { gemm.solve_unit_lower(&pool, &operand, target, 0, 0) }.unwrap_err();
        assert!(error.to_string().contains("f64 GEMM does not accept"), "{error}");
    }
}
