//! Vectors of 512 bits: AVX-512.

use std::arch::x86_64::*;

use super::{Lanes, Words as WordsTrait};

/// Wraps intrinsics. Values of these types exist only inside functions that have the target features.
macro_rules! with_features {
    ($body:expr) => {
        // SAFETY: the vector types are private to the dispatch, which uses them only where the features are.
        unsafe { $body }
    };
}

/// 64 signed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes(__m512i);

impl Lanes for Bytes {
    type Element = i8;
    type Array = [i8; 64];
    type Table = __m512i;
    const COUNT: usize = 64;
    #[inline(always)]
    fn splat(value: i8) -> Self {
        Self(with_features!(_mm512_set1_epi8(value)))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m512i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m512i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 64]
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm512_adds_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(with_features!(_mm512_subs_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(with_features!(_mm512_max_epi8(self.0, other.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm512_mask_blend_epi8(_mm512_cmpeq_epi8_mask(a.0, b.0), no.0, yes.0)))
    }
    #[inline(always)]
    fn table(scores: &[i8; 32]) -> Self::Table {
        let mut bytes = [0i8; 64];
        bytes[..32].copy_from_slice(scores);
        Self::from_array(bytes).0
    }
    #[inline(always)]
    fn lookup(table: Self::Table, codes: Self) -> Self {
        Self(with_features!(_mm512_permutexvar_epi8(codes.0, table)))
    }
}

/// 32 signed 16-bit integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shorts(__m512i);

impl Lanes for Shorts {
    type Element = i16;
    type Array = [i16; 32];
    type Table = __m512i;
    const COUNT: usize = 32;
    #[inline(always)]
    fn splat(value: i16) -> Self {
        Self(with_features!(_mm512_set1_epi16(value)))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m512i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m512i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 32]
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm512_adds_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(with_features!(_mm512_subs_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(with_features!(_mm512_max_epi16(self.0, other.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask(a.0, b.0), no.0, yes.0)))
    }
    #[inline(always)]
    fn table(scores: &[i8; 32]) -> Self::Table {
        Self::from_array(scores.map(i16::from)).0
    }
    #[inline(always)]
    fn lookup(table: Self::Table, codes: Self) -> Self {
        Self(with_features!(_mm512_permutexvar_epi16(codes.0, table)))
    }
}

/// 8 64-bit words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(__m512i);

impl WordsTrait for Words {
    type Array = [u64; 8];
    const COUNT: usize = 8;
    #[inline(always)]
    fn splat(value: u64) -> Self {
        Self(with_features!(_mm512_set1_epi64(value.cast_signed())))
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        Self(unsafe { std::mem::transmute::<Self::Array, __m512i>(values) })
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        // SAFETY: both are 64 bytes of which every pattern is a value.
        unsafe { std::mem::transmute::<__m512i, Self::Array>(self.0) }
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; 8]
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(with_features!(_mm512_and_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(with_features!(_mm512_or_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(with_features!(_mm512_xor_si512(self.0, other.0)))
    }
    #[inline(always)]
    fn not(self) -> Self {
        self.xor(Self::splat(u64::MAX))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(with_features!(_mm512_add_epi64(self.0, other.0)))
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        Self(with_features!(_mm512_add_epi64(self.0, self.0)))
    }
    #[inline(always)]
    fn top_bit(self) -> Self {
        Self(with_features!(_mm512_srli_epi64::<63>(self.0)))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(with_features!(_mm512_mask_blend_epi64(_mm512_cmpeq_epi64_mask(a.0, b.0), no.0, yes.0)))
    }
}
