//! What another program did beside a benchmark.

use serde::{Deserialize, Serialize};
use warpforge_measure::stats::LogRatio;

use super::{BenchmarkMetric, Tags, Verdict};

/// The confidence of a ratio's interval.
const CONFIDENCE: f64 = 0.95;

/// A peer, measured in turn with the benchmark that has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerResult {
    /// Its name, as `--beside` takes it.
    pub peer: String,
    /// The version that it says it has.
    pub version: Option<String>,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it failed or was skipped.
    pub error_message: Option<String>,
    /// What it measured, by the benchmark's names.
    pub metrics: Vec<BenchmarkMetric>,
    /// The benchmark beside it, for each metric that both have.
    pub ratios: Vec<PeerRatio>,
    /// What a reader should know before trusting the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A benchmark's metric beside its peer's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRatio {
    /// The metric.
    pub name: String,
    /// The tags of the benchmark's metric.
    pub tags: Option<Tags>,
    /// How much better the benchmark is than its peer: above 1 better, whether more or less of the metric is better.
    pub ratio: f64,
    /// The lower end of the ratio's interval; absent where samples are too few for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high: Option<f64>,
    /// The interval's confidence.
    pub confidence: f64,
}

impl PeerRatio {
    /// The ratios of all metrics that both have. A peer's metric fits that metric of the benchmark which has its name,
    /// its unit and all of its tags; where several fit, it says nothing about any of them.
    pub(crate) fn of(ours: &[BenchmarkMetric], theirs: &[BenchmarkMetric]) -> Vec<Self> {
        theirs
            .iter()
            .filter_map(|peer| {
                let mut fitting = ours.iter().filter(|metric| fits(metric, peer));
                let metric = fitting.next()?;
                fitting.next().is_none().then(|| Self::between(metric, peer)).flatten()
            })
            .collect()
    }

    fn between(ours: &BenchmarkMetric, theirs: &BenchmarkMetric) -> Option<Self> {
        let sign = if ours.higher_is_better { 1.0 } else { -1.0 };
        let rounds = |metric: &BenchmarkMetric| metric.statistics.clone().map(|statistics| statistics.rounds);
        let estimate = LogRatio::of_rounds(&rounds(theirs)?, &rounds(ours)?).ok();
        let (ratio, interval) = match estimate {
            Some(estimate) => {
                let interval = estimate.interval(CONFIDENCE);
                let ends = [sign * interval.low, sign * interval.high].map(f64::exp);
                (estimate.estimate, Some((ends[0].min(ends[1]), ends[0].max(ends[1]))))
            }
            // One sample on a side: a ratio whose error nobody knows.
            None => ((ours.value / theirs.value).ln(), None),
        };
        let ratio = (sign * ratio).exp();
        ratio.is_finite().then(|| Self {
            name: ours.name.clone(),
            tags: ours.tags.clone(),
            ratio,
            ci_low: interval.map(|(low, _)| low),
            ci_high: interval.map(|(_, high)| high),
            confidence: CONFIDENCE,
        })
    }
}

/// Whether a peer's metric is about a metric of the benchmark.
fn fits(ours: &BenchmarkMetric, theirs: &BenchmarkMetric) -> bool {
    let has = |(name, value)| ours.tags.as_ref().and_then(|tags| tags.get(name)) == Some(value);
    ours.name == theirs.name && ours.unit == theirs.unit && theirs.tags.iter().flatten().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, more: bool, tags: &[(&str, &str)], rounds: &[f64]) -> BenchmarkMetric {
        let tags = tags.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let rounds: Vec<_> = rounds.iter().map(|&value| vec![value]).collect();
        BenchmarkMetric::from_rounds(name, "u", more, tags, &rounds).unwrap()
    }

    #[test]
    fn above_one_is_better_whatever_is_better() {
        let ours = [
            metric("rate", true, &[("n", "1")], &[2.0, 2.1, 1.9]),
            metric("time", false, &[], &[0.5, 0.5, 0.6]),
        ];
        let theirs =
            [metric("rate", true, &[], &[1.0, 1.1, 0.9]), metric("time", false, &[], &[1.0, 1.1, 1.0])];
        let ratios = PeerRatio::of(&ours, &theirs);
        assert_eq!(ratios.len(), 2);
        for ratio in ratios {
            let (low, high) = (ratio.ci_low.unwrap(), ratio.ci_high.unwrap());
            assert!(low < ratio.ratio && ratio.ratio < high, "{ratio:?}");
            assert!((1.5..2.5).contains(&ratio.ratio), "{ratio:?}");
        }
    }

    #[test]
    fn a_metric_is_compared_with_the_one_that_it_fits() {
        let ours =
            [metric("rate", true, &[("n", "1")], &[2.0; 2]), metric("rate", true, &[("n", "2")], &[3.0; 2])];
        let one = PeerRatio::of(&ours, &[metric("rate", true, &[("n", "2")], &[1.0; 2])]);
        assert_eq!((one.len(), one[0].ratio.round()), (1, 3.0));
        for none in [
            metric("rate", true, &[], &[1.0; 2]),
            metric("rate", true, &[("n", "3")], &[1.0; 2]),
            metric("time", true, &[("n", "1")], &[1.0; 2]),
        ] {
            assert_eq!(PeerRatio::of(&ours, &[none]), []);
        }
    }

    #[test]
    fn one_sample_has_no_interval() {
        let ratios =
            PeerRatio::of(&[metric("rate", true, &[], &[3.0])], &[metric("rate", true, &[], &[2.0])]);
        assert_eq!((ratios[0].ratio, ratios[0].ci_low), (1.5, None));
    }
}
