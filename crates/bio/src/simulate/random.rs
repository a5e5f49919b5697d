//! The generator of random numbers: SplitMix64.

/// A stream of random numbers that a seed defines for good.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `bound`; 0 if the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 up to, not including, 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event of this probability happens.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A base.
    #[inline]
    pub fn base(&mut self) -> u8 {
        (self.bits() >> 62) as u8
    }

    /// A base other than this one.
    #[inline]
    pub fn other_base(&mut self, base: u8) -> u8 {
        (base + 1 + self.below(3) as u8) % 4
    }

    /// One of the indices, with these weights.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        weights.len().saturating_sub(1)
    }

    /// A length of at least 1, each further unit having the probability `more`, at most `limit`.
    pub fn geometric(&mut self, more: f64, limit: usize) -> usize {
        let mut length = 1;
        while length < limit && self.chance(more) {
            length += 1;
        }
        length
    }

    /// A number of a normal distribution (mean 0, deviation 1), as the sum of twelve uniform ones.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first outputs of SplitMix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            assert!(random.below(7) < 7);
            assert!(random.unit() < 1.0);
            assert_ne!(random.other_base(2), 2);
            assert!(random.weighted(&[0.1, 0.0, 0.9]) != 1);
        }
        assert_eq!(random.below(0), 0);
    }
}
