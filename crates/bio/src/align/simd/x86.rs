//! Vectors of 256 bits (AVX2) and of 512 bits (AVX-512), each implementation written once.

use std::arch::x86_64::*;

use super::{Lanes, Words};

/// Wraps intrinsics. Values of these types exist only inside functions that have the target features.
macro_rules! with_features {
    ($body:expr) => {
        // SAFETY: the vector types are private to the dispatch, which uses them only where the features are.
        unsafe { $body }
    };
}

/// A register as an array and back.
macro_rules! as_array {
    ($register:ty, $element:ty, $count:expr) => {
        type Array = [$element; $count];
        const COUNT: usize = $count;
        #[inline(always)]
        fn from_array(values: Self::Array) -> Self {
            // SAFETY: both have one size, and every pattern of bits is a value of both.
            Self(unsafe { std::mem::transmute::<Self::Array, $register>(values) })
        }
        #[inline(always)]
        fn to_array(self) -> Self::Array {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<$register, Self::Array>(self.0) }
        }
        #[inline(always)]
        fn zeros() -> Self::Array {
            [0; $count]
        }
    };
}

/// A vector of small integers from the intrinsics of its instruction set.
macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident($register:ty), [$element:ty; $count:expr], $words:ty,
     splat: $splat:ident, add: $add:ident, sub: $sub:ident, wrapping_add: $wrapping_add:ident,
     wrapping_sub: $wrapping_sub:ident, sub_to_zero: $sub_to_zero:ident, max: $max:ident,
     if_equal: $if_equal:expr, table: $table:ty = $make_table:expr, lookup: $lookup:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $name($register);

        impl Lanes for $name {
            type Element = $element;
            type Table = $table;
            type Words = $words;
            as_array!($register, $element, $count);
            #[inline(always)]
            fn splat(value: $element) -> Self {
                Self(with_features!($splat(value)))
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(with_features!($add(self.0, other.0)))
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(with_features!($sub(self.0, other.0)))
            }
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                Self(with_features!($wrapping_add(self.0, other.0)))
            }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                Self(with_features!($wrapping_sub(self.0, other.0)))
            }
            #[inline(always)]
            fn sub_to_zero(self, other: Self) -> Self {
                Self(with_features!($sub_to_zero(self.0, other.0)))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(with_features!($max(self.0, other.0)))
            }
            #[inline(always)]
            fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
                Self($if_equal(a.0, b.0, yes.0, no.0))
            }
            #[inline(always)]
            fn table(scores: &[i8; 32]) -> Self::Table {
                $make_table(scores)
            }
            #[inline(always)]
            fn lookup(table: Self::Table, codes: Self) -> Self {
                Self($lookup(table, codes.0))
            }
        }
    };
}

/// A vector of 64-bit words from the intrinsics of its instruction set.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident($register:ty), $count:expr,
     splat: $splat:ident, and: $and:ident, or: $or:ident, xor: $xor:ident, add: $add:ident, shift_down: $shift:ident,
     if_equal: $if_equal:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $name($register);

        impl Words for $name {
            as_array!($register, u64, $count);
            #[inline(always)]
            fn splat(value: u64) -> Self {
                Self(with_features!($splat(value.cast_signed())))
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                Self(with_features!($and(self.0, other.0)))
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                Self(with_features!($or(self.0, other.0)))
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                Self(with_features!($xor(self.0, other.0)))
            }
            #[inline(always)]
            fn not(self) -> Self {
                self.xor(Self::splat(u64::MAX))
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(with_features!($add(self.0, other.0)))
            }
            #[inline(always)]
            fn shift_up(self) -> Self {
                self.add(self)
            }
            #[inline(always)]
            fn top_bit(self) -> Self {
                Self(with_features!($shift::<63>(self.0)))
            }
            #[inline(always)]
            fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
                Self($if_equal(a.0, b.0, yes.0, no.0))
            }
        }
    };
}

/// The scores of 32 codes as two halves, each in both halves of a register.
#[inline(always)]
fn halves(scores: &[i8; 32]) -> [__m256i; 2] {
    [0, 16].map(|from: usize| {
        let half: [i8; 16] = std::array::from_fn(|index| scores[from + index]);
        // SAFETY: both are 16 bytes of which every pattern is a value; and as for `with_features`.
        unsafe { _mm256_broadcastsi128_si256(std::mem::transmute::<[i8; 16], __m128i>(half)) }
    })
}

/// The score of each byte's code.
#[inline(always)]
fn lookup_bytes(table: [__m256i; 2], codes: __m256i) -> __m256i {
    with_features!({
        let low = _mm256_shuffle_epi8(table[0], codes);
        let high = _mm256_shuffle_epi8(table[1], codes);
        // Bit 4 of the code chooses the half; the blend looks at bit 7.
        _mm256_blendv_epi8(low, high, _mm256_slli_epi16::<3>(codes))
    })
}

/// The scores of 32 codes as two halves, each a quarter of a register.
#[inline(always)]
fn quarters(scores: &[i8; 32]) -> [__m128i; 2] {
    // SAFETY: both are 32 bytes of which every pattern is a value.
    unsafe { std::mem::transmute::<[i8; 32], [__m128i; 2]>(*scores) }
}

/// The score of each byte's code. Without the byte permutations of AVX512-VBMI, so that it is for every AVX-512 server; the
/// mask is the same for a whole column and computed once.
#[inline(always)]
fn lookup_bytes_of_quarters(table: [__m128i; 2], codes: __m512i) -> __m512i {
    with_features!({
        let low = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table[0]), codes);
        let upper = _mm512_test_epi8_mask(codes, _mm512_set1_epi8(16));
        _mm512_mask_shuffle_epi8(low, upper, _mm512_broadcast_i32x4(table[1]), codes)
    })
}

lanes!(
    /// 32 signed bytes, AVX2.
    Bytes2(__m256i), [i8; 32], Words2,
    splat: _mm256_set1_epi8, add: _mm256_adds_epi8, sub: _mm256_subs_epi8,
    wrapping_add: _mm256_add_epi8, wrapping_sub: _mm256_sub_epi8, sub_to_zero: _mm256_subs_epu8,
    max: _mm256_max_epi8,
    if_equal: |a, b, yes, no| with_features!(_mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi8(a, b))),
    table: [__m256i; 2] = halves, lookup: lookup_bytes);
lanes!(
    /// 16 signed 16-bit integers, AVX2.
    Shorts2(__m256i), [i16; 16], Words2,
    splat: _mm256_set1_epi16, add: _mm256_adds_epi16, sub: _mm256_subs_epi16,
    wrapping_add: _mm256_add_epi16, wrapping_sub: _mm256_sub_epi16, sub_to_zero: _mm256_subs_epu16,
    max: _mm256_max_epi16,
    if_equal: |a, b, yes, no| with_features!(_mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi16(a, b))),
    table: [__m256i; 2] = halves,
    // The low byte of each lane is the score; shifting up and down extends its sign.
    lookup: |table, codes| with_features!(_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(lookup_bytes(table, codes)))));
words!(
    /// 4 words, AVX2.
    Words2(__m256i), 4,
    splat: _mm256_set1_epi64x, and: _mm256_and_si256, or: _mm256_or_si256, xor: _mm256_xor_si256,
    add: _mm256_add_epi64, shift_down: _mm256_srli_epi64,
    if_equal: |a, b, yes, no| with_features!(_mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi64(a, b))));

lanes!(
    /// 64 signed bytes, AVX-512.
    Bytes5(__m512i), [i8; 64], Words5,
    splat: _mm512_set1_epi8, add: _mm512_adds_epi8, sub: _mm512_subs_epi8,
    wrapping_add: _mm512_add_epi8, wrapping_sub: _mm512_sub_epi8, sub_to_zero: _mm512_subs_epu8,
    max: _mm512_max_epi8,
    if_equal: |a, b, yes, no| with_features!(_mm512_mask_blend_epi8(_mm512_cmpeq_epi8_mask(a, b), no, yes)),
    table: [__m128i; 2] = quarters, lookup: lookup_bytes_of_quarters);
lanes!(
    /// 32 signed 16-bit integers, AVX-512.
    Shorts5(__m512i), [i16; 32], Words5,
    splat: _mm512_set1_epi16, add: _mm512_adds_epi16, sub: _mm512_subs_epi16,
    wrapping_add: _mm512_add_epi16, wrapping_sub: _mm512_sub_epi16, sub_to_zero: _mm512_subs_epu16,
    max: _mm512_max_epi16,
    if_equal: |a, b, yes, no| with_features!(_mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask(a, b), no, yes)),
    table: __m512i = |scores: &[i8; 32]| Self::from_array(scores.map(i16::from)).0,
    lookup: |table, codes| with_features!(_mm512_permutexvar_epi16(codes, table)));
words!(
    /// 8 words, AVX-512.
    Words5(__m512i), 8,
    splat: _mm512_set1_epi64, and: _mm512_and_si512, or: _mm512_or_si512, xor: _mm512_xor_si512,
    add: _mm512_add_epi64, shift_down: _mm512_srli_epi64,
    if_equal: |a, b, yes, no| with_features!(_mm512_mask_blend_epi64(_mm512_cmpeq_epi64_mask(a, b), no, yes)));
