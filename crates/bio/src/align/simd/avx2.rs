//! Vectors of 256 bits: AVX2.

use std::arch::x86_64::*;

use super::{Lanes, Words as WordsTrait};

/// Wraps intrinsics. Values of these types exist only inside functions that have the target features.
macro_rules! with_features {
    ($body:expr) => {
        // SAFETY: the vector types are private to the dispatch, which uses them only where the features are.
        unsafe { $body }
    };
}

/// 32 signed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes(__m256i);

impl Lanes for Bytes {
    type Element = i8;
    type Array = [i8; 32];
    type Table = [__m256i; 2];
    const COUNT: usize = 32;
    #[inline(always)]
    fn splat(value: i8) -> Self {
        Self(with_features!(_mm256_set1_epi8(value)))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m256i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m256i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 32]
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm256_adds_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(with_features!(_mm256_subs_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(with_features!(_mm256_max_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm256_blendv_epi8(no.0, yes.0, _mm256_cmpeq_epi8(a.0, b.0))))
    }
    #[inline(always)]
    fn table(scores: &[i8; 32]) -> Self::Table {
        let half = |from: usize| {
            let half: [i8; 16] = std::array::from_fn(|index| scores[from + index]);
            // SAFETY: both are 16 bytes of which every pattern is a value; and as above.
            with_features!(_mm256_broadcastsi128_si256(std::mem::transmute::<[i8; 16], __m128i>(half)))
        };
        [half(0), half(16)]
    }
    #[inline(always)]
    fn lookup(table: Self::Table, codes: Self) -> Self {
        Self(with_features!({
            let low = _mm256_shuffle_epi8(table[0], codes.0);
            let high = _mm256_shuffle_epi8(table[1], codes.0);
            // Bit 4 of the code chooses the half; the blend looks at bit 7.
            _mm256_blendv_epi8(low, high, _mm256_slli_epi16::<3>(codes.0))
        }))
    }
}

/// 16 signed 16-bit integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shorts(__m256i);

impl Lanes for Shorts {
    type Element = i16;
    type Array = [i16; 16];
    type Table = [__m256i; 2];
    const COUNT: usize = 16;
    #[inline(always)]
    fn splat(value: i16) -> Self {
        Self(with_features!(_mm256_set1_epi16(value)))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m256i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m256i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 16]
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm256_adds_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(with_features!(_mm256_subs_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(with_features!(_mm256_max_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm256_blendv_epi8(no.0, yes.0, _mm256_cmpeq_epi16(a.0, b.0))))
    }
    #[inline(always)]
    fn table(scores: &[i8; 32]) -> Self::Table {
        let half = |from: usize| {
            let half: [i8; 16] = std::array::from_fn(|index| scores[from + index]);
            // SAFETY: both are 16 bytes of which every pattern is a value; and as above.
            with_features!(_mm256_broadcastsi128_si256(std::mem::transmute::<[i8; 16], __m128i>(half)))
        };
        [half(0), half(16)]
    }
    #[inline(always)]
    fn lookup(table: Self::Table, codes: Self) -> Self {
        Self(with_features!({
            let low = _mm256_shuffle_epi8(table[0], codes.0);
            let high = _mm256_shuffle_epi8(table[1], codes.0);
            let bytes = _mm256_blendv_epi8(low, high, _mm256_slli_epi16::<3>(codes.0));
            // The low byte of each lane is the score; shifting up and down extends its sign.
            _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(bytes))
        }))
    }
}

/// 4 64-bit words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(__m256i);

impl WordsTrait for Words {
    type Array = [u64; 4];
    const COUNT: usize = 4;
    #[inline(always)]
    fn splat(value: u64) -> Self {
        Self(with_features!(_mm256_set1_epi64x(value.cast_signed())))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m256i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 32 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m256i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 4]
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(with_features!(_mm256_and_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(with_features!(_mm256_or_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(with_features!(_mm256_xor_si256(self.0, other.0)))
    }
    #[inline(always)]
    fn not(self) -> Self {
        self.xor(Self::splat(u64::MAX))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm256_add_epi64(self.0, other.0)))
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        Self(with_features!(_mm256_add_epi64(self.0, self.0)))
    }
    #[inline(always)]
    fn top_bit(self) -> Self {
        Self(with_features!(_mm256_srli_epi64::<63>(self.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm256_blendv_epi8(no.0, yes.0, _mm256_cmpeq_epi64(a.0, b.0))))
    }
}
