//! Vectors as arrays, for machines without the vector instructions that are known here.

use super::{Lanes, Words as WordsTrait};

/// Lanes of [`Bytes`].
const BYTES: usize = 16;
/// Lanes of [`Shorts`].
const SHORTS: usize = 8;
/// Words of [`Words`].
const WORDS: usize = 4;

macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident, $element:ty, $count:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(super) struct $name([$element; $count]);

        impl $name {
            #[inline(always)]
            fn zip(self, other: Self, f: impl Fn($element, $element) -> $element) -> Self {
                Self(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
            }
        }

        impl Lanes for $name {
            type Element = $element;
            type Array = [$element; $count];
            type Table = [i8; 32];
            type Words = Words;
            const COUNT: usize = $count;
            #[inline(always)]
            fn splat(value: $element) -> Self {
                Self([value; $count])
            }
            #[inline(always)]
            fn from_array(values: Self::Array) -> Self {
                Self(values)
            }
            #[inline(always)]
            fn to_array(self) -> Self::Array {
                self.0
            }
            #[inline(always)]
            fn zeros() -> Self::Array {
                [0; $count]
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.zip(other, <$element>::saturating_add)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.zip(other, <$element>::saturating_sub)
            }
            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.zip(other, <$element>::wrapping_add)
            }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                self.zip(other, <$element>::wrapping_sub)
            }
            #[inline(always)]
            fn sub_to_zero(self, other: Self) -> Self {
                self.zip(other, |a, b| a.saturating_sub(b).max(0))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.zip(other, Ord::max)
            }
            #[inline(always)]
            fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
                Self(std::array::from_fn(|lane| if a.0[lane] == b.0[lane] { yes.0[lane] } else { no.0[lane] }))
            }
            #[inline(always)]
            fn table(scores: &[i8; 32]) -> Self::Table {
                *scores
            }
            #[inline(always)]
            fn lookup(table: Self::Table, codes: Self) -> Self {
                Self(codes.0.map(|code| <$element>::from(table[code as usize & 31])))
            }
        }
    };
}

lanes!(
    /// Sixteen signed bytes.
    Bytes, i8, BYTES);
lanes!(
    /// Eight signed 16-bit integers.
    Shorts, i16, SHORTS);

/// Four 64-bit words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words([u64; WORDS]);

impl Words {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl WordsTrait for Words {
    type Array = [u64; WORDS];
    const COUNT: usize = WORDS;
    #[inline(always)]
    fn splat(value: u64) -> Self {
        Self([value; WORDS])
    }
    #[inline(always)]
    fn from_array(values: Self::Array) -> Self {
        Self(values)
    }
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        self.0
    }
    #[inline(always)]
    fn zeros() -> Self::Array {
        [0; WORDS]
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        Self(self.0.map(|word| word << 1))
    }
    #[inline(always)]
    fn top_bit(self) -> Self {
        Self(self.0.map(|word| word >> 63))
    }
    #[inline(always)]
    fn if_equal(a: Self, b: Self, yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(|lane| if a.0[lane] == b.0[lane] { yes.0[lane] } else { no.0[lane] }))
    }
}
