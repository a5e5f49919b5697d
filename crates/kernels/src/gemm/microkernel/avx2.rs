//! AVX2 micro-kernels: 6 rows by 2 vectors use 12 accumulators, two panel vectors and one broadcast, 15 registers in
//! all.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256, __m256d, __m256i, _mm_loadl_epi64, _mm_loadu_si128, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32, _mm256_fmadd_pd,
    _mm256_fmadd_ps, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maskload_epi32, _mm256_maskload_pd, _mm256_maskload_ps, _mm256_maskstore_epi32,
    _mm256_maskstore_pd, _mm256_maskstore_ps, _mm256_mul_ps, _mm256_mullo_epi32, _mm256_or_si256,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_pd,
    _mm256_setzero_ps, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_slli_epi32, _mm256_srai_epi16,
    _mm256_srai_epi32, _mm256_srli_epi16, _mm256_srli_epi32, _mm256_storeu_pd, _mm256_storeu_ps,
    _mm256_storeu_si256,
};

use half::bf16;

use super::body::tile;
use super::family::{KernelArgs, KernelFamily, kernels};
use super::few_rows::{self, FewRowsArgs};
use super::group_body::{GroupCodes, group_tile, widen_groups, widen_rows};
use super::vector::{Float8, PanelElement, Quad, Vector, vector};

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

/// f32 micro-kernels whose panels are i8.
pub(super) static I8: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(i8_tile, [1 2 3 4 5 6], [1 2]),
};

/// f32 micro-kernels whose panels are f8E4M3FN.
pub(super) static F8: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(f8_tile, [1 2 3 4 5 6], [1 2]),
};

/// i32 micro-kernels of quads of bytes.
pub(super) static QUADS: KernelFamily = KernelFamily {
    rows: 6,
    lanes: 8,
    vectors: 2,
    bytes: 4,
    kernels: kernels!(quad_tile, [1 2 3 4 5 6], [1 2]),
};

/// f32 micro-kernels whose panels have 4 bits.
pub(super) static INT4: KernelFamily =
    KernelFamily { rows: 4, lanes: 8, vectors: 2, bytes: 4, kernels: kernels!(int4_tile, [1 2 3 4], [1 2]) };

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
unsafe fn i8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256, i8, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn f8_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256, Float8, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn int4_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { group_tile::<__m256, __m256i, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn quad_tile<const MR: usize, const NV: usize>(args: &KernelArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { tile::<__m256i, Quad, MR, NV>(args) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn whole_rows<P: PanelElement<__m256> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_rows::<__m256, P>(args) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn whole_columns<P: PanelElement<__m256> + Into<f32>>(args: &FewRowsArgs) {
    // SAFETY: guaranteed by the caller.
    unsafe { few_rows::whole_columns::<__m256, P>(args) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn widen_i8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<__m256, i8>(from, steps, width, to) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn widen_f8(from: *const u8, steps: usize, _unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_rows::<__m256, Float8>(from, steps, width, to) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn widen_int4(from: *const u8, steps: usize, unit: usize, width: usize, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe { widen_groups::<__m256, __m256i>(from, steps, unit, width, to) }
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

// SAFETY: as above.
unsafe impl PanelElement<__m256> for i8 {
    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m256 {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
    }
}

// SAFETY: as above.
unsafe impl PanelElement<__m256> for Float8 {
    #[inline(always)]
    unsafe fn load(from: *const Float8) -> __m256 {
        // SAFETY: as above. The bits of exponent and mantissa, moved to those of an f32, are the value divided by 2¹²⁰.
        unsafe {
            let bits = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()));
            let sign = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MIN));
            let size = _mm256_slli_epi32::<20>(_mm256_and_si256(bits, _mm256_set1_epi32(0x7f)));
            let scale = _mm256_set1_ps(f32::from_bits(247 << 23));
            _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(sign, size)), scale)
        }
    }
}

// SAFETY: as above.
unsafe impl PanelElement<__m256i> for Quad {
    const LEAD: bool = true;

    #[inline(always)]
    unsafe fn load(from: *const Quad) -> __m256i {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    /// Even and odd bytes as 16 bits each: exact, where one instruction for bytes would saturate.
    #[inline(always)]
    unsafe fn multiply_add(row: __m256i, panel: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the instruction set is available.
        unsafe {
            let even = _mm256_madd_epi16(
                _mm256_and_si256(row, _mm256_set1_epi16(0xff)),
                _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(panel)),
            );
            let odd = _mm256_madd_epi16(_mm256_srli_epi16::<8>(row), _mm256_srai_epi16::<8>(panel));
            _mm256_add_epi32(sum, _mm256_add_epi32(even, odd))
        }
    }

    #[inline(always)]
    unsafe fn begin(sum: __m256i, lead: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_add_epi32(sum, lead) }
    }
}

// SAFETY: as above.
unsafe impl GroupCodes<__m256> for __m256i {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the instruction set is available and the pointer is valid.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn next(self) -> (__m256, Self) {
        // SAFETY: as above.
        unsafe {
            let code = _mm256_srai_epi32::<28>(_mm256_slli_epi32::<28>(self));
            (_mm256_cvtepi32_ps(code), _mm256_srli_epi32::<4>(self))
        }
    }
}
