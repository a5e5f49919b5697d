//! AVX-512 micro-kernels: 8 rows by 3 vectors use 24 accumulators, three panel vectors and one broadcast, 28 registers
//! in all.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512, __m512d, __m512i, _mm_loadu_si128, _mm256_loadu_si256, _mm512_add_epi32, _mm512_and_si512,
    _mm512_castsi512_ps, _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps, _mm512_cvtepu16_epi32,
    _mm512_dpbusd_epi32, _mm512_fmadd_pd, _mm512_fmadd_ps, _mm512_loadu_epi32, _mm512_loadu_pd,
    _mm512_loadu_ps, _mm512_mask_storeu_epi32, _mm512_mask_storeu_pd, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_epi32, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps, _mm512_mul_ps,
    _mm512_mullo_epi32, _mm512_or_si512, _mm512_permutexvar_ps, _mm512_set1_epi32, _mm512_set1_pd,
    _mm512_set1_ps, _mm512_setzero_pd, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_srli_epi32, _mm512_storeu_epi32, _mm512_storeu_pd, _mm512_storeu_ps,
};

use half::bf16;

use super::body::tile;
use super::family::{KernelArgs, KernelFamily, kernels};
use super::few_rows::{self, FewRowsArgs};
use super::group_body::{GroupCodes, group_tile, widen_groups, widen_rows};
use super::vector::{Float8, PanelElement, Quad, Vector, vector};

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

/// f32 micro-kernels whose panels are i8.
pub(super) static I8: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(i8_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

/// f32 micro-kernels whose panels are f8E4M3FN.
pub(super) static F8: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(f8_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
};

/// f32 micro-kernels whose panels have 4 bits.
pub(super) static INT4: KernelFamily = KernelFamily {
    rows: 4,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(int4_tile, [1 2 3 4], [1 2 3]),
};

/// i32 micro-kernels of quads of bytes, on CPUs with VNNI.
pub(super) static QUADS: KernelFamily = KernelFamily {
    rows: 8,
    lanes: 16,
    vectors: 3,
    bytes: 4,
    kernels: kernels!(quad_tile, [1 2 3 4 5 6 7 8], [1 2 3]),
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
unsafe fn i8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512, i8, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn f8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512, Float8, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
unsafe fn int4_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { group_tile::<__m512, __m512i, MR, NV>(args) }
}

#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn quad_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m512i, Quad, MR, NV>(args) }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn whole_rows<P: PanelElement<__m512> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_rows::<__m512, P>(args) }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn whole_columns<P: PanelElement<__m512> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_columns::<__m512, P>(args) }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn widen_i8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<__m512, i8>(from, steps, width, to) }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn widen_f8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<__m512, Float8>(from, steps, width, to) }
}

#[target_feature(enable = "avx512f")]
pub(super) unsafe fn widen_int4(from: *const u8, steps: usize, unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_groups::<__m512, __m512i>(from, steps, unit, width, to) }
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

// SAFETY: as above.
unsafe impl PanelElement<__m512> for i8 {
    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m512 {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }
}

// SAFETY: as above.
unsafe impl PanelElement<__m512> for Float8 {
    #[inline(always)]
    unsafe fn load(from: *const Float8) -> __m512 {
        // SAFETY: as above. The bits of exponent and mantissa, moved to those of an f32, are the value divided by 2¹²⁰.
        unsafe {
            let bits = _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()));
            let sign = _mm512_and_si512(bits, _mm512_set1_epi32(i32::MIN));
            let size = _mm512_slli_epi32::<20>(_mm512_and_si512(bits, _mm512_set1_epi32(0x7f)));
            let scale = _mm512_set1_ps(f32::from_bits(247 << 23));
            _mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(sign, size)), scale)
        }
    }
}

// SAFETY: as above.
unsafe impl PanelElement<__m512i> for Quad {
    const LEAD: bool = true;

    #[inline(always)]
    unsafe fn load(from: *const Quad) -> __m512i {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm512_loadu_epi32(from.cast()) }
    }

    #[inline(always)]
    unsafe fn multiply_add(row: __m512i, panel: __m512i, sum: __m512i) -> __m512i {
        // SAFETY: the instruction set is available.
        unsafe { _mm512_dpbusd_epi32(sum, row, panel) }
    }

    #[inline(always)]
    unsafe fn begin(sum: __m512i, lead: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_add_epi32(sum, lead) }
    }
}

/// The values of a code of 4 bits.
static CODES: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0];

// SAFETY: as above.
unsafe impl GroupCodes<__m512> for __m512i {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm512_loadu_epi32(from.cast()) }
    }

    #[inline(always)]
    unsafe fn next(self) -> (__m512, Self) {
        // SAFETY: as above. The permutation reads the lower 4 bits of each index.
        unsafe {
            let values = _mm512_permutexvar_ps(self, _mm512_loadu_ps(CODES.as_ptr()));
            (values, _mm512_srli_epi32::<4>(self))
        }
    }
}
