//! Portable micro-kernels on small arrays that the compiler vectorizes.

use std::array;

use half::bf16;

use super::body::tile;
use super::family::{KernelArgs, KernelFamily, kernels};
use super::few_rows::{self, FewRowsArgs};
use super::group_body::{GroupCodes, group_tile, widen_groups, widen_rows};
use super::vector::{Float8, PanelElement, Vector};

/// f32 micro-kernels.
pub(super) static F32: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(f32_tile, [1 2 3 4], [1 2]) };

/// f32 micro-kernels whose panels are bf16.
pub(super) static BF16: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(bf16_tile, [1 2 3 4], [1 2]) };

/// f32 micro-kernels whose panels are i8.
pub(super) static I8: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(i8_tile, [1 2 3 4], [1 2]) };

/// f32 micro-kernels whose panels are f8E4M3FN.
pub(super) static F8: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(f8_tile, [1 2 3 4], [1 2]) };

/// f32 micro-kernels whose panels have 4 bits.
pub(super) static INT4: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(int4_tile, [1 2 3 4], [1 2]) };

/// i32 micro-kernels.
pub(super) static I32: KernelFamily =
    KernelFamily { rows: 4, lanes: 4, vectors: 2, bytes: 4, kernels: kernels!(i32_tile, [1 2 3 4], [1 2]) };

/// i64 micro-kernels.
pub(super) static I64: KernelFamily =
    KernelFamily { rows: 4, lanes: 2, vectors: 2, bytes: 8, kernels: kernels!(i64_tile, [1 2 3 4], [1 2]) };

/// f64 micro-kernels.
pub(super) static F64: KernelFamily =
    KernelFamily { rows: 4, lanes: 2, vectors: 2, bytes: 8, kernels: kernels!(f64_tile, [1 2 3 4], [1 2]) };

unsafe fn f32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[f32; 4], f32, MR, NV>(args) }
}

unsafe fn bf16_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[f32; 4], bf16, MR, NV>(args) }
}

unsafe fn i8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[f32; 4], i8, MR, NV>(args) }
}

unsafe fn f8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[f32; 4], Float8, MR, NV>(args) }
}

unsafe fn int4_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { group_tile::<[f32; 4], [u32; 4], MR, NV>(args) }
}

pub(super) unsafe fn whole_rows<P: PanelElement<[f32; 4]> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_rows::<[f32; 4], P>(args) }
}

pub(super) unsafe fn whole_columns<P: PanelElement<[f32; 4]> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_columns::<[f32; 4], P>(args) }
}

pub(super) unsafe fn widen_i8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<[f32; 4], i8>(from, steps, width, to) }
}

pub(super) unsafe fn widen_f8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<[f32; 4], Float8>(from, steps, width, to) }
}

pub(super) unsafe fn widen_int4(from: *const u8, steps: usize, unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_groups::<[f32; 4], [u32; 4]>(from, steps, unit, width, to) }
}

unsafe fn f64_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[f64; 2], f64, MR, NV>(args) }
}

unsafe fn i32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[i32; 4], i32, MR, NV>(args) }
}

unsafe fn i64_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<[i64; 2], i64, MR, NV>(args) }
}

macro_rules! vector {
    ($element:ty, $lanes:literal, |$left:ident, $right:ident, $sum:ident| $result:expr) => {
        // SAFETY: needs no instruction set extension.
        unsafe impl Vector for [$element; $lanes] {
            type Element = $element;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                [<$element>::default(); $lanes]
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: the pointer is valid.
                [unsafe { *from }; $lanes]
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the pointer is valid for that many.
                unsafe { from.cast::<Self>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $element, count: usize) -> Self {
                // SAFETY: the pointer is valid for `count`.
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
                // SAFETY: the pointer is valid for that many.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut $element, count: usize) {
                for (at, value) in self.into_iter().enumerate().take(count) {
                    // SAFETY: the pointer is valid for `count`.
                    unsafe { *to.add(at) = value };
                }
            }
        }
    };
}

vector!(f32, 4, |left, right, sum| left * right + sum);
vector!(f64, 2, |left, right, sum| left * right + sum);
vector!(i32, 4, |left, right, sum| left.wrapping_mul(right).wrapping_add(sum));
vector!(i64, 2, |left, right, sum| left.wrapping_mul(right).wrapping_add(sum));

// SAFETY: needs no instruction set extension.
unsafe impl PanelElement<[f32; 4]> for bf16 {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> [f32; 4] {
        // SAFETY: the pointer is valid for that many.
        array::from_fn(|at| unsafe { *from.add(at) }.to_f32())
    }
}

// SAFETY: needs no instruction set extension.
unsafe impl PanelElement<[f32; 4]> for i8 {
    #[inline(always)]
    unsafe fn load(from: *const i8) -> [f32; 4] {
        // SAFETY: the pointer is valid for that many.
        array::from_fn(|at| f32::from(unsafe { *from.add(at) }))
    }
}

// SAFETY: as above.
unsafe impl PanelElement<[f32; 4]> for Float8 {
    #[inline(always)]
    unsafe fn load(from: *const Float8) -> [f32; 4] {
        array::from_fn(|at| {
            // SAFETY: the pointer is valid for that many. As the vector kernels do it.
            let bits = u32::from(unsafe { *from.add(at) }.0);
            f32::from_bits((bits & 0x80) << 24 | (bits & 0x7f) << 20) * f32::from_bits(247 << 23)
        })
    }
}

// SAFETY: as above.
unsafe impl GroupCodes<[f32; 4]> for [u32; 4] {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the pointer is valid for that many.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn next(self) -> ([f32; 4], Self) {
        let value = |code: u32| ((code << 28).cast_signed() >> 28) as f32;
        (self.map(value), self.map(|code| code >> 4))
    }
}
