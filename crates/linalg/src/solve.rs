//! Solves with the factors for one right-hand side: a pass over L, then one over U.

use std::sync::{Mutex, PoisonError};

use warpforge_kernels::pool::Pool;

use crate::lu::Lu;
use crate::real::Real;
use crate::vector::dot;

/// Rows whose products with the solved part a thread computes together.
const ROWS: usize = 64;

impl<T: Real> Lu<T> {
    /// Solves `A x = b` in place.
    ///
    /// # Panics
    /// If `b` has not as many elements as the matrix has rows.
    pub fn solve(&self, pool: &Pool, b: &mut [T]) {
        assert_eq!(b.len(), self.order(), "a right-hand side of another size");
        self.solve_lower(pool, b);
        self.solve_upper(pool, b);
    }

    /// `b = L⁻¹ P b`, with the swaps of each panel before its columns.
    fn solve_lower(&self, pool: &Pool, b: &mut [T]) {
        let order = self.order();
        for first in (0..order).step_by(self.block) {
            let end = (first + self.block).min(order);
            for row in first..end {
                b.swap(row, self.pivots[row]);
            }
            let (head, below) = b.split_at_mut(end);
            let solved = &mut head[first..];
            for row in 1..solved.len() {
                let (above, target) = solved.split_at_mut(row);
                target[0] = target[0] - dot(&self.matrix.row(first + row)[first..first + row], above);
            }
            self.subtract_products(pool, below, end, first, solved);
        }
    }

    /// `b = U⁻¹ b`, from the last panel up.
    fn solve_upper(&self, pool: &Pool, b: &mut [T]) {
        let order = self.order();
        let panels: Vec<usize> = (0..order).step_by(self.block).collect();
        for &first in panels.iter().rev() {
            let end = (first + self.block).min(order);
            let (above, tail) = b.split_at_mut(first);
            let solved = &mut tail[..end - first];
            for row in (0..solved.len()).rev() {
                let elements = &self.matrix.row(first + row)[first..end];
                let (head, below) = solved.split_at_mut(row + 1);
                head[row] = (head[row] - dot(&elements[row + 1..], below)) / elements[row];
            }
            self.subtract_products(pool, above, 0, first, solved);
        }
    }

    /// Subtracts from each target the product of its row's columns from `first_column` on with the part of the solution.
    /// The first target belongs to row `first_row`.
    fn subtract_products(
        &self,
        pool: &Pool,
        targets: &mut [T],
        first_row: usize,
        first_column: usize,
        solved: &[T],
    ) {
        let columns = first_column..first_column + solved.len();
        let parts: Vec<Mutex<&mut [T]>> = targets.chunks_mut(ROWS).map(Mutex::new).collect();
        pool.run(parts.len(), &|part, _| {
            let mut targets = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            for (at, target) in targets.iter_mut().enumerate() {
                let row = self.matrix.row(first_row + part * ROWS + at);
                *target = *target - dot(&row[columns.clone()], solved);
            }
        });
    }
}
