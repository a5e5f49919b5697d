//! How errors are spread: distances by powers of two, differences by powers of ten.

use serde::Serialize;

/// Counts of ULP distances: bin 0 holds exact matches, bin `n` distances from `2^(n-1)` to `2^n - 1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UlpHistogram {
    bins: Vec<u64>,
}

impl UlpHistogram {
    pub(super) fn new() -> Self {
        Self { bins: vec![0; 65] }
    }

    pub(super) fn add(&mut self, distance: u64) {
        self.bins[(64 - distance.leading_zeros()) as usize] += 1;
    }

    /// The bins that hold something: smallest and largest distance, and the count.
    pub fn occupied(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.bins.iter().enumerate().filter(|bin| *bin.1 > 0).map(|(bin, &count)| match bin {
            0 => (0, 0, count),
            _ => (1 << (bin - 1), u64::MAX >> (64 - bin), count),
        })
    }
}

/// Counts of absolute differences by powers of ten, exact matches apart. What is not finite is in no bin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecadeHistogram {
    exact: u64,
    bins: Vec<u64>,
}

/// The powers of ten that the bins start at.
const POWERS: [f64; 33] = [
    1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1,
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
];

impl DecadeHistogram {
    /// Differences below 10 to this power are in the first bin.
    pub const LOWEST: i32 = -16;
    /// Differences from 10 to this power are in the last bin.
    pub const HIGHEST: i32 = 16;

    pub(super) fn new() -> Self {
        Self { exact: 0, bins: vec![0; POWERS.len() + 1] }
    }

    pub(super) fn add(&mut self, difference: f64) {
        if difference == 0.0 {
            self.exact += 1;
        } else if difference.is_finite() {
            let bin = POWERS.partition_point(|&power| power <= difference);
            self.bins[bin] += 1;
        }
    }

    /// Number of exact matches.
    #[must_use]
    pub fn exact(&self) -> u64 {
        self.exact
    }

    /// The bins from the first to the last that holds something: the power of ten that they start at, and the count.
    /// The first bin of all, whose power is `None`, has what is smaller than every power counted.
    pub fn occupied(&self) -> impl Iterator<Item = (Option<i32>, u64)> + '_ {
        let first = self.bins.iter().position(|&count| count > 0).unwrap_or(self.bins.len());
        let end = self.bins.iter().rposition(|&count| count > 0).map_or(first, |last| last + 1);
        (first..end).map(|bin| {
            let power = bin.checked_sub(1).and_then(|above| i32::try_from(above).ok());
            (power.map(|above| Self::LOWEST + above), self.bins[bin])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_fall_into_their_bins() {
        let mut histogram = UlpHistogram::new();
        for distance in [0, 0, 1, 2, 3, 4, u64::MAX] {
            histogram.add(distance);
        }
        let bins: Vec<_> = histogram.occupied().collect();
        assert_eq!(bins, [(0, 0, 2), (1, 1, 1), (2, 3, 2), (4, 7, 1), (1 << 63, u64::MAX, 1)]);
    }

    #[test]
    fn differences_fall_into_their_decades() {
        let mut histogram = DecadeHistogram::new();
        for difference in [0.0, 0.0, 1e-30, 0.002, 0.01, 0.0999, 5.0, 1e300, f64::NAN, f64::INFINITY] {
            histogram.add(difference);
        }
        assert_eq!(histogram.exact(), 2);
        let bins: Vec<_> = histogram.occupied().filter(|bin| bin.1 > 0).collect();
        assert_eq!(bins, [(None, 1), (Some(-3), 1), (Some(-2), 2), (Some(0), 1), (Some(16), 1)]);
        assert_eq!(DecadeHistogram::new().occupied().count(), 0);
    }
}
