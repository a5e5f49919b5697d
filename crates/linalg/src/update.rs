//! What follows a factored block: the solve for the rows beside it, and the product that is subtracted from what is below them.

// The GEMM works on addresses.
#![allow(unsafe_code)]

use warpforge_kernels::gemm::{Gemm, GemmError};
use warpforge_kernels::pool::Pool;

use crate::product::subtract_product;
use crate::real::Real;
use crate::triangular::solve_unit_lower;
use crate::view::View;

/// `B = L⁻¹ B` for a unit lower triangular L, then `C -= A B`.
///
/// # Safety
/// As for [`subtract_product`]; L and B do not overlap.
pub(crate) unsafe fn eliminate_below<T: Real>(
    gemm: &Gemm,
    pool: &Pool,
    l: View<T>,
    b: View<T>,
    a: View<T>,
    c: View<T>,
) -> Result<(), GemmError> {
    assert!(l.rows == l.columns && l.rows == b.rows, "sizes do not match");
    assert!(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows, "sizes do not match");
    assert_eq!(gemm.compute_type().accumulator(), T::ELEMENT, "sums of another type");
    // SAFETY: as the caller promises.
    unsafe {
        match gemm.solve_unit_lower(pool, &l.operand(), b.operand_mut(), b.rows, b.columns)? {
            Some(solved) => gemm.subtract(pool, a.rows, &a.operand(), &solved, c.operand_mut()),
            None => {
                solve_unit_lower(gemm, pool, l, b)?;
                subtract_product(gemm, pool, c, a, b)
            }
        }
    }
}
