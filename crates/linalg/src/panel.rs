//! The factorization of a panel, that is of some columns with all rows from the diagonal down, with partial pivoting.

// Parts of the matrix that do not overlap are used at the same time.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpforge_kernels::gemm::Gemm;
use warpforge_kernels::pool::Pool;

use crate::LinalgError;
use crate::real::Real;
use crate::update::eliminate_below;
use crate::vector::{Block, Pivot, ROWS, WIDTH, divide, largest, subtract_columns};
use crate::view::View;

/// Blocks of rows of a panel that a thread eliminates together: fewer take less time than threads take to meet.
const BLOCKS: usize = 32;
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
    pub(crate) copy: &'a mut Vec<Block<T>>,
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
            let (block, right) =
                (matrix.part(first..middle, first..middle), matrix.part(first..middle, middle..end));
            let (left, rest) =
                (matrix.part(middle..rows, first..middle), matrix.part(middle..rows, middle..end));
            eliminate_below(self.gemm, self.pool, block, right, left, rest)?;
            self.factor(middle..end, pivots)?;
            swap_rows(self.pool, matrix, first..middle, pivots, middle..end);
        }
        Ok(())
    }

    /// Factors up to 16 columns in a copy whose elements lie column by column. Each step is one pass over the rows: it divides a column by
    /// its pivot, subtracts from the next one what all columns before it contribute, and finds its pivot.
    ///
    /// # Safety
    /// As for [`Self::factor`].
    unsafe fn factor_narrow(
        &mut self,
        columns: Range<usize>,
        pivots: &mut [usize],
    ) -> Result<(), LinalgError> {
        let (pool, first, width) = (self.pool, columns.start, columns.len());
        let panel = self.matrix.part(first..self.matrix.rows, columns);
        let count = panel.rows.div_ceil(ROWS);
        if self.copy.len() < count {
            self.copy.resize(count, [[T::ZERO; ROWS]; WIDTH]);
        }
        let copy = &mut self.copy[..count];
        let rows_of = |block: usize| block * ROWS..panel.rows.min((block + 1) * ROWS);
        let mut best = largest_of(pool, copy, &|at, block| {
            *block = [[T::ZERO; ROWS]; WIDTH];
            for (row, from) in rows_of(at).enumerate() {
                // SAFETY: as the caller promises.
                let elements = unsafe { panel.read(from, 0..width) };
                for (column, &element) in block.iter_mut().zip(elements) {
                    column[row] = element;
                }
            }
            largest(&block[0], at * ROWS)
        });
        let mut pivot = T::ONE;
        for column in 0..width {
            if column > 0 {
                let above = solve_above(&mut copy[0], column);
                best = largest_of(pool, copy, &|at, block| {
                    let start = column.saturating_sub(at * ROWS);
                    divide(&mut block[column - 1][start..], pivot);
                    subtract_columns(block, column, start, &above);
                    largest(&block[column][start..], at * ROWS + start)
                });
            }
            // Not a number is no pivot either.
            if best.magnitude.partial_cmp(&T::ZERO) != Some(std::cmp::Ordering::Greater) {
                return Err(LinalgError::Singular { column: first + column });
            }
            pivots[first + column] = first + best.row;
            let (here, other) = (row_of(copy, column), row_of(copy, best.row));
            set_row(copy, best.row, &here);
            set_row(copy, column, &other);
            pivot = copy[0][column][column];
        }
        largest_of(pool, copy, &|at, block| {
            divide(&mut block[width - 1][width.saturating_sub(at * ROWS)..], pivot);
            for (row, to) in rows_of(at).enumerate() {
                // SAFETY: as the caller promises.
                let elements = unsafe { panel.row(to, 0..width) };
                for (column, element) in block.iter().zip(elements) {
                    *element = column[row];
                }
            }
            Pivot::none()
        });
        Ok(())
    }
}

/// A row of a panel.
fn row_of<T: Real>(blocks: &[Block<T>], row: usize) -> [T; WIDTH] {
    std::array::from_fn(|column| blocks[row / ROWS][column][row % ROWS])
}

/// Overwrites a row of a panel.
fn set_row<T: Real>(blocks: &mut [Block<T>], row: usize, elements: &[T; WIDTH]) {
    for (column, &element) in blocks[row / ROWS].iter_mut().zip(elements) {
        column[row % ROWS] = element;
    }
}

/// Solves for the elements of a column above the diagonal, in the first block of a panel whose columns before it are done. Returns them.
fn solve_above<T: Real>(block: &mut Block<T>, column: usize) -> [T; WIDTH] {
    let mut solved = [T::ZERO; WIDTH];
    for row in 0..column {
        let products = block[..row].iter().zip(&solved).map(|(factors, &above)| factors[row] * above);
        solved[row] = products.fold(block[column][row], |sum, product| sum - product);
        block[column][row] = solved[row];
    }
    solved
}

/// Calls `work` with each block and its number, by the threads of the pool. Returns the largest of what it finds, the first of equals.
fn largest_of<T: Real>(
    pool: &Pool,
    blocks: &mut [Block<T>],
    work: &(dyn Fn(usize, &mut Block<T>) -> Pivot<T> + Sync),
) -> Pivot<T> {
    let in_order = |from: usize, blocks: &mut [Block<T>]| {
        let found = blocks.iter_mut().enumerate().map(|(at, block)| work(from + at, block));
        found.fold(Pivot::none(), Pivot::larger)
    };
    if blocks.len() <= BLOCKS {
        return in_order(0, blocks);
    }
    let parts: Vec<Mutex<&mut [Block<T>]>> = blocks.chunks_mut(BLOCKS).map(Mutex::new).collect();
    let found = Mutex::new(Pivot::none());
    pool.run(parts.len(), &|part, _| {
        let mut blocks = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let of_part = in_order(part * BLOCKS, &mut blocks);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = found.larger(of_part);
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
