//! AVX-512 micro-kernels: 8 rows by 3 vectors use 24 accumulators, three panel vectors and one broadcast, 28 registers
//! in all.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512, __m512d, __m512i, _mm256_loadu_si256, _mm512_add_epi32, _mm512_castsi512_ps,
    _mm512_cvtepu16_epi32, _mm512_fmadd_pd, _mm512_fmadd_ps, _mm512_loadu_epi32, _mm512_loadu_pd,
    _mm512_loadu_ps, _mm512_mask_storeu_epi32, _mm512_mask_storeu_pd, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_epi32, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps, _mm512_mullo_epi32,
    _mm512_set1_epi32, _mm512_set1_pd, _mm512_set1_ps, _mm512_setzero_pd, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_epi32, _mm512_storeu_pd, _mm512_storeu_ps,
};

use half::bf16;

use super::body::tile;
use super::family::{KernelArgs, KernelFamily, kernels};
use super::vector::{PanelElement, Vector, vector};

/// f32 micro-kernels.
pub(super) static F32: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(f32_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

/// f32 micro-kernels whose panels are bf16.
pub(super) static BF16: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(bf16_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
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
    unsafe { tile::<__m512, f32, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn bf16_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512, bf16, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn f64_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512d, f64, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn i32_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512i, i32, MR, NV>(args) }
}

/// `left · right + sum`; there is no single instruction for it.
#[inline(always)]
unsafe fn multiply_add_epi32(left: __m512i, right: __m512i, sum: __m512i) -> __m512i {
    // SAFETY: the instruction set is available.
    unsafe { _mm512_add_epi32(_mm512_mullo_epi32(left, right), sum) }
}

vector!(
    __m512: [f32; 16],
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_fmadd_ps,
    _mm512_storeu_ps,
    |from, count| _mm512_maskz_loadu_ps((1 << count) - 1, from),
    |to, count, value| _mm512_mask_storeu_ps(to, (1 << count) - 1, value)
);
vector!(
    __m512d: [f64; 8],
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_fmadd_pd,
    _mm512_storeu_pd,
    |from, count| _mm512_maskz_loadu_pd((1 << count) - 1, from),
    |to, count, value| _mm512_mask_storeu_pd(to, (1 << count) - 1, value)
);
vector!(
    __m512i: [i32; 16],
    _mm512_setzero_si512,
    _mm512_set1_epi32,
    _mm512_loadu_epi32,
    multiply_add_epi32,
    _mm512_storeu_epi32,
    |from, count| _mm512_maskz_loadu_epi32((1 << count) - 1, from),
    |to, count, value| _mm512_mask_storeu_epi32(to, (1 << count) - 1, value)
);

// SAFETY: inlined into the functions of this file, which enable the instructions.
unsafe impl PanelElement<__m512> for bf16 {
    #[inline(always)]
    unsafe fn load(from: *const bf16) -> __m512 {
        // SAFETY: the instruction set is available and the pointer is valid. A bf16 is the upper half of its f32.
        unsafe {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
        }
    }
}
