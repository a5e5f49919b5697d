//! Latencies: any number of them in bounded memory, and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Percentiles worth reporting: the name's ending and the share of the values below.
pub const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999)];

/// Three digits of each latency are kept: a percentile is at most 0.1 % off.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Longer latencies count as this long. It bounds the histogram's size.
const LONGEST: Duration = Duration::from_secs(3600);

/// The latencies of many operations of one kind.
#[derive(Debug, Clone)]
pub struct Latencies {
    nanoseconds: Histogram<u64>,
}

impl Latencies {
    /// No latencies yet.
    #[must_use]
    pub fn new() -> Self {
        let nanoseconds = Histogram::new_with_max(LONGEST.as_nanos() as u64, SIGNIFICANT_DIGITS)
            .expect("an hour at three digits is a valid range");
        Self { nanoseconds }
    }

    /// Adds the latency of one operation.
    pub fn add(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The latency that the given share of the operations did not exceed. `None` if there are so few operations that
    /// not even one is expected beyond it: a p99.9 of a hundred operations would only be their maximum.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        // A little slack, because 1 - 0.999 is not exactly a thousandth.
        let beyond = (1.0 - share) * self.count() as f64;
        (beyond > 1.0 - 1e-6).then(|| Duration::from_nanos(self.nanoseconds.value_at_quantile(share)))
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_data() {
        let mut latencies = Latencies::new();
        let mut micros: Vec<u64> = (1..=10_000).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut micros);
        for latency in micros {
            latencies.add(Duration::from_micros(latency));
        }
        for (expected, (name, share)) in [5_000.0, 9_500.0, 9_900.0, 9_990.0].iter().zip(PERCENTILES) {
            let found = latencies.percentile(share).unwrap().as_nanos() as f64 / 1e3;
            assert!((found / expected - 1.0).abs() < 0.002, "{name}: {found} and not {expected}");
        }
    }

    #[test]
    fn too_few_operations_have_no_far_percentiles() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.percentile(0.5), None);
        for count in 1..=1000 {
            latencies.add(Duration::from_micros(10));
            assert_eq!(latencies.percentile(0.5).is_some(), count >= 2, "{count}");
            assert_eq!(latencies.percentile(0.99).is_some(), count >= 100, "{count}");
            assert_eq!(latencies.percentile(0.999).is_some(), count >= 1000, "{count}");
        }
    }

    #[test]
    fn absurd_latencies_are_counted() {
        let mut latencies = Latencies::new();
        latencies.add(Duration::ZERO);
        latencies.add(Duration::MAX);
        assert_eq!(latencies.count(), 2);
    }
}
