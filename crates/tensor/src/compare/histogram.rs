//! How errors are spread, counted by powers of two.

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
}
