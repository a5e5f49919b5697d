//! Words that hold a k-mer, two bits a base.

/// An unsigned integer that holds a k-mer.
pub trait Word: Copy + Ord + Default + Send + Sync + std::fmt::Debug + std::hash::Hash {
    /// Bases that fit.
    const BASES: usize;
    /// The k-mer moved on by one base.
    #[must_use]
    fn appended(self, code: u8, k: usize) -> Self;
    /// The k-mer moved back by one base.
    #[must_use]
    fn prepended(self, code: u8, k: usize) -> Self;
    /// The last base.
    fn last(self) -> u8;
    /// The first base of a k-mer.
    fn first(self, k: usize) -> u8;
    /// The reverse complement of a k-mer.
    #[must_use]
    fn reverse_complement(self, k: usize) -> Self;
    /// A hash whose high bits are good.
    fn hash(self) -> u64;
    /// The part that the k-mer belongs to, of 2^`bits`.
    #[inline]
    fn part(self, bits: u32) -> usize {
        // Two shifts, because one by 64 is none.
        (self.hash() >> 1 >> (63 - bits)) as usize
    }
}

/// Spreads k-mers; a prime near 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Implements the words of a type; `$folded` makes 64 bits of one.
macro_rules! word {
    ($word:ty, $folded:expr) => {
        impl Word for $word {
            const BASES: usize = <$word>::BITS as usize / 2;
            #[inline]
            fn appended(self, code: u8, k: usize) -> Self {
                ((self << 2) | Self::from(code)) & (Self::MAX >> (Self::BITS as usize - 2 * k))
            }
            #[inline]
            fn prepended(self, code: u8, k: usize) -> Self {
                (self >> 2) | (Self::from(code) << (2 * (k - 1)))
            }
            #[inline]
            fn last(self) -> u8 {
                (self & 3) as u8
            }
            #[inline]
            fn first(self, k: usize) -> u8 {
                (self >> (2 * (k - 1)) & 3) as u8
            }
            fn reverse_complement(self, k: usize) -> Self {
                // Reversing the bits swaps the two of each base; swap them back.
                const ODD: $word = <$word>::MAX / 3;
                let bits = (!self).reverse_bits();
                let bases = (bits >> 1 & ODD) | (bits & ODD) << 1;
                bases >> (Self::BITS as usize - 2 * k)
            }
            #[inline]
            fn hash(self) -> u64 {
                let folded = $folded(self);
                (folded ^ (folded >> 29)).wrapping_mul(FACTOR)
            }
        }
    };
}

word!(u64, |word: u64| word);
word!(u128, |word: u128| word as u64 ^ ((word >> 64) as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));

#[cfg(test)]
mod tests {
    use super::*;

    fn word<W: Word>(codes: &[u8]) -> W {
        codes.iter().fold(W::default(), |word, &code| word.appended(code, codes.len()))
    }

    #[test]
    fn reverse_complements_and_ends_are_right() {
        let codes = [0, 1, 2, 3, 3, 0, 2];
        let other = crate::seq::reverse_complement(&codes);
        assert_eq!(word::<u64>(&codes).reverse_complement(7), word::<u64>(&other));
        assert_eq!(word::<u128>(&codes).reverse_complement(7), word::<u128>(&other));
        assert_eq!((word::<u64>(&codes).first(7), word::<u64>(&codes).last()), (0, 2));
        assert_eq!((word::<u128>(&codes).first(7), word::<u128>(&codes).last()), (0, 2));
        assert_eq!(word::<u64>(&codes).prepended(3, 7), word::<u64>(&[3, 0, 1, 2, 3, 3, 0]));
        assert!((0..1000u64).all(|kmer| kmer.part(3) < 8 && kmer.part(0) == 0));
    }
}
