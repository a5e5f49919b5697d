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

impl DecadeHistogram {
    /// Differences below 10 to this power are in the first bin.
    pub const LOWEST: i32 = -16;
    /// Differences from 10 to this power are in the last bin.
    pub const HIGHEST: i32 = 16;

    pub(super) fn new() -> Self {
        Self { exact: 0, bins: vec![0; (Self::HIGHEST - Self::LOWEST + 2) as usize] }
    }

    pub(super) fn add(&mut self, difference: f64) {
        if difference == 0.0 {
            self.exact += 1;
        } else if difference.is_finite() {
            let decade =
                difference.log10().floor().clamp(f64::from(Self::LOWEST - 1), f64::from(Self::HIGHEST));
            self.bins[(decade as i32 - Self::LOWEST + 1) as usize] += 1;
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
