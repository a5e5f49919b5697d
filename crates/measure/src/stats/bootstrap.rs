//! Bootstrap confidence intervals of a median, by percentiles.
//!
//! The percentile interval and not the bias-corrected one: the latter's acceleration comes from a jackknife, which
//! does not work for medians. The seed is fixed, so the same samples always have the same interval.

use super::Interval;
use super::quantile::{median_in_place, of_sorted};

/// How often the samples are drawn anew.
pub const RESAMPLES: usize = 1000;

const SEED: u64 = 0x5741_5250_5431;

/// The interval of the median of one set of samples.
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    rounds_interval(&[values], confidence)
}

/// The interval of the median of the rounds' medians. A round is a fresh process, and what differs between processes
/// does not average out within one: the rounds are drawn anew, then the samples inside each. With a single round
/// there are only its samples to draw from, and the interval knows nothing of what another process would measure.
#[must_use]
pub fn rounds_interval<R: AsRef<[f64]>>(rounds: &[R], confidence: f64) -> Option<Interval> {
    let rounds: Vec<&[f64]> = rounds.iter().map(AsRef::as_ref).filter(|round| !round.is_empty()).collect();
    let bad = |value: &f64| !value.is_finite();
    if rounds.is_empty() || !(0.0..1.0).contains(&confidence) || rounds.iter().any(|r| r.iter().any(bad)) {
        return None;
    }
    let resampled = resample(&rounds);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: of_sorted(&resampled, tail), high: of_sorted(&resampled, 1.0 - tail) })
}

/// Medians of the rounds' medians, each of rounds and samples drawn anew, in ascending order.
fn resample(rounds: &[&[f64]]) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = Vec::new();
    let mut medians = Vec::with_capacity(rounds.len());
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            medians.clear();
            for _ in rounds {
                let round = rounds[random.usize(..rounds.len())];
                drawn.clear();
                drawn.extend(round.iter().map(|_| round[random.usize(..round.len())]));
                medians.push(median_in_place(&mut drawn));
            }
            median_in_place(&mut medians)
        })
        .collect();
    resampled.sort_unstable_by(f64::total_cmp);
    resampled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_samples_give_the_same_interval() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(i * 37 % 101)).collect();
        let interval = median_interval(&values, 0.95).unwrap();
        assert_eq!(Some(interval), median_interval(&values, 0.95));
        assert!(interval.contains(super::super::median(&values).unwrap()));
        assert!(interval.width() < median_interval(&values, 0.99).unwrap().width());
    }

    #[test]
    fn differences_between_rounds_widen_the_interval() {
        let alike = vec![vec![9.0, 10.0, 11.0]; 5];
        let apart: Vec<Vec<f64>> = (0..5).map(|i| vec![9.0 + f64::from(i) * 4.0; 3]).collect();
        let (alike, apart) = (rounds_interval(&alike, 0.95).unwrap(), rounds_interval(&apart, 0.95).unwrap());
        assert!(apart.width() > 2.0 * alike.width(), "{apart:?} {alike:?}");
    }

    #[test]
    fn odd_data_is_none_or_a_point() {
        assert_eq!(median_interval(&[], 0.95), None);
        assert_eq!(median_interval(&[f64::NAN], 0.95), None);
        assert_eq!(median_interval(&[1.0], 1.0), None);
        assert_eq!(median_interval(&[1.0], f64::NAN), None);
        assert_eq!(rounds_interval::<Vec<f64>>(&[vec![], vec![]], 0.95), None);
        assert_eq!(median_interval(&[3.0], 0.95), Some(Interval { low: 3.0, high: 3.0 }));
        assert_eq!(median_interval(&[3.0; 20], 0.95), Some(Interval { low: 3.0, high: 3.0 }));
    }
}
