//! Vectors of AVX-512.

use std::arch::x86_64::*;

use super::lanes::{Lanes, Pick, Table};

/// Sixteen f32 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

/// Functions that are one expression of intrinsics.
macro_rules! with_intrinsics {
    ($(fn $name:ident $(<const $by:ident: u32>)? ($($parameter:ident),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name $(<const $by: u32>)? ($($parameter: Self),*) -> with_intrinsics!(@result $($result)?) {
            // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512.
            unsafe { $body }
        }
    )*};
    (@result $result:ty) => { $result };
    (@result) => { Self };
}

#[inline(always)]
fn part(count: usize) -> __mmask16 {
    (1u16 << count) - 1
}

#[inline(always)]
fn bits(lanes: Avx512) -> __m512i {
    // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512.
    unsafe { _mm512_castps_si512(lanes.0) }
}

#[inline(always)]
fn of_bits(bits: __m512i) -> Avx512 {
    // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512.
    unsafe { Avx512(_mm512_castsi512_ps(bits)) }
}

impl Lanes for Avx512 {
    const COUNT: usize = 16;
    const ROUGH_IS_GOOD: bool = true;
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Self(_mm512_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        // SAFETY: guaranteed by the caller; lanes beyond the mask are not touched.
        unsafe { Self(_mm512_maskz_loadu_ps(part(count), from)) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        // SAFETY: guaranteed by the caller; lanes beyond the mask are not touched.
        unsafe { _mm512_mask_storeu_ps(to, part(count), self.0) }
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: called in code for CPUs that have AVX-512.
        unsafe { Self(_mm512_set1_ps(value)) }
    }

    with_intrinsics! {
        fn add(self, other) = Self(_mm512_add_ps(self.0, other.0));
        fn sub(self, other) = Self(_mm512_sub_ps(self.0, other.0));
        fn mul(self, other) = Self(_mm512_mul_ps(self.0, other.0));
        fn div(self, other) = Self(_mm512_div_ps(self.0, other.0));
        fn mul_add(self, factor, term) = Self(_mm512_fmadd_ps(self.0, factor.0, term.0));
        fn neg_mul_add(self, factor, term) = Self(_mm512_fnmadd_ps(self.0, factor.0, term.0));
        fn max(self, other) = Self(_mm512_max_ps(self.0, other.0));
        fn min(self, other) = Self(_mm512_min_ps(self.0, other.0));
        fn sqrt(self) = Self(_mm512_sqrt_ps(self.0));
        fn round(self) = Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0));
        fn floor(self) = Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0));
        fn ceil(self) = Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self.0));
        fn trunc(self) = Self(_mm512_roundscale_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0));
        fn rough_reciprocal(self) = Self(_mm512_rcp14_ps(self.0));
        fn and(self, other) = Self(_mm512_and_ps(self.0, other.0));
        fn or(self, other) = Self(_mm512_or_ps(self.0, other.0));
        fn xor(self, other) = Self(_mm512_xor_ps(self.0, other.0));
        fn add_bits(self, other) = of_bits(_mm512_add_epi32(bits(self), bits(other)));
        fn sub_bits(self, other) = of_bits(_mm512_sub_epi32(bits(self), bits(other)));
        fn shift_up<const BY: u32>(self) = of_bits(_mm512_slli_epi32::<BY>(bits(self)));
        fn shift_down<const BY: u32>(self) = of_bits(_mm512_srai_epi32::<BY>(bits(self)));
        fn float_to_int(self) = of_bits(_mm512_cvtps_epi32(self.0));
        fn int_to_float(self) = Self(_mm512_cvtepi32_ps(bits(self)));
        fn less(self, other) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0);
        fn not_less(self, other) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(self.0, other.0);
        fn equal(self, other) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0);
        fn differs(self, other) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(self.0, other.0);
        fn unordered(self, other) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, other.0);
        fn scale(self, exponent) = Self(_mm512_scalef_ps(self.0, exponent.0));
    }

    #[inline(always)]
    fn scale_where(self, mask: __mmask16, exponent: Self) -> Self {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512.
        unsafe { Self(_mm512_maskz_scalef_ps(mask, self.0, exponent.0)) }
    }

    #[inline(always)]
    fn lookup(self, table: &'static Table) -> Self {
        // SAFETY: a table has as many values.
        unsafe { self.pick(table.0.as_ptr()) }
    }

    #[inline(always)]
    fn select(mask: __mmask16, yes: Self, no: Self) -> Self {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512.
        unsafe { Self(_mm512_mask_blend_ps(mask, no.0, yes.0)) }
    }

    #[inline(always)]
    fn any(mask: __mmask16) -> bool {
        mask != 0
    }
}

impl Pick for Avx512 {
    #[inline(always)]
    unsafe fn pick(self, from: *const f32) -> Self {
        // SAFETY: vectors of this type are only made in code for CPUs that have AVX-512; the rest is guaranteed by the caller.
        unsafe { Self(_mm512_permutexvar_ps(bits(self), _mm512_loadu_ps(from))) }
    }
}
