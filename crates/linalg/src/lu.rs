//! Blocked right-looking LU factorization with partial pivoting.

// Parts of the matrix that do not overlap are used at the same time.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use warpforge_kernels::gemm::Gemm;
use warpforge_kernels::pool::Pool;

use crate::LinalgError;
use crate::matrix::Matrix;
use crate::panel::{Panels, swap_rows};
use crate::real::{Precision, Real};
use crate::update::eliminate_below;
use crate::vector::Block;

/// Factors matrices of one element type. It keeps the memory that it packs into for the next matrix.
#[derive(Debug)]
pub struct Factorizer<T> {
    gemm: Gemm,
    precision: Precision,
    block: usize,
    copy: Vec<Block<T>>,
    elements: PhantomData<T>,
}

impl<T: Real> Factorizer<T> {
    /// A factorizer whose GEMMs have this precision, with panels of so many columns. None if matrices of `T` cannot be
    /// factored in this precision, or there are no columns.
    #[must_use]
    pub fn new(precision: Precision, block: usize) -> Option<Self> {
        let possible = precision.fits(T::ELEMENT) && block > 0;
        possible.then(|| Self {
            gemm: precision.gemm(),
            precision,
            block,
            copy: Vec::new(),
            elements: PhantomData,
        })
    }

    /// The precision of the GEMMs.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Factors a matrix: `P A = L U` with a unit lower triangular L.
    ///
    /// # Errors
    /// If a column has no pivot, or there is no memory to pack into. The matrix is lost then.
    pub fn factor(&mut self, pool: &Pool, mut matrix: Matrix<T>) -> Result<Lu<T>, LinalgError> {
        let order = matrix.order();
        let view = matrix.view();
        let mut pivots: Vec<usize> = (0..order).collect();
        let mut panels = Panels { gemm: &self.gemm, pool, matrix: view, copy: &mut self.copy };
        for first in (0..order).step_by(self.block) {
            let end = (first + self.block).min(order);
            let (panel, after) = (first..end, end..order);
            // SAFETY: the matrix is this function's own; the parts used together do not overlap.
            unsafe {
                panels.factor(panel.clone(), &mut pivots)?;
                swap_rows(pool, view, after.clone(), &pivots, panel.clone());
                let block = view.part(panel.clone(), panel.clone());
                let upper = view.part(panel.clone(), after.clone());
                let lower = view.part(after.clone(), panel);
                eliminate_below(&self.gemm, pool, block, upper, lower, view.part(after.clone(), after))?;
            }
        }
        Ok(Lu { matrix, pivots, block: self.block })
    }
}

/// A factored matrix. U is on and above the diagonal. Below it are the columns of L, panel by panel, with the rows in the
/// order they had when the panel was done: later swaps are applied to the right-hand side instead, as LINPACK does.
#[derive(Debug)]
pub struct Lu<T> {
    pub(crate) matrix: Matrix<T>,
    pub(crate) pivots: Vec<usize>,
    pub(crate) block: usize,
}

impl<T: Real> Lu<T> {
    /// The number of unknowns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.matrix.order()
    }

    /// With which row each row was swapped, in the order of the columns.
    #[must_use]
    pub fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// The memory of the factors, to be filled with another matrix.
    #[must_use]
    pub fn into_matrix(self) -> Matrix<T> {
        self.matrix
    }
}
