//! Triangular solves with many right-hand sides, `B = L⁻¹ B` for a unit lower triangular L, where the engine's GEMM has none.

// Parts of the matrix that do not overlap are used at the same time.
#![allow(unsafe_code)]

use warpforge_kernels::gemm::{Gemm, GemmError};
use warpforge_kernels::pool::Pool;

use crate::product::subtract_product;
use crate::real::Real;
use crate::vector::{WIDTH, subtract_scaled};
use crate::view::View;

/// Columns of the right-hand side that a thread solves for together: with 16 rows they fit the L1 cache.
const STRIP: usize = 128;

/// Solves for all columns of B in place, by recursion on L: the first half of the rows, their GEMM with the block below
/// the diagonal, the second half.
///
/// # Safety
/// The matrices live and have been written, L and B do not overlap, and nobody else uses them meanwhile.
pub(crate) unsafe fn solve_unit_lower<T: Real>(
    gemm: &Gemm,
    pool: &Pool,
    l: View<T>,
    b: View<T>,
) -> Result<(), GemmError> {
    let order = l.rows;
    assert!(l.columns == order && b.rows == order, "sizes do not match");
    if order <= WIDTH {
        // SAFETY: as the caller promises.
        unsafe { solve_strips(pool, l, b) };
        return Ok(());
    }
    let half = (order / 2).next_multiple_of(WIDTH).min(order - 1);
    let (top, bottom) = (b.part(0..half, 0..b.columns), b.part(half..order, 0..b.columns));
    // SAFETY: as the caller promises; the parts of B do not overlap.
    unsafe {
        solve_unit_lower(gemm, pool, l.part(0..half, 0..half), top)?;
        subtract_product(gemm, pool, bottom, l.part(half..order, 0..half), top)?;
        solve_unit_lower(gemm, pool, l.part(half..order, half..order), bottom)
    }
}

/// Solves strips of columns by substitution.
///
/// # Safety
/// As for [`solve_unit_lower`].
unsafe fn solve_strips<T: Real>(pool: &Pool, l: View<T>, b: View<T>) {
    pool.run(b.columns.div_ceil(STRIP), &|strip, _| {
        let columns = strip * STRIP..((strip + 1) * STRIP).min(b.columns);
        for row in 1..l.rows {
            // SAFETY: a strip belongs to one piece, L is only read, and the rows of B differ.
            unsafe {
                let factors = l.read(row, 0..row);
                let target = b.row(row, columns.clone());
                for (above, &factor) in factors.iter().enumerate() {
                    subtract_scaled(target, factor, b.read(above, columns.clone()));
                }
            }
        }
    });
}
