//! The factorization of a panel, that is of some columns with all rows from the diagonal down, with partial pivoting.

// Parts of the matrix that do not overlap are used at the same time.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpforge_kernels::gemm::Gemm;
use warpforge_kernels::pool::Pool;

use crate::LinalgError;
use crate::real::Real;
use crate::triangular::solve_unit_lower;
use crate::update::subtract_product;
use crate::vector::{Pivot, WIDTH, eliminate};
use crate::view::View;

/// Rows of a panel that a thread eliminates together.
const ROWS: usize = 512;
/// Columns that a thread swaps together.
const STRIP: usize = 1024;

/// Swaps rows `column` and `pivots[column]` for each column of `of`, in the given columns of the matrix.
///
/// # Safety
/// The matrix lives and has been written, and nobody else uses those columns meanwhile.
pub(crate) unsafe fn swap_rows<T: Real>(
    pool: &Pool,
    matrix: View<T>,
    columns: Range<usize>,
    pivots: &[usize],
    of: Range<usize>,
) {
    pool.run(columns.len().div_ceil(STRIP), &|strip, _| {
        let start = columns.start + strip * STRIP;
        let strip = start..(start + STRIP).min(columns.end);
        for row in of.clone() {
            let other = pivots[row];
            if other != row {
                // SAFETY: the rows differ, and a strip belongs to one piece.
                unsafe {
                    matrix.row(row, strip.clone()).swap_with_slice(matrix.row(other, strip.clone()));
                }
            }
        }
    });
}

/// A panel's factorization in place, and the memory it copies columns to.
pub(crate) struct Panels<'a, T> {
    pub(crate) gemm: &'a Gemm,
    pub(crate) pool: &'a Pool,
    /// The whole matrix.
    pub(crate) matrix: View<T>,
    /// 16 columns of all rows.
    pub(crate) copy: &'a mut Vec<[T; WIDTH]>,
}

impl<T: Real> Panels<'_, T> {
    /// Factors these columns from their diagonal down. The rows are swapped within these columns only;
    /// `pivots[column]` says with which row each was swapped.
    ///
    /// # Safety
    /// The matrix lives and has been written, and nobody else uses these columns meanwhile.
    pub(crate) unsafe fn factor(
        &mut self,
        columns: Range<usize>,
        pivots: &mut [usize],
    ) -> Result<(), LinalgError> {
        if columns.len() <= WIDTH {
            // SAFETY: as the caller promises.
            return unsafe { self.factor_narrow(columns, pivots) };
        }
        let (first, end, rows) = (columns.start, columns.end, self.matrix.rows);
        let middle = first + (columns.len() / 2).next_multiple_of(WIDTH).min(columns.len() - 1);
        let matrix = self.matrix;
        // SAFETY: as the caller promises; the parts do not overlap.
        unsafe {
            self.factor(first..middle, pivots)?;
            swap_rows(self.pool, matrix, middle..end, pivots, first..middle);
            let right = matrix.part(first..middle, middle..end);
            solve_unit_lower(self.gemm, self.pool, matrix.part(first..middle, first..middle), right)?;
            let (rest, left) =
                (matrix.part(middle..rows, middle..end), matrix.part(middle..rows, first..middle));
            subtract_product(self.gemm, self.pool, rest, left, right)?;
            self.factor(middle..end, pivots)?;
            swap_rows(self.pool, matrix, first..middle, pivots, middle..end);
        }
        Ok(())
    }

    /// Factors up to 16 columns in a contiguous copy. Each step is one pass over the rows: it eliminates a column and
    /// finds the pivot of the next one.
    ///
    /// # Safety
    /// As for [`Self::factor`].
    unsafe fn factor_narrow(
        &mut self,
        columns: Range<usize>,
        pivots: &mut [usize],
    ) -> Result<(), LinalgError> {
        let (first, width) = (columns.start, columns.len());
        let panel = self.matrix.part(first..self.matrix.rows, columns);
        self.copy.clear();
        self.copy.resize(panel.rows, [T::ZERO; WIDTH]);
        let (pool, copy) = (self.pool, &mut self.copy[..]);
        // SAFETY: as the caller promises.
        each_part(pool, copy, &|from, rows: &mut [[T; WIDTH]]| unsafe {
            for (at, row) in rows.iter_mut().enumerate() {
                row[..width].copy_from_slice(panel.read(from + at, 0..width));
            }
        });
        let mut best = Pivot { magnitude: T::ZERO, row: 0 };
        for (row, elements) in copy.iter().enumerate() {
            let magnitude = elements[0].abs();
            if magnitude > best.magnitude {
                best = Pivot { magnitude, row };
            }
        }
        for column in 0..width {
            // Not a number is no pivot either.
            if best.magnitude.partial_cmp(&T::ZERO) != Some(std::cmp::Ordering::Greater) {
                return Err(LinalgError::Singular { column: first + column });
            }
            pivots[first + column] = first + best.row;
            copy.swap(column, best.row);
            let pivot_row = copy[column];
            let found = Mutex::new(Pivot { magnitude: T::ZERO, row: usize::MAX });
            each_part(pool, &mut copy[column + 1..], &|from, rows: &mut [[T; WIDTH]]| {
                let part = eliminate(rows, &pivot_row, column, column + 1 + from);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                // The first of equals, whoever comes first.
                if part.magnitude > found.magnitude
                    || (part.magnitude == found.magnitude && part.row < found.row)
                {
                    *found = part;
                }
            });
            best = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        // SAFETY: as the caller promises.
        each_part(pool, copy, &|from, rows: &mut [[T; WIDTH]]| unsafe {
            for (at, row) in rows.iter().enumerate() {
                panel.row(from + at, 0..width).copy_from_slice(&row[..width]);
            }
        });
        Ok(())
    }
}

/// Calls `work` with parts of the rows and the number of the first row of each, by the threads of the pool.
fn each_part<T: Real>(
    pool: &Pool,
    rows: &mut [[T; WIDTH]],
    work: &(dyn Fn(usize, &mut [[T; WIDTH]]) + Sync),
) {
    if rows.len() <= ROWS {
        work(0, rows);
        return;
    }
    let parts: Vec<Mutex<&mut [[T; WIDTH]]>> = rows.chunks_mut(ROWS).map(Mutex::new).collect();
    pool.run(parts.len(), &|part, _| {
        work(part * ROWS, &mut parts[part].lock().unwrap_or_else(PoisonError::into_inner));
    });
}
