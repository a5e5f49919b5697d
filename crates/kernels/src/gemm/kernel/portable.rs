//! Kernels in plain Rust: small arrays that a compiler makes vectors of.

use std::array;

use super::tile::tile;
use super::vector::Vector;
use super::{Call, Family, kernels};

/// Products of f32.
pub(super) static F32: Family =
    Family { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(f32_tile, [1 2 3 4], [1 2]) };

/// Products of i32.
pub(super) static I32: Family =
    Family { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(i32_tile, [1 2 3 4], [1 2]) };

/// Products of f64.
pub(super) static F64: Family =
    Family { rows: 4, lanes: 2, vectors: 2, bytes: 8, kernels: kernels!(f64_tile, [1 2 3 4], [1 2]) };

unsafe fn f32_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<[f32; 4], MR, NV>(call) }
}

unsafe fn f64_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<[f64; 2], MR, NV>(call) }
}

unsafe fn i32_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<[i32; 4], MR, NV>(call) }
}

macro_rules! vector {
    ($element:ty, $lanes:literal, |$left:ident, $right:ident, $sum:ident| $result:expr) => {
        // SAFETY: needs no instructions.
        unsafe impl Vector for [$element; $lanes] {
            type Element = $element;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                [<$element>::default(); $lanes]
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: the address is good.
                [unsafe { *from }; $lanes]
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the address is good for so many.
                unsafe { from.cast::<Self>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $element, count: usize) -> Self {
                // SAFETY: the address is good for `count`.
                array::from_fn(|at| if at < count { unsafe { *from.add(at) } } else { <$element>::default() })
            }

            #[inline(always)]
            unsafe fn multiply_add(self, other: Self, sum: Self) -> Self {
                array::from_fn(|at| {
                    let ($left, $right, $sum) = (self[at], other[at], sum[at]);
                    $result
                })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the address is good for so many.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut $element, count: usize) {
                for (at, value) in self.into_iter().enumerate().take(count) {
                    // SAFETY: the address is good for `count`.
                    unsafe { *to.add(at) = value };
                }
            }
        }
    };
}

vector!(f32, 4, |left, right, sum| left * right + sum);
vector!(f64, 2, |left, right, sum| left * right + sum);
vector!(i32, 4, |left, right, sum| left.wrapping_mul(right).wrapping_add(sum));
