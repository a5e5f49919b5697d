//! Vectors of AVX2 with fused multiply-add.

use std::arch::x86_64::*;

use super::lanes::{Lanes, Pick, Table};
use super::scale;

/// Eight f32 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256);

/// Functions that are one expression of intrinsics.
macro_rules! with_intrinsics {
    ($(fn $name:ident $(<const $by:ident: u32>)? ($($parameter:ident),*) = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name $(<const $by: u32>)? ($($parameter: Self),*) -> Self {
            // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
            unsafe { $body }
        }
    )*};
}

#[inline(always)]
fn part(count: usize) -> __m256i {
    const LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: eight values are left for any count of up to eight.
    unsafe { _mm256_loadu_si256(LANES.as_ptr().add(8 - count).cast()) }
}

#[inline(always)]
fn bits(lanes: Avx2) -> __m256i {
    // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
    unsafe { _mm256_castps_si256(lanes.0) }
}

#[inline(always)]
fn of_bits(bits: __m256i) -> Avx2 {
    // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
    unsafe { Avx2(_mm256_castsi256_ps(bits)) }
}

impl Lanes for Avx2 {
    const COUNT: usize = 8;
    /// All bits of a lane are set or none.
    type Mask = Self;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Self(_mm256_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        // SAFETY: guaranteed by the caller; lanes beyond the mask are not touched.
        unsafe { Self(_mm256_maskload_ps(from, part(count))) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        // SAFETY: guaranteed by the caller; lanes beyond the mask are not touched.
        unsafe { _mm256_maskstore_ps(to, part(count), self.0) }
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: called in code for CPUs that have AVX2.
        unsafe { Self(_mm256_set1_ps(value)) }
    }

    with_intrinsics! {
        fn add(self, other) = Self(_mm256_add_ps(self.0, other.0));
        fn sub(self, other) = Self(_mm256_sub_ps(self.0, other.0));
        fn mul(self, other) = Self(_mm256_mul_ps(self.0, other.0));
        fn div(self, other) = Self(_mm256_div_ps(self.0, other.0));
        fn mul_add(self, factor, term) = Self(_mm256_fmadd_ps(self.0, factor.0, term.0));
        fn neg_mul_add(self, factor, term) = Self(_mm256_fnmadd_ps(self.0, factor.0, term.0));
        fn max(self, other) = Self(_mm256_max_ps(self.0, other.0));
        fn min(self, other) = Self(_mm256_min_ps(self.0, other.0));
        fn sqrt(self) = Self(_mm256_sqrt_ps(self.0));
        fn round(self) = Self(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0));
        fn floor(self) = Self(_mm256_round_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0));
        fn ceil(self) = Self(_mm256_round_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self.0));
        fn trunc(self) = Self(_mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0));
        fn rough_reciprocal(self) = Self(_mm256_rcp_ps(self.0));
        fn and(self, other) = Self(_mm256_and_ps(self.0, other.0));
        fn or(self, other) = Self(_mm256_or_ps(self.0, other.0));
        fn xor(self, other) = Self(_mm256_xor_ps(self.0, other.0));
        fn add_bits(self, other) = of_bits(_mm256_add_epi32(bits(self), bits(other)));
        fn sub_bits(self, other) = of_bits(_mm256_sub_epi32(bits(self), bits(other)));
        fn float_to_int(self) = of_bits(_mm256_cvtps_epi32(self.0));
        fn int_to_float(self) = Self(_mm256_cvtepi32_ps(bits(self)));
        fn less(self, other) = Self(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0));
        fn not_less(self, other) = Self(_mm256_cmp_ps::<_CMP_NLT_UQ>(self.0, other.0));
        fn equal(self, other) = Self(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0));
        fn differs(self, other) = Self(_mm256_cmp_ps::<_CMP_NEQ_UQ>(self.0, other.0));
        fn unordered(self, other) = Self(_mm256_cmp_ps::<_CMP_UNORD_Q>(self.0, other.0));
        fn select(mask, yes, no) = Self(_mm256_blendv_ps(no.0, yes.0, mask.0));
    }

    #[inline(always)]
    fn shift_up<const BY: u32>(self) -> Self {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
        unsafe { of_bits(_mm256_sll_epi32(bits(self), _mm_cvtsi32_si128(BY as i32))) }
    }

    #[inline(always)]
    fn shift_down<const BY: u32>(self) -> Self {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
        unsafe { of_bits(_mm256_sra_epi32(bits(self), _mm_cvtsi32_si128(BY as i32))) }
    }

    #[inline(always)]
    fn lookup(self, table: &'static Table) -> Self {
        // SAFETY: a table has as many values.
        unsafe { self.pick(table.0.as_ptr()) }
    }

    #[inline(always)]
    fn any(mask: Self) -> bool {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX2.
        unsafe { _mm256_movemask_ps(mask.0) != 0 }
    }

    #[inline(always)]
    fn scale(self, exponent: Self) -> Self {
        scale::scale(self, exponent)
    }
}

impl Pick for Avx2 {
    #[inline(always)]
    unsafe fn pick(self, from: *const f32) -> Self {
        let half = |from: *const f32| {
            // SAFETY: vectors of this type are only made in code for CPUs that have AVX2; half of the values are a vector.
            unsafe { Self(_mm256_permutevar8x32_ps(_mm256_loadu_ps(from), bits(self))) }
        };
        // The fourth bit, moved to the top, says which half.
        Self::select(self.shift_up::<28>(), half(from.wrapping_add(Self::COUNT)), half(from))
    }
}
