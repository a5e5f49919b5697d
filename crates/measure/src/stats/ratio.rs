//! The ratio of two measurements, each made in rounds, with what is known of its error.
//!
//! Logarithms of the rounds' medians are compared by Welch's t: rounds are independent where samples within a process
//! are not, and a ratio is what "10 % slower" means.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::{Interval, median, median_standard_error};

/// The natural logarithm of a ratio, as estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error.
    pub degrees: f64,
    /// Whether both sides have a single round, so that the error knows nothing of what differs between processes.
    pub single_round: bool,
}

/// Why there is no ratio with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRatio {
    /// A side has no samples.
    #[error("no samples")]
    NoSamples,
    /// A side has one sample, and so has nothing to judge its spread by.
    #[error("a single sample, whose spread is unknown")]
    OneSample,
    /// A sample is zero, negative or not finite.
    #[error("a sample that is not a positive number")]
    NotPositive,
}

impl LogRatio {
    /// Compares the rounds of `after` with those of `before`; empty rounds are left out.
    ///
    /// # Errors
    /// If a side has fewer than two samples or one that is not positive.
    pub fn of_rounds(before: &[Vec<f64>], after: &[Vec<f64>]) -> Result<Self, NoRatio> {
        let (before, after) = (Side::of_rounds(before)?, Side::of_rounds(after)?);
        let estimate = after.mean - before.mean;
        let (a, b) = (before.borrowing(after), after.borrowing(before));
        let (variance_a, variance_b) = (a.variance / a.rounds, b.variance / b.rounds);
        let sum = variance_a + variance_b;
        // Welch and Satterthwaite. Without any spread the degrees do not matter, but they must be some.
        let degrees = if sum > 0.0 {
            // Shares rather than squares of variances, which could underflow.
            let (share_a, share_b) = (variance_a / sum, variance_b / sum);
            1.0 / (share_a.powi(2) / a.degrees + share_b.powi(2) / b.degrees)
        } else {
            a.degrees.min(b.degrees)
        };
        let single_round = before.rounds < 2.0 && after.rounds < 2.0;
        Ok(Self { estimate, standard_error: sum.sqrt(), degrees, single_round })
    }

    /// How probable a ratio at least this far from 1 would be if nothing had changed.
    #[must_use]
    pub fn p_value(&self) -> f64 {
        if self.standard_error == 0.0 {
            return if self.estimate == 0.0 { 1.0 } else { 0.0 };
        }
        let t = self.estimate.abs() / self.standard_error;
        student(self.degrees).map_or(1.0, |student| (2.0 * student.cdf(-t)).clamp(0.0, 1.0))
    }

    /// The interval that holds the true logarithm with the given confidence.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence) / 2.0;
        let t = student(self.degrees).map_or(f64::INFINITY, |student| -quantile(&student, tail));
        let reach = if self.standard_error == 0.0 { 0.0 } else { t * self.standard_error };
        Interval { low: self.estimate - reach, high: self.estimate + reach }
    }
}

/// One side of the comparison, in logarithms.
#[derive(Debug, Clone, Copy)]
struct Side {
    mean: f64,
    rounds: f64,
    /// Variance of one round's median.
    variance: f64,
    degrees: f64,
}

impl Side {
    fn of_rounds(rounds: &[Vec<f64>]) -> Result<Self, NoRatio> {
        if rounds.iter().flatten().any(|&value| !(value.is_finite() && value > 0.0)) {
            return Err(NoRatio::NotPositive);
        }
        let samples = rounds.iter().map(Vec::len).sum::<usize>();
        let logs: Vec<Vec<f64>> =
            rounds.iter().map(|round| round.iter().map(|value| value.ln()).collect()).collect();
        let medians: Vec<f64> = logs.iter().filter_map(|round| median(round)).collect();
        match samples {
            0 => return Err(NoRatio::NoSamples),
            1 => return Err(NoRatio::OneSample),
            _ => {}
        }
        let count = medians.len() as f64;
        let mean = medians.iter().sum::<f64>() / count;
        let errors: Vec<f64> = logs.iter().filter_map(|round| median_standard_error(round)).collect();
        let within = errors.iter().map(|error| error.powi(2)).sum::<f64>() / count;
        if medians.len() == 1 {
            return Ok(Self { mean, rounds: 1.0, variance: within, degrees: (samples - 1) as f64 });
        }
        let between = medians.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // Medians of rounds differ at least by their own error; a few that agree by chance prove nothing better.
        Ok(Self { mean, rounds: count, variance: between.max(within), degrees: count - 1.0 })
    }

    /// A side of one round takes the other's spread between rounds for its own, if the other has one.
    fn borrowing(self, other: Self) -> Self {
        if self.rounds >= 2.0 || other.rounds < 2.0 {
            return self;
        }
        Self { variance: self.variance.max(other.variance), degrees: other.degrees, ..self }
    }
}

fn student(degrees: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees).ok()
}

/// The quantile of a tail below one half, by bisection of the distribution function, which is as exact as that is.
fn quantile(student: &StudentsT, tail: f64) -> f64 {
    let (mut low, mut high) = (-1.0, 0.0);
    while student.cdf(low) > tail && low > f64::MIN / 4.0 {
        low *= 2.0;
    }
    while high - low > 1e-12 * low.abs() {
        let middle = f64::midpoint(low, high);
        if student.cdf(middle) > tail { high = middle } else { low = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs()
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, tail, expected) in [
            (1.0, 0.025, 12.706_204_736_4),
            (4.0, 0.025, 2.776_445_105_2),
            (8.0, 0.025, 2.306_004_135_2),
            (8.0, 0.0005, 5.041_305_433_4),
            (30.0, 0.005, 2.749_995_653_6),
        ] {
            let found = -quantile(&student(degrees).unwrap(), tail);
            assert!(close(found, expected), "{degrees} {tail}: {found}");
        }
    }

    #[test]
    fn welch_s_t_on_logarithms() {
        // Logarithms 0, 2, 4 and 5, 6, 7: means 2 and 6, variances 4 and 1, so t = 4 / sqrt(5/3), df = 50/17.
        let rounds = |logs: [f64; 3]| logs.map(|log: f64| vec![log.exp()]);
        let ratio = LogRatio::of_rounds(&rounds([0.0, 2.0, 4.0]), &rounds([5.0, 6.0, 7.0])).unwrap();
        assert!(close(ratio.estimate, 4.0) && close(ratio.standard_error, (5.0_f64 / 3.0).sqrt()));
        assert!(close(ratio.degrees, 50.0 / 17.0), "{ratio:?}");
        assert!(!ratio.single_round);
        let interval = ratio.interval(1.0 - ratio.p_value());
        assert!(interval.low.abs() < 1e-6 && close(interval.high, 8.0), "{interval:?}");
    }

    #[test]
    fn rounds_that_agree_by_chance_do_not_hide_the_spread_within() {
        let round = vec![90.0, 95.0, 100.0, 105.0, 110.0];
        let ratio = LogRatio::of_rounds(&vec![round.clone(); 4], &vec![round; 4]).unwrap();
        assert_eq!(ratio.estimate, 0.0);
        assert!(ratio.standard_error > 0.01, "{ratio:?}");
    }

    #[test]
    fn a_single_round_borrows_the_spread_between_rounds_or_says_so() {
        let many = [vec![90.0, 90.1], vec![100.0, 100.1], vec![110.0, 110.1]];
        let one = [vec![100.0, 100.1]];
        let borrowed = LogRatio::of_rounds(&many, &one).unwrap();
        assert!(!borrowed.single_round && borrowed.standard_error > 0.1, "{borrowed:?}");
        let alone = LogRatio::of_rounds(&one, &one).unwrap();
        assert!(alone.single_round && alone.standard_error < 0.01, "{alone:?}");
    }

    #[test]
    fn odd_data_is_an_error_or_a_point() {
        let good = [vec![1.0, 1.0]];
        let refused = |rounds: &[Vec<f64>]| LogRatio::of_rounds(&good, rounds).unwrap_err();
        assert_eq!(refused(&[]), NoRatio::NoSamples);
        assert_eq!(refused(&[vec![], vec![1.0]]), NoRatio::OneSample);
        assert_eq!(refused(&[vec![1.0, 0.0]]), NoRatio::NotPositive);
        assert_eq!(refused(&[vec![1.0, f64::NAN]]), NoRatio::NotPositive);
        let same = LogRatio::of_rounds(&good, &good).unwrap();
        assert_eq!((same.p_value(), same.interval(0.95)), (1.0, Interval { low: 0.0, high: 0.0 }));
        let other = LogRatio::of_rounds(&good, &[vec![2.0, 2.0]]).unwrap();
        assert_eq!(other.p_value(), 0.0);
    }
}
