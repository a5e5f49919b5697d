//! One number for a run: the geometric mean of its ratios to a baseline that is named.
//!
//! Every metric of both runs becomes a ratio, above 1 where the run is better. The ratios of a benchmark are averaged first, so that
//! each benchmark counts once, however many metrics it has. Raw values of different units are never averaged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::{RunLabel, Unmatched, pair};
use crate::record::{BenchmarkId, BenchmarkMetric, BenchmarkSuiteRun};

/// Units of metrics that say nothing about speed: parts of a limit, counts and errors, memory, energy.
const NOT_SPEED: [&str; 6] = ["%", "1", "MiB", "GiB", "J", "W"];
/// Metrics that are parts of others.
const PARTS: [&str; 3] = ["index_time", "stage_time", "token_time"];

/// How a run compares with its baseline as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What it is measured by.
    pub baseline: RunLabel,
    /// What is measured.
    pub run: RunLabel,
    /// The geometric mean of the benchmarks' ratios: 1 is as fast as the baseline, 2 twice as fast.
    pub value: f64,
    /// The ratio of each benchmark.
    pub benchmarks: Vec<BenchmarkScore>,
    /// Metrics that only one of the runs has; they do not count.
    pub unmatched: Vec<Unmatched>,
}

/// The ratio of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkScore {
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// The geometric mean of its metrics' ratios.
    pub value: f64,
    /// How many metrics count.
    pub metrics: usize,
}

/// Why there is no score.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// The runs have no metric in common that says how fast they are.
    #[error("the runs have no rate or time in common: there is nothing to score")]
    NothingInCommon,
}

/// Scores a run by a baseline.
///
/// # Errors
/// If they have nothing in common.
pub fn score(run: &BenchmarkSuiteRun, baseline: &BenchmarkSuiteRun) -> Result<Score, ScoreError> {
    let pairing = pair(baseline, run);
    let mut logarithms: BTreeMap<&BenchmarkId, Vec<f64>> = BTreeMap::new();
    for pair in &pairing.pairs {
        if let Some(ratio) = ratio(pair.after, pair.before) {
            logarithms.entry(pair.benchmark).or_default().push(ratio.ln());
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means: Vec<f64> = logarithms.values().map(|values| mean(values)).collect();
    if means.is_empty() {
        return Err(ScoreError::NothingInCommon);
    }
    let benchmarks = logarithms.iter().map(|(benchmark, values)| BenchmarkScore {
        benchmark: (*benchmark).clone(),
        value: mean(values).exp(),
        metrics: values.len(),
    });
    Ok(Score {
        baseline: RunLabel::of(baseline),
        run: RunLabel::of(run),
        value: mean(&means).exp(),
        benchmarks: benchmarks.collect(),
        unmatched: pairing.unmatched,
    })
}

/// How much better a metric is than another, if it says how fast something is.
fn ratio(metric: &BenchmarkMetric, baseline: &BenchmarkMetric) -> Option<f64> {
    let counts = !NOT_SPEED.contains(&metric.unit.as_str()) && !PARTS.contains(&metric.name.as_str());
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !counts || metric.unit != baseline.unit || !positive(metric.value) || !positive(baseline.value) {
        return None;
    }
    Some(match metric.higher_is_better {
        true => metric.value / baseline.value,
        false => baseline.value / metric.value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::run;

    #[test]
    fn each_benchmark_counts_once_and_units_are_not_mixed() {
        let base = run(&[
            ("a", "rate", "GB/s", true, 10.0),
            ("b", "latency", "ns", false, 100.0),
            ("b", "other", "ns", false, 100.0),
            ("b", "peak_rss", "MiB", false, 5.0),
        ]);
        // Four times as fast, and half as fast in both metrics; memory does not count.
        let later = run(&[
            ("a", "rate", "GB/s", true, 40.0),
            ("b", "latency", "ns", false, 200.0),
            ("b", "other", "ns", false, 200.0),
            ("b", "peak_rss", "MiB", false, 500.0),
        ]);
        let found = score(&later, &base).unwrap();
        assert!((found.value - 2f64.sqrt()).abs() < 1e-12, "{}", found.value);
        let each: Vec<(f64, usize)> =
            found.benchmarks.iter().map(|each| (each.value, each.metrics)).collect();
        assert!((each[0].0 - 4.0).abs() < 1e-12 && (each[1].0 - 0.5).abs() < 1e-12, "{each:?}");
        assert_eq!((each[0].1, each[1].1), (1, 2));
        assert!((score(&base, &base).unwrap().value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_only_one_run_has_is_named_and_does_not_count() {
        let base = run(&[("a", "rate", "GB/s", true, 10.0), ("b", "rate", "GB/s", true, 10.0)]);
        let less = run(&[("a", "rate", "GB/s", true, 20.0)]);
        let found = score(&less, &base).unwrap();
        assert_eq!((found.value, found.unmatched.len()), (2.0, 1));
        let none = run(&[("c", "rate", "GB/s", true, 20.0), ("a", "rate", "GB/s", true, 0.0)]);
        assert_eq!(score(&none, &base), Err(ScoreError::NothingInCommon));
    }
}
