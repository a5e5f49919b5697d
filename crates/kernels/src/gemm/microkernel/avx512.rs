//! AVX-512 micro-kernels: 8 rows by 3 vectors use 24 accumulators, three panel vectors and one broadcast, 28 registers
//! in all.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512, __m512d, __m512i, _mm512_add_epi32, _mm512_fmadd_pd, _mm512_fmadd_ps, _mm512_loadu_epi32,
    _mm512_loadu_pd, _mm512_loadu_ps, _mm512_mask_storeu_epi32, _mm512_mask_storeu_pd, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_epi32, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps, _mm512_mullo_epi32,
    _mm512_set1_epi32, _mm512_set1_pd, _mm512_set1_ps, _mm512_setzero_pd, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_storeu_epi32, _mm512_storeu_pd, _mm512_storeu_ps,
};

use super::body::tile;
use super::vector::Vector;
use super::{KernelArgs, KernelFamily, kernels};

/// f32 micro-kernels.
pub(super) static F32: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(f32_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

/// i32 micro-kernels.
pub(super) static I32: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(i32_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

/// f64 micro-kernels.
pub(super) static F64: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 8,
    vectors: 3,
    bytes: 8,
    kernels: kernels!(f64_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

#[target_feature(enable = "avx512f")]
unsafe fn f32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn f64_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512d, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn i32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512i, MR, NV>(args) }
}

/// `left · right + sum`; there is no single instruction for it.
#[inline(always)]
unsafe fn multiply_add_epi32(left: __m512i, right: __m512i, sum: __m512i) -> __m512i {
    // SAFETY: the instruction set is available.
    unsafe { _mm512_add_epi32(_mm512_mullo_epi32(left, right), sum) }
}

macro_rules! vector {
    ($vector:ty, $element:ty, $lanes:literal, $mask:ty, $zero:ident, $set1:ident, $load:ident, $load_part:ident,
     $fma:ident, $store:ident, $store_part:ident) => {
        // SAFETY: inlined into the functions above, which enable the instructions.
        unsafe impl Vector for $vector {
            type Element = $element;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the instruction set is available.
                unsafe { $zero() }
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: the instruction set is available and the pointer is valid.
                unsafe { $set1(*from) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: as above.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const $element, count: usize) -> Self {
                // SAFETY: as above; masked elements are not touched.
                unsafe { $load_part(((1 as $mask) << count) - 1, from) }
            }

            #[inline(always)]
            unsafe fn multiply_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: the instruction set is available.
                unsafe { $fma(self, other, sum) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the instruction set is available and the pointer is valid.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut $element, count: usize) {
                // SAFETY: as above; masked elements are not touched.
                unsafe { $store_part(to, ((1 as $mask) << count) - 1, self) }
            }
        }
    };
}

vector!(
    __m512,
    f32,
    16,
    u16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_fmadd_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps
);
vector!(
    __m512d,
    f64,
    8,
    u8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_fmadd_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd
);
vector!(
    __m512i,
    i32,
    16,
    u16,
    _mm512_setzero_si512,
    _mm512_set1_epi32,
    _mm512_loadu_epi32,
    _mm512_maskz_loadu_epi32,
    multiply_add_epi32,
    _mm512_storeu_epi32,
    _mm512_mask_storeu_epi32
);
