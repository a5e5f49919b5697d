//! The change of one metric, with allowance for how fast the core ran.
//!
//! On shared machines the clock differs by tens of percent from second to second, and most metrics of a core follow
//! it. Where the records have the core's speed around each sample, the change is estimated twice: from the values as
//! they are, and from the values per unit of core speed. Whether a metric follows the clock is not known beforehand,
//! so the data say: the estimate with the smaller error is taken. Only if the speeds of the two runs differ, so that
//! the two estimates mean different things, and neither error is clearly smaller, both must agree.

use warpforge_measure::stats::{Interval, LogRatio};

use super::pairing::Pair;
use crate::record::{BenchmarkMetric, MetricStatistics};

/// From which difference of core speed on the two estimates are about different things.
const SAME_SPEED: f64 = 0.01;

/// An error this much smaller than the other shows which estimate fits the metric.
const CLEARLY_SMALLER: f64 = 0.5;

/// What is known of the change: one estimate, or two of which the more cautious counts.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    first: LogRatio,
    second: Option<LogRatio>,
    /// Whether the change is of values at equal core speed, and the speeds differ.
    pub(super) adjusted: bool,
    /// What to say about the core's speed, where it made a difference.
    pub(super) note: Option<String>,
}

impl Estimate {
    /// Estimates the change of a pair, or says why it cannot be.
    pub(super) fn of(pair: &Pair<'_>) -> Result<Self, String> {
        let Pair { before, after, .. } = pair;
        if before.unit != after.unit {
            return Err(format!("the units differ: {} and {}", before.unit, after.unit));
        }
        if before.higher_is_better != after.higher_is_better {
            return Err("the runs disagree on whether more is better".to_owned());
        }
        let (Some(a), Some(b)) = (&before.statistics, &after.statistics) else {
            return Err("the record has no samples, so the noise is unknown".to_owned());
        };
        let raw = LogRatio::of_rounds(&a.rounds, &b.rounds).map_err(|error| error.to_string())?;
        Ok(Self::with_speed(raw, before, after).unwrap_or(Self {
            first: raw,
            second: None,
            adjusted: false,
            note: None,
        }))
    }

    /// The estimate with allowance for the core's speed, if both records have it.
    fn with_speed(raw: LogRatio, before: &BenchmarkMetric, after: &BenchmarkMetric) -> Option<Self> {
        let (a, b) = (before.statistics.as_ref()?, after.statistics.as_ref()?);
        let (rounds_a, rounds_b) =
            (per_speed(a, before.higher_is_better)?, per_speed(b, after.higher_is_better)?);
        let adjusted = LogRatio::of_rounds(&rounds_a, &rounds_b).ok()?;
        let speed = LogRatio::of_rounds(&a.core_speeds, &b.core_speeds).ok()?.estimate;
        let (raw_error, adjusted_error) = (raw.standard_error, adjusted.standard_error);
        let (better, other) = if adjusted_error < raw_error { (adjusted, raw) } else { (raw, adjusted) };
        let clear = better.standard_error <= CLEARLY_SMALLER * other.standard_error;
        let second = (speed.abs() > SAME_SPEED && !clear).then_some(other);
        let percent = |log: f64| log.exp_m1() * 100.0;
        let is_adjusted = speed.abs() > SAME_SPEED && (better == adjusted || second.is_some());
        let note = (speed.abs() > SAME_SPEED && better == adjusted).then(|| {
            format!(
                "the core ran at {:+.1} % speed, which is allowed for; the values differ by {:+.1} %",
                percent(speed),
                percent(raw.estimate)
            )
        });
        Some(Self { first: better, second, adjusted: is_adjusted, note })
    }

    /// Whether there was a single round on both sides.
    pub(super) fn single_round(&self) -> bool {
        self.first.single_round
    }

    /// The change as a logarithm; of two estimates, the one nearer to none.
    pub(super) fn change(&self) -> f64 {
        match self.second {
            Some(second) if second.estimate.signum() != self.first.estimate.signum() => 0.0,
            Some(second) if second.estimate.abs() < self.first.estimate.abs() => second.estimate,
            _ => self.first.estimate,
        }
    }

    /// How probable such a change would be by chance.
    pub(super) fn p_value(&self) -> f64 {
        self.second.map_or(0.0, |second| second.p_value()).max(self.first.p_value())
    }

    /// The interval of the change; of two estimates, what covers both.
    pub(super) fn interval(&self, confidence: f64) -> Interval {
        let first = self.first.interval(confidence);
        let second = self.second.map_or(first, |second| second.interval(confidence));
        Interval { low: first.low.min(second.low), high: first.high.max(second.high) }
    }
}

/// The samples per unit of core speed: rates are divided by it, times multiplied. `None` unless every sample has one.
fn per_speed(statistics: &MetricStatistics, is_rate: bool) -> Option<Vec<Vec<f64>>> {
    let MetricStatistics { rounds, core_speeds, .. } = statistics;
    let lengths = |rounds: &[Vec<f64>]| rounds.iter().map(Vec::len).collect::<Vec<_>>();
    if core_speeds.is_empty() || lengths(rounds) != lengths(core_speeds) {
        return None;
    }
    let adjust = |(value, speed): (&f64, &f64)| if is_rate { value / speed } else { value * speed };
    Some(rounds.iter().zip(core_speeds).map(|(v, s)| v.iter().zip(s).map(adjust).collect()).collect())
}
