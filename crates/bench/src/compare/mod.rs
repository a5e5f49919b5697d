//! Comparing two runs, metric by metric.
//!
//! [`compare`] pairs the metrics of two records, estimates each change with its interval from the rounds' samples,
//! and reaches verdicts that hold for all metrics together: a run compared with another of the same program is called
//! changed in at most one comparison of twenty. `docs/statistics.md` has the method and its measured error rates.

mod estimate;
mod judge;
mod machine;
mod outcome;
mod pairing;
mod self_test;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod warnings;

pub use machine::machine_differences;
pub use outcome::{Broken, Change, Comparison, Counts, MetricComparison, RunLabel, Side, Unmatched};
pub(crate) use pairing::pair;
pub use self_test::{SelfTest, SelfTestError, SelfTestOptions, self_test};

use crate::record::{BenchmarkRunResult, BenchmarkSuiteRun};

/// The change below which a difference is of no interest, in percent, by default.
pub const DEFAULT_NOISE_THRESHOLD_PERCENT: f64 = 3.0;

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// Changes up to this size, in percent, are never called improved or regressed.
    pub noise_threshold_percent: f64,
    /// Compare even if the machines differ.
    pub force: bool,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { noise_threshold_percent: DEFAULT_NOISE_THRESHOLD_PERCENT, force: false }
    }
}

/// Why two runs were not compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// They were made on different machines.
    #[error("the runs are of different machines ({}); use --force to compare them all the same", .differences.join("; "))]
    DifferentMachines {
        /// What differs.
        differences: Vec<String>,
    },
    /// A record says one thing and its samples another.
    #[error(
        "the {side} run cannot be trusted: {metric} is {value} {unit}, but its samples are from {least} to {most}"
    )]
    Contradiction {
        /// Which of the two runs.
        side: &'static str,
        /// The benchmark and the metric.
        metric: String,
        /// The value of the record.
        value: f64,
        /// Its unit.
        unit: String,
        /// The smallest sample.
        least: f64,
        /// The largest sample.
        most: f64,
    },
    /// The threshold makes no sense.
    #[error("a noise threshold of {0} %: it must be a number from 0 up to, but not including, 100")]
    BadThreshold(f64),
}

/// Compares a later run with an earlier one.
///
/// # Errors
/// If the machines differ and it was not forced, a value contradicts its samples, or the threshold makes no sense.
pub fn compare(
    before: &BenchmarkSuiteRun,
    after: &BenchmarkSuiteRun,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let threshold = options.noise_threshold_percent;
    if !(0.0..100.0).contains(&threshold) {
        return Err(CompareError::BadThreshold(threshold));
    }
    let differences = machine_differences(before, after);
    if !differences.is_empty() && !options.force {
        return Err(CompareError::DifferentMachines { differences });
    }
    for (run, side) in [(before, "earlier"), (after, "later")] {
        run.benchmarks.iter().try_for_each(|result| consistent(result, side))?;
    }
    let pairing = pairing::pair(before, after);
    let metrics = judge::judge(&pairing.pairs, threshold);
    let mut warnings = warnings::warnings(before, after);
    warnings.splice(0..0, differences.into_iter().map(|what| format!("different machines: {what}")));
    Ok(Comparison {
        verdict: outcome::overall(&metrics, &pairing.unmatched, &pairing.broken),
        before: RunLabel::of(before),
        after: RunLabel::of(after),
        noise_threshold_percent: threshold,
        confidence: judge::CONFIDENCE,
        counts: Counts::of(&metrics),
        metrics,
        unmatched: pairing.unmatched,
        broken: pairing.broken,
        warnings,
    })
}

/// A value that stands for its samples lies among them.
fn consistent(result: &BenchmarkRunResult, side: &'static str) -> Result<(), CompareError> {
    /// What rounding in a file may make, as a share.
    const SLACK: f64 = 1e-6;
    for metric in &result.metrics {
        let samples = metric.statistics.iter().flat_map(|statistics| statistics.rounds.iter().flatten());
        let (least, most) =
            samples.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &x| (least.min(x), most.max(x)));
        let slack = SLACK * least.abs().max(most.abs());
        if least <= most && !(least - slack..=most + slack).contains(&metric.value) {
            return Err(CompareError::Contradiction {
                side,
                metric: format!("{} {}", result.spec.id, metric.name),
                value: metric.value,
                unit: metric.unit.clone(),
                least,
                most,
            });
        }
    }
    Ok(())
}
