//! Maximum and minimum of floats.

/// The functions `larger` and `smaller` of a float type: NaN wins, and the positive zero is the larger one.
macro_rules! extremes {
    () => {
        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            // Equal values have equal bits but for the zeros, of which the positive one is the larger.
            let equal = Self::from_bits(self.to_bits() & other.to_bits());
            let unequal = if self > other { self } else { other };
            let ordered = if self == other { equal } else { unequal };
            if self.is_nan() { self } else { ordered }
        }
        #[inline(always)]
        fn smaller(self, other: Self) -> Self {
            let equal = Self::from_bits(self.to_bits() | other.to_bits());
            let unequal = if self < other { self } else { other };
            let ordered = if self == other { equal } else { unequal };
            if self.is_nan() { self } else { ordered }
        }
    };
}

pub(crate) use extremes;
