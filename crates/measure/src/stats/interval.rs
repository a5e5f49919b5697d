//! Intervals, and the one for a median that needs no resampling.

use super::quantile::sorted;

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The distance of the ends.
    #[must_use]
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// Whether a value lies inside, ends included.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A confidence interval of the median between two order statistics, exact for any distribution and cheap enough to
/// ask for after every sample. `None` while there are too few values for that confidence (0.95 needs six).
#[must_use]
pub fn order_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let sorted = sorted(values)?;
    let count = sorted.len();
    let tail = (1.0 - confidence) / 2.0;
    // The largest rank whose binomial tail, the chance that so few values lie below the median, is small enough.
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let mut cumulated = term;
    let mut rank = 0;
    while cumulated <= tail && rank < count / 2 {
        term *= (count - rank) as f64 / (rank + 1) as f64;
        cumulated += term;
        rank += 1;
    }
    (rank > 0).then(|| Interval { low: sorted[rank - 1], high: sorted[count - rank] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial_tables() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(order_interval(&values(5), 0.95), None);
        assert_eq!(order_interval(&values(6), 0.95), Some(Interval { low: 1.0, high: 6.0 }));
        assert_eq!(order_interval(&values(20), 0.95), Some(Interval { low: 6.0, high: 15.0 }));
        assert_eq!(order_interval(&values(100), 0.95), Some(Interval { low: 40.0, high: 61.0 }));
    }

    #[test]
    fn odd_data_is_none() {
        assert_eq!(order_interval(&[], 0.95), None);
        assert_eq!(order_interval(&[f64::NAN; 30], 0.95), None);
        assert_eq!(order_interval(&[1.0; 30], 0.95), Some(Interval { low: 1.0, high: 1.0 }));
    }
}
