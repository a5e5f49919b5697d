//! What a fusion is worth, as far as the measurement can tell.

use std::fmt;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use warpforge_measure::stats::{CONFIDENCE, Interval};

use crate::profile::FusionRound;

/// The least speedups of the bands.
const STRONG: f64 = 1.5;
const MODERATE: f64 = 1.1;
const MINIMAL: f64 = 0.95;

/// The spread between compilations of the same kernels, as a standard deviation of the ratio's logarithm, where a single round
/// says nothing about it: other addresses, other pages.
const ASSUMED_BETWEEN: f64 = 0.01;

/// What a fusion is worth. A band counts only where the whole interval lies in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Half as fast again, or more.
    Strong,
    /// A tenth faster, or more.
    Moderate,
    /// No clear difference.
    Minimal,
    /// Slower than the kernels it replaces.
    Slower,
    /// The interval reaches over a border between bands.
    #[serde(rename = "INCONCLUSIVE")]
    Inconclusive,
}

impl Verdict {
    /// The verdict of a speedup that lies in this interval.
    #[must_use]
    pub fn of(speedup: Interval) -> Self {
        let band = |value: f64| match value {
            value if value >= STRONG => Self::Strong,
            value if value >= MODERATE => Self::Moderate,
            value if value >= MINIMAL => Self::Minimal,
            _ => Self::Slower,
        };
        let finite = speedup.low.is_finite() && speedup.high.is_finite() && speedup.low <= speedup.high;
        if finite && band(speedup.low) == band(speedup.high) { band(speedup.low) } else { Self::Inconclusive }
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Moderate => "moderate",
            Self::Minimal => "minimal",
            Self::Slower => "slower",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The standard deviation between rounds, of all patterns together: two or three rounds of one pattern say little, those of
/// all of them say enough. The assumed one where no pattern has two rounds.
#[must_use]
pub(crate) fn between_rounds<'r>(patterns: impl Iterator<Item = &'r [FusionRound]>) -> f64 {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for rounds in patterns.filter(|rounds| rounds.len() > 1) {
        let mean = rounds.iter().map(|round| round.log_ratio).sum::<f64>() / rounds.len() as f64;
        squares += rounds.iter().map(|round| (round.log_ratio - mean).powi(2)).sum::<f64>();
        degrees += (rounds.len() - 1) as f64;
    }
    if degrees > 0.0 { (squares / degrees).sqrt() } else { ASSUMED_BETWEEN }
}

/// The speedup and its 95 % interval, from the rounds of a pattern and the spread between rounds.
#[must_use]
pub(crate) fn speedup(rounds: &[FusionRound], between: f64) -> Option<(f64, Interval)> {
    let count = rounds.len() as f64;
    let samples: usize = rounds.iter().map(|round| round.samples).sum();
    if rounds.is_empty() || samples < 2 {
        return None;
    }
    let mean = rounds.iter().map(|round| round.log_ratio).sum::<f64>() / count;
    let within = rounds.iter().map(|round| round.standard_error.powi(2)).sum::<f64>() / count;
    // The spread between rounds has that within them in it, unless it was assumed.
    let variance = if rounds.len() > 1 { within.max(between.powi(2)) } else { within + between.powi(2) };
    let error = (variance / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, (samples - 1) as f64).ok()?;
    let reach = student.inverse_cdf(f64::midpoint(CONFIDENCE, 1.0)) * error;
    let interval = Interval { low: (mean - reach).exp(), high: (mean + reach).exp() };
    (mean.is_finite() && reach.is_finite()).then_some((mean.exp(), interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(low: f64, high: f64) -> Verdict {
        Verdict::of(Interval { low, high })
    }

    #[test]
    fn a_band_counts_only_where_the_whole_interval_lies_in_it() {
        assert_eq!(of(1.5, 9.0), Verdict::Strong);
        assert_eq!(of(1.1, 1.49), Verdict::Moderate);
        assert_eq!(of(0.95, 1.09), Verdict::Minimal);
        assert_eq!(of(0.2, 0.94), Verdict::Slower);
        for (low, high) in [(1.49, 1.51), (1.09, 1.2), (0.94, 0.96), (0.9, 2.0), (f64::NAN, 1.0), (1.2, 1.1)]
        {
            assert_eq!(of(low, high), Verdict::Inconclusive, "{low} {high}");
        }
        assert_eq!(of(1.6, f64::INFINITY), Verdict::Inconclusive);
    }

    fn round(log_ratio: f64, standard_error: f64) -> FusionRound {
        FusionRound { log_ratio, standard_error, samples: 20, fused_ms: 1.0, unfused_ms: log_ratio.exp() }
    }

    #[test]
    fn the_spread_between_rounds_widens_the_interval() {
        let one = [round(0.3, 0.0)];
        let (value, quiet) = speedup(&one, ASSUMED_BETWEEN).unwrap();
        assert!((value - 0.3_f64.exp()).abs() < 1e-12);
        assert!(quiet.low < value && value < quiet.high && quiet.width() < 0.07, "{quiet:?}");
        let two = [round(0.25, 0.001), round(0.35, 0.001)];
        let between = between_rounds([&two[..]].into_iter());
        assert!((between - 0.1 / 2.0_f64.sqrt()).abs() < 1e-9, "{between}");
        let (_, wide) = speedup(&two, between).unwrap();
        assert!(wide.width() > 2.0 * quiet.width(), "{wide:?}");
        // Rounds that agree by chance are judged by what all patterns say.
        let (_, pooled) = speedup(&[round(0.3, 0.001), round(0.3, 0.001)], between).unwrap();
        assert!((pooled.width() - wide.width()).abs() < 1e-2);
    }

    #[test]
    fn too_few_samples_have_no_speedup() {
        assert!(speedup(&[], 0.01).is_none());
        assert!(speedup(&[FusionRound { samples: 1, ..round(0.0, 0.0) }], 0.01).is_none());
        assert_eq!(between_rounds([&[round(0.1, 0.1)][..]].into_iter()), ASSUMED_BETWEEN);
    }

    #[test]
    fn verdicts_are_written_by_their_names() {
        for verdict in [Verdict::Strong, Verdict::Minimal, Verdict::Slower, Verdict::Inconclusive] {
            let text = serde_json::to_string(&verdict).unwrap();
            assert_eq!(text, format!("\"{verdict}\""));
        }
    }
}
