//! Kernels for AVX2: 6 rows by 2 vectors are 12 sums, two vectors of the panel and one element in 15 registers.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256, __m256d, __m256i, _mm256_add_epi32, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_loadu_pd,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_maskload_epi32, _mm256_maskload_pd, _mm256_maskload_ps,
    _mm256_maskstore_epi32, _mm256_maskstore_pd, _mm256_maskstore_ps, _mm256_mullo_epi32, _mm256_set1_epi32,
    _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_setzero_si256,
    _mm256_storeu_pd, _mm256_storeu_ps, _mm256_storeu_si256,
};

use super::tile::tile;
use super::vector::Vector;
use super::{Call, Family, kernels};

/// Products of f32.
pub(super) static F32: Family =
    Family { rows: 6, lanes: 8, vectors: 2, bytes: 4, kernels: kernels!(f32_tile, [1 2 3 4 5 6], [1 2]) };

/// Products of i32.
pub(super) static I32: Family =
    Family { rows: 6, lanes: 8, vectors: 2, bytes: 4, kernels: kernels!(i32_tile, [1 2 3 4 5 6], [1 2]) };

/// Products of f64.
pub(super) static F64: Family =
    Family { rows: 6, lanes: 4, vectors: 2, bytes: 8, kernels: kernels!(f64_tile, [1 2 3 4 5 6], [1 2]) };

#[target_feature(enable = "avx2,fma")]
unsafe fn f32_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<__m256, MR, NV>(call) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn f64_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<__m256d, MR, NV>(call) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn i32_tile<const MR: usize, const NV: usize>(call: &Call) {
    // SAFETY: as the caller promises.
    unsafe { tile::<__m256i, MR, NV>(call) }
}

/// All bits of the first elements, none of the rest: a mask of `count` of 8 elements of 32 bits begins at `8 - count`.
static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A mask of so many elements of 32 bits.
#[inline(always)]
unsafe fn mask(words: usize) -> __m256i {
    // SAFETY: at most 8 words, so 8 entries follow the first one read; the instructions exist.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - words).cast()) }
}

/// `left · right + sum`, for which there is no single instruction.
#[inline(always)]
unsafe fn multiply_add_epi32(left: __m256i, right: __m256i, sum: __m256i) -> __m256i {
    // SAFETY: the instructions exist.
    unsafe { _mm256_add_epi32(_mm256_mullo_epi32(left, right), sum) }
}

#[inline(always)]
unsafe fn load_epi32(from: *const i32) -> __m256i {
    // SAFETY: the instructions exist and the address is good.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

#[inline(always)]
unsafe fn store_epi32(to: *mut i32, value: __m256i) {
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(to.cast(), value) }
}

macro_rules! vector {
    ($vector:ty, $element:ty, $lanes:literal, $zero:ident, $set1:ident, $load:ident, $load_part:ident,
     $fma:ident, $store:ident, $store_part:ident) => {
        // SAFETY: inlined into the functions above, which enable the instructions.
        unsafe impl Vector for $vector {
            type Element = $element;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the instructions exist.
                unsafe { $zero() }
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: the instructions exist and the address is good.
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
                unsafe { $load_part(from, mask(count * 8 / $lanes)) }
            }

            #[inline(always)]
            unsafe fn multiply_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: the instructions exist.
                unsafe { $fma(self, other, sum) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the instructions exist and the address is good.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut $element, count: usize) {
                // SAFETY: as above; masked elements are not touched.
                unsafe { $store_part(to, mask(count * 8 / $lanes), self) }
            }
        }
    };
}

vector!(
    __m256,
    f32,
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_maskload_ps,
    _mm256_fmadd_ps,
    _mm256_storeu_ps,
    _mm256_maskstore_ps
);
vector!(
    __m256d,
    f64,
    4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_maskload_pd,
    _mm256_fmadd_pd,
    _mm256_storeu_pd,
    _mm256_maskstore_pd
);
vector!(
    __m256i,
    i32,
    8,
    _mm256_setzero_si256,
    _mm256_set1_epi32,
    load_epi32,
    _mm256_maskload_epi32,
    multiply_add_epi32,
    store_epi32,
    _mm256_maskstore_epi32
);
