//! Samples far from the rest.

use serde::{Deserialize, Serialize};

use super::quantile;

/// How many samples lie far from the rest, by Tukey's fences (1.5 and 3 interquartile ranges).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    /// More than 3 interquartile ranges below the first quartile.
    pub low_severe: usize,
    /// 1.5 to 3 interquartile ranges below.
    pub low_mild: usize,
    /// 1.5 to 3 interquartile ranges above the third quartile.
    pub high_mild: usize,
    /// More than 3 interquartile ranges above.
    pub high_severe: usize,
}

impl Outliers {
    /// Counts the outliers among the values; none if the values cannot be judged.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let (Some(first), Some(third)) = (quantile(values, 0.25), quantile(values, 0.75)) else {
            return Self::default();
        };
        let range = third - first;
        let mut found = Self::default();
        for value in values {
            let below = first - value;
            let above = value - third;
            if below > 3.0 * range {
                found.low_severe += 1;
            } else if below > 1.5 * range {
                found.low_mild += 1;
            } else if above > 3.0 * range {
                found.high_severe += 1;
            } else if above > 1.5 * range {
                found.high_mild += 1;
            }
        }
        found
    }

    /// All of them together.
    #[must_use]
    pub fn total(self) -> usize {
        self.low_severe + self.low_mild + self.high_mild + self.high_severe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fence_catches_its_own() {
        // Quartiles 3 and 7 of the core, range 4: fences at -9, -3, 13, 19.
        let core = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(Outliers::of(&core).total(), 0);
        let mut values = core.repeat(20);
        values.extend([-20.0, -5.0, 15.0, 16.0, 40.0, 50.0, 60.0]);
        let found = Outliers::of(&values);
        assert_eq!(found, Outliers { low_severe: 1, low_mild: 1, high_mild: 2, high_severe: 3 });
        assert_eq!(found.total(), 7);
    }

    #[test]
    fn odd_data_has_none() {
        for values in [&[][..], &[1.0], &[f64::NAN, 1.0], &[2.0; 9]] {
            assert_eq!(Outliers::of(values).total(), 0);
        }
    }
}
