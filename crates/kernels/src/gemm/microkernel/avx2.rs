//! AVX2 micro-kernels: 6 rows by 2 vectors use 12 accumulators, two panel vectors and one broadcast, 15 registers in
//! all.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256, __m256d, __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_castsi256_ps, _mm256_cvtepu16_epi32,
    _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_maskload_epi32, _mm256_maskload_pd, _mm256_maskload_ps, _mm256_maskstore_epi32,
    _mm256_maskstore_pd, _mm256_maskstore_ps, _mm256_mullo_epi32, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_slli_epi32,
    _mm256_storeu_pd, _mm256_storeu_ps, _mm256_storeu_si256,
};

use half::bf16;

use super::body::tile;
use super::family::{KernelArgs, KernelFamily, kernels};
use super::vector::{PanelElement, Vector, vector};

/// f32 micro-kernels.
pub(super) static F32: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(f32_tile, [1 2 3 4 5 6], [1 2]),
};

/// f32 micro-kernels whose panels are bf16.
pub(super) static BF16: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(bf16_tile, [1 2 3 4 5 6], [1 2]),
};

/// i32 micro-kernels.
pub(super) static I32: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(i32_tile, [1 2 3 4 5 6], [1 2]),
};

/// f64 micro-kernels.
pub(super) static F64: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 4,
    vectors: 2,
    bytes: 8,
    kernels: kernels!(f64_tile, [1 2 3 4 5 6], [1 2]),
};

#[target_feature(enable = "avx2,fma")]
unsafe fn f32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256, f32, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn bf16_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256, bf16, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn f64_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256d, f64, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn i32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256i, i32, MR, NV>(args) }
}

/// Source of masks: the mask of the first `count` of 8 elements of 32 bits starts at `8 - count`.
static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The mask of the first `words` elements of 32 bits.
#[inline(always)]
unsafe fn mask(words: usize) -> __m256i {
    // SAFETY: at most 8 words, so 8 entries follow the first one read; the instruction set is available.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - words).cast()) }
}

/// `left · right + sum`; there is no single instruction for it.
#[inline(always)]
unsafe fn multiply_add_epi32(left: __m256i, right: __m256i, sum: __m256i) -> __m256i {
    // SAFETY: the instruction set is available.
    unsafe { _mm256_add_epi32(_mm256_mullo_epi32(left, right), sum) }
}

#[inline(always)]
unsafe fn load_epi32(from: *const i32) -> __m256i {
    // SAFETY: the instruction set is available and the pointer is valid.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

#[inline(always)]
unsafe fn store_epi32(to: *mut i32, value: __m256i) {
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(to.cast(), value) }
}

vector!(
    __m256: [f32; 8],
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_fmadd_ps,
    _mm256_storeu_ps,
    |from, count| _mm256_maskload_ps(from, mask(count)),
    |to, count, value| _mm256_maskstore_ps(to, mask(count), value)
);
vector!(
    __m256d: [f64; 4],
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_fmadd_pd,
    _mm256_storeu_pd,
    |from, count| _mm256_maskload_pd(from, mask(2 * count)),
    |to, count, value| _mm256_maskstore_pd(to, mask(2 * count), value)
);
vector!(
    __m256i: [i32; 8],
    _mm256_setzero_si256,
    _mm256_set1_epi32,
    load_epi32,
    multiply_add_epi32,
    store_epi32,
    |from, count| _mm256_maskload_epi32(from, mask(count)),
    |to, count, value| _mm256_maskstore_epi32(to, mask(count), value)
);

// SAFETY: inlined into the functions of this file, which enable the instructions.
unsafe impl PanelElement<__m256> for bf16 {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> __m256 {
        // SAFETY: the instruction set is available and the pointer is valid. A bf16 is the upper half of its f32.
        unsafe {
            let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
        }
    }
}
