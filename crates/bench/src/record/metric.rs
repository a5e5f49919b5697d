//! A single figure of a run, with the samples behind it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use warpforge_measure::stats::Summary;
pub use warpforge_measure::stats::{Outliers, Spread};

/// What distinguishes metrics of one name within a benchmark, such as `threads` or `dtype`.
pub type Tags = BTreeMap<String, String>;

/// A single scalar result of a benchmark run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkMetric {
    /// The quantity, such as `gflops` or `latency_p50`.
    pub name: String,
    /// The value: the median of the rounds' medians.
    pub value: f64,
    /// The unit, such as `GFLOP/s`.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub higher_is_better: bool,
    /// What distinguishes this metric from others of the same name.
    pub tags: Option<Tags>,
    /// The samples behind the value; absent in records made by other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<MetricStatistics>,
}

impl BenchmarkMetric {
    /// A metric with its statistics from the samples of each round. `None` if there is no sample or one is not finite.
    #[must_use]
    pub fn from_rounds(
        name: &str,
        unit: &str,
        higher_is_better: bool,
        tags: Tags,
        rounds: &[Vec<f64>],
    ) -> Option<Self> {
        let summary = Summary::of_rounds(rounds)?;
        Some(Self {
            name: name.to_owned(),
            value: summary.value,
            unit: unit.to_owned(),
            higher_is_better,
            tags: (!tags.is_empty()).then_some(tags),
            statistics: Some(MetricStatistics {
                spread: summary.spread,
                rounds: rounds.to_vec(),
                core_speeds: Vec::new(),
            }),
        })
    }
}

/// The samples behind a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricStatistics {
    /// How they lie around the metric's value.
    #[serde(flatten)]
    pub spread: Spread,
    /// The samples of each round, in the order in which they were taken.
    pub rounds: Vec<Vec<f64>>,
    /// How fast the core ran around each sample, in dependent multiplications a nanosecond; empty if not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_speeds: Vec<Vec<f64>>,
}
