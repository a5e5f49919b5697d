//! What a record says about the samples behind a figure.

use serde::{Deserialize, Serialize};

use super::{Interval, Outliers, mad, mean, median, rounds_interval};

/// The confidence level of every interval that is written down.
pub const CONFIDENCE: f64 = 0.95;

/// With fewer samples there is no interval of that confidence for a median, whatever their distribution: n of them lie
/// on one side of it with a probability of 2 · 0.5ⁿ.
pub const LEAST_SAMPLES: usize = 6;

/// Samples in rounds, a round being a fresh process: their central value and their spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The median of the rounds' medians.
    pub value: f64,
    /// How the samples lie around it.
    pub spread: Spread,
}

/// How samples lie around their central value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Samples over all rounds.
    pub sample_count: usize,
    /// Rounds that have samples.
    pub round_count: usize,
    /// Arithmetic mean of all samples.
    pub mean: f64,
    /// Median absolute deviation of all samples from their median.
    pub mad: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// Lower end of the bootstrap confidence interval of the central value.
    pub ci_low: f64,
    /// Upper end of that interval.
    pub ci_high: f64,
    /// The interval's confidence level, such as 0.95.
    pub confidence: f64,
    /// Samples far from the rest; they stay in every figure above.
    pub outliers: Outliers,
}

impl Spread {
    /// The confidence interval of the central value; `None` where there are fewer than [`LEAST_SAMPLES`].
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        let Self { ci_low: low, ci_high: high, .. } = *self;
        (self.sample_count >= LEAST_SAMPLES).then_some(Interval { low, high })
    }
}

impl Summary {
    /// Summarises the rounds, empty ones left out. `None` if there is no sample or one is not finite.
    #[must_use]
    pub fn of_rounds(rounds: &[Vec<f64>]) -> Option<Self> {
        let all = rounds.concat();
        let medians: Vec<f64> = rounds.iter().filter_map(|round| median(round)).collect();
        let interval = rounds_interval(rounds, CONFIDENCE)?;
        let spread = Spread {
            sample_count: all.len(),
            round_count: medians.len(),
            mean: mean(&all)?,
            mad: mad(&all)?,
            min: all.iter().copied().reduce(f64::min)?,
            max: all.iter().copied().reduce(f64::max)?,
            ci_low: interval.low,
            ci_high: interval.high,
            confidence: CONFIDENCE,
            outliers: Outliers::of(&all),
        };
        Some(Self { value: median(&medians)?, spread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_the_median_of_the_rounds() {
        let rounds = [vec![1.0, 2.0, 3.0], vec![], vec![10.0; 9], vec![4.0, 5.0, 6.0, 7.0]];
        let summary = Summary::of_rounds(&rounds).unwrap();
        let Spread { round_count, sample_count, min, max, ci_low, ci_high, .. } = summary.spread;
        assert_eq!((summary.value, round_count, sample_count), (5.5, 3, 16));
        assert_eq!((min, max), (1.0, 10.0));
        assert!(ci_low <= 5.5 && 5.5 <= ci_high);
    }

    #[test]
    fn odd_data_is_none_or_a_point() {
        assert_eq!(Summary::of_rounds(&[]), None);
        assert_eq!(Summary::of_rounds(&[vec![]]), None);
        assert_eq!(Summary::of_rounds(&[vec![1.0], vec![f64::NAN, 2.0]]), None);
        let one = Summary::of_rounds(&[vec![2.0]]).unwrap();
        assert_eq!((one.value, one.spread.mad), (2.0, 0.0));
        assert_eq!((one.spread.ci_low, one.spread.ci_high), (2.0, 2.0));
    }

    #[test]
    fn few_samples_have_no_interval() {
        let spread = |count: u32| Summary::of_rounds(&[(0..count).map(f64::from).collect()]).unwrap().spread;
        assert_eq!(spread(5).interval(), None);
        let enough = spread(6).interval().unwrap();
        assert!(enough.contains(2.5) && enough.width() > 0.0);
    }
}
