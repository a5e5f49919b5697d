//! Linear systems made from a seed, and HPL's scaled residual of a solution.
//!
//! An element depends on the seed and on its place alone. A residual is computed from a matrix that is made again row by
//! row, so it does not trust the memory that was factored.

use std::sync::{Mutex, PoisonError};

use warpforge_kernels::pool::Pool;

use crate::LinalgError;
use crate::matrix::Matrix;
use crate::real::Real;
use crate::vector::dot;

/// Rows that a thread works on together.
const ROWS: usize = 16;
/// HPL's unit roundoff of f64.
const EPSILON: f64 = f64::EPSILON / 2.0;
/// A solution passes HPL's check below this.
const THRESHOLD: f64 = 16.0;

/// Which matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As in HPL: independent elements, uniform in -0.5 to 0.5.
    Uniform,
    /// As in HPL-MxP: the same, but a diagonal element is the sum of the magnitudes of the others in its row.
    DiagonallyDominant,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::DiagonallyDominant];

    /// The name used in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::DiagonallyDominant => "dominant",
        }
    }
}

/// A system `A x = b` that can be made again at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// The number of unknowns.
    pub order: usize,
    /// What the elements depend on beside their place.
    pub seed: u64,
    /// Which matrix.
    pub kind: Kind,
}

/// How good a solution is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// `‖A x − b‖∞ / (ε (‖A‖∞ ‖x‖∞ + ‖b‖∞) N)`, as HPL has it.
    pub scaled: f64,
}

impl Residual {
    /// Whether HPL's check passes: below 16, and a number.
    #[must_use]
    pub fn passes(self) -> bool {
        self.scaled < THRESHOLD
    }

    /// The residual of a system with these infinity norms.
    pub(crate) fn of(order: usize, norm_r: f64, norm_a: f64, norm_x: f64, norm_b: f64) -> Self {
        Self { scaled: norm_r / (EPSILON * (norm_a * norm_x + norm_b) * order as f64) }
    }
}

/// The largest magnitude; NaN if there is one.
pub(crate) fn norm(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest: f64, value| {
        let magnitude = value.abs();
        if magnitude > largest || magnitude.is_nan() { magnitude } else { largest }
    })
}

impl Problem {
    /// The elements of a row.
    pub fn row(&self, row: usize, elements: &mut [f64]) {
        let first = (row as u64).wrapping_mul(self.order as u64);
        for (column, element) in (0_u64..).zip(elements.iter_mut()) {
            *element = uniform(self.seed, first.wrapping_add(column));
        }
        if self.kind == Kind::DiagonallyDominant && row < elements.len() {
            elements[row] = 0.0;
            elements[row] = elements.iter().map(|element| element.abs()).sum();
        }
    }

    /// The elements of some columns from the first on, one column after the other: as many as there is place for.
    ///
    /// # Panics
    /// If there are no such columns.
    pub fn columns(&self, pool: &Pool, first: usize, elements: &mut [f64]) {
        let order = self.order as u64;
        let count = elements.len().div_ceil(self.order.max(1));
        assert!(first + count <= self.order, "there are no columns {first} to {}", first + count);
        let columns: Vec<Mutex<&mut [f64]>> =
            elements.chunks_mut(self.order.max(1)).map(Mutex::new).collect();
        pool.run(columns.len(), &|part, _| {
            let column = first + part;
            let mut elements = columns[part].lock().unwrap_or_else(PoisonError::into_inner);
            for (row, element) in (0_u64..).zip(elements.iter_mut()) {
                *element = uniform(self.seed, row.wrapping_mul(order).wrapping_add(column as u64));
            }
            if self.kind == Kind::DiagonallyDominant && column < elements.len() {
                let mut row = vec![0.0; self.order];
                self.row(column, &mut row);
                elements[column] = row[column];
            }
        });
    }

    /// The right-hand side.
    #[must_use]
    pub fn rhs(&self) -> Vec<f64> {
        let first = (self.order as u64).wrapping_mul(self.order as u64);
        (0..self.order as u64).map(|row| uniform(self.seed, first.wrapping_add(row))).collect()
    }

    /// The matrix, rounded to an element type.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn matrix<T: Real>(&self, pool: &Pool) -> Result<Matrix<T>, LinalgError> {
        Matrix::new(pool, self.order, |row, elements| self.rounded_row(row, elements))
    }

    /// Writes the matrix into the memory of another one of the same order.
    ///
    /// # Panics
    /// If it has another order.
    pub fn rewrite<T: Real>(&self, pool: &Pool, matrix: &mut Matrix<T>) {
        assert_eq!(matrix.order(), self.order, "a matrix of another order");
        matrix.fill(pool, |row, elements| self.rounded_row(row, elements));
    }

    fn rounded_row<T: Real>(&self, row: usize, elements: &mut [T]) {
        let mut exact = vec![0.0; self.order];
        self.row(row, &mut exact);
        for (element, exact) in elements.iter_mut().zip(exact) {
            *element = T::from_f64(exact);
        }
    }

    /// The infinity norm of the matrix: the largest sum of a row's magnitudes.
    #[must_use]
    pub fn norm(&self, pool: &Pool) -> f64 {
        self.largest(pool, |elements, _| elements.iter().map(|element| element.abs()).sum())
    }

    /// The scaled residual of a solution, with the matrix made again.
    ///
    /// # Panics
    /// If the solution has another order.
    #[must_use]
    pub fn residual(&self, pool: &Pool, x: &[f64]) -> Residual {
        assert_eq!(x.len(), self.order, "a solution of another order");
        let b = self.rhs();
        let norm_r = self.largest(pool, |elements, row| (dot(elements, x) - b[row]).abs());
        Residual::of(self.order, norm_r, self.norm(pool), norm(x), norm(&b))
    }

    /// The largest value of a function of the rows; NaN if there is one.
    fn largest(&self, pool: &Pool, of: impl Fn(&[f64], usize) -> f64 + Sync) -> f64 {
        let values = Mutex::new(Vec::new());
        pool.run(self.order.div_ceil(ROWS), &|part, _| {
            let mut elements = vec![0.0; self.order];
            let mut found = Vec::with_capacity(ROWS);
            for row in part * ROWS..((part + 1) * ROWS).min(self.order) {
                self.row(row, &mut elements);
                found.push(of(&elements, row));
            }
            values.lock().unwrap_or_else(PoisonError::into_inner).push(norm(&found));
        });
        norm(&values.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The element with this number: SplitMix64 at this place of its sequence, uniform in -0.5 to 0.5.
fn uniform(seed: u64, number: u64) -> f64 {
    let mut bits = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 * 2.0_f64.powi(-53) - 0.5
}
