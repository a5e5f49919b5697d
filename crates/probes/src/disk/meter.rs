//! Operations a second, as one sample for each slice of time.

use std::time::{Duration, Instant};

/// Counts operations after a warm-up and makes a rate of each slice of time.
#[derive(Debug)]
pub(super) struct Meter {
    opened: Instant,
    slice: Duration,
    count: u64,
    rates: Vec<f64>,
}

impl Meter {
    /// A meter whose first slice opens at the given time.
    pub(super) fn new(opens: Instant, slice: Duration) -> Self {
        Self { opened: opens, slice, count: 0, rates: Vec::new() }
    }

    /// Counts an operation that ended at this time; those before the first slice do not count, and that is said.
    /// A slice closes with the first operation past its length and lasts until then, so that slow operations make
    /// longer slices and not empty ones.
    pub(super) fn count(&mut self, ended: Instant) -> bool {
        let Some(elapsed) = ended.checked_duration_since(self.opened) else { return false };
        self.count += 1;
        if elapsed >= self.slice && !elapsed.is_zero() {
            self.rates.push(self.count as f64 / elapsed.as_secs_f64());
            self.count = 0;
            self.opened = ended;
        }
        true
    }

    /// Whether a slice has closed.
    pub(super) fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    /// The rate of each slice that closed.
    pub(super) fn into_rates(self) -> Vec<f64> {
        self.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_last_until_an_operation_ends_and_the_warm_up_does_not_count() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut meter = Meter::new(at(100), Duration::from_millis(100));
        assert!(!meter.count(at(50)));
        assert!(meter.count(at(150)));
        assert!(!meter.has_rates());
        for ended in [200, 250, 500, 550] {
            assert!(meter.count(at(ended)));
        }
        // 2 in 100 ms, 2 in 300 ms; the last slice is still open.
        let rates = meter.into_rates();
        assert_eq!(rates.len(), 2);
        assert!((rates[0] - 20.0).abs() < 1e-9 && (rates[1] - 2.0 / 0.3).abs() < 1e-9, "{rates:?}");
    }
}
