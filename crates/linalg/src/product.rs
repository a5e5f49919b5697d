//! `C -= A B` by the engine's GEMM, where it has no kernels that subtract. Finished blocks of the product are subtracted while they are in
//! cache.

// The GEMM works on addresses.
#![allow(unsafe_code)]

use warpforge_kernels::gemm::{Gemm, GemmError, Rhs, Shape};
use warpforge_kernels::output_block::OutputBlock;
use warpforge_kernels::pool::Pool;

use crate::real::Real;
use crate::vector::subtract;
use crate::view::View;

/// `C -= A B`.
///
/// # Safety
/// The matrices live and have been written, C overlaps neither A nor B, and nobody else uses them meanwhile. The GEMM's
/// sums have the type `T`.
pub(crate) unsafe fn subtract_product<T: Real>(
    gemm: &Gemm,
    pool: &Pool,
    c: View<T>,
    a: View<T>,
    b: View<T>,
) -> Result<(), GemmError> {
    assert!(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows, "sizes do not match");
    assert_eq!(gemm.compute_type().accumulator(), T::ELEMENT, "sums of another type");
    if c.rows == 0 || c.columns == 0 || a.columns == 0 {
        return Ok(());
    }
    let sink = |block: &OutputBlock| {
        for (at, row) in block.rows.clone().enumerate() {
            // SAFETY: the block is inside C, no two blocks overlap, and its elements have just been computed.
            let (to, from) = unsafe {
                let from = block.data.cast::<T>().add(at * block.stride).cast_const();
                (c.row(row, block.columns.clone()), std::slice::from_raw_parts(from, block.columns.len()))
            };
            subtract(to, from);
        }
    };
    let shape = Shape { m: c.rows, n: c.columns, k: a.columns };
    // SAFETY: the operands are inside their matrices, as the caller promises; the result exists only for the sink.
    unsafe { gemm.multiply(pool, shape, &a.operand(), Rhs::Strided(b.operand()), None, 0, Some(&sink)) }
}
