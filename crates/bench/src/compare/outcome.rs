//! What a comparison comes to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::{BenchmarkId, BenchmarkSuiteRun, Tags};

/// The verdict on one metric, or on a whole comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Better by more than the noise threshold, and not by chance.
    Improved,
    /// Worse by more than the noise threshold, and not by chance.
    Regressed,
    /// Any change is smaller than the noise threshold.
    Unchanged,
    /// The samples do not decide.
    Inconclusive,
}

impl Change {
    /// The name used in records and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Unchanged => "unchanged",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Whether something is different.
    #[must_use]
    pub fn is_changed(self) -> bool {
        matches!(self, Self::Improved | Self::Regressed)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One of the two runs compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The earlier run, the baseline.
    Before,
    /// The later run.
    After,
}

/// How the two runs compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Regressed if a metric regressed or a benchmark broke; else improved if one improved; else inconclusive if one
    /// is inconclusive or missing from the later run; else unchanged.
    pub verdict: Change,
    /// The earlier run, the baseline.
    pub before: RunLabel,
    /// The later run.
    pub after: RunLabel,
    /// Changes up to this size are never called improved or regressed.
    pub noise_threshold_percent: f64,
    /// The confidence level of each metric's interval, and of all verdicts of change together.
    pub confidence: f64,
    /// How many metrics came to which verdict.
    pub counts: Counts,
    /// The metrics both runs have.
    pub metrics: Vec<MetricComparison>,
    /// The metrics that only one run has.
    pub unmatched: Vec<Unmatched>,
    /// Benchmarks that ran before and fail now.
    pub broken: Vec<Broken>,
    /// What a reader should know before trusting the verdicts.
    pub warnings: Vec<String>,
}

/// Identifies a run in a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLabel {
    /// The run's id; empty in records made by other tools.
    pub run_id: String,
    /// The suite or the components run.
    pub suite: String,
    /// The version of `warpt` that made it.
    pub tool_version: String,
    /// When the first benchmark began.
    pub start_time: Option<jiff::Timestamp>,
}

impl RunLabel {
    pub(crate) fn of(run: &BenchmarkSuiteRun) -> Self {
        Self {
            run_id: run.run_id.clone(),
            suite: run.suite.clone(),
            tool_version: run.tool_version.clone(),
            start_time: run.benchmarks.iter().map(|result| result.start_time).min(),
        }
    }
}

/// How one metric changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// The quantity.
    pub name: String,
    /// The unit of the values.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub higher_is_better: bool,
    /// What distinguishes it from others of the same name.
    pub tags: Tags,
    /// The earlier value.
    pub before: f64,
    /// The later value.
    pub after: f64,
    /// The change of the value, by the rounds' medians where there are samples; negative if it fell.
    pub change_percent: Option<f64>,
    /// The change from one value to the other as they stand; null if the units differ.
    #[serde(default)]
    pub values_change_percent: Option<f64>,
    /// Whether the core ran at another speed in the later run, and the change and its interval are of values at equal
    /// speed.
    #[serde(default)]
    pub speed_adjusted: bool,
    /// Lower end of the change's interval for this metric alone; null without samples.
    pub ci_low_percent: Option<f64>,
    /// Upper end of the change's interval for this metric alone.
    pub ci_high_percent: Option<f64>,
    /// Lower end of the interval widened for the number of metrics compared; a change is called one if this
    /// interval leaves out zero.
    pub family_ci_low_percent: Option<f64>,
    /// Upper end of the interval widened for the number of metrics compared.
    pub family_ci_high_percent: Option<f64>,
    /// The verdict.
    pub verdict: Change,
    /// Why the verdict is not a firmer one, or what to mind about it.
    pub note: Option<String>,
}

impl MetricComparison {
    /// The name and the tags' values, for tables.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, &self.tags)
    }
}

/// A metric that only one run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// The quantity.
    pub name: String,
    /// What distinguishes it from others of the same name.
    pub tags: Tags,
    /// The run that has it.
    pub only_in: Side,
    /// Why the other has not, as far as its record says.
    pub reason: Option<String>,
}

impl Unmatched {
    /// The name and the tags' values, for tables.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, &self.tags)
    }
}

/// A benchmark that succeeded in the earlier run and failed in the later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The benchmark.
    pub benchmark: BenchmarkId,
    /// What the later record says about it.
    pub error_message: Option<String>,
}

/// How many metrics came to which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Metrics that improved.
    pub improved: usize,
    /// Metrics that regressed.
    pub regressed: usize,
    /// Metrics that did not change.
    pub unchanged: usize,
    /// Metrics that the samples do not decide.
    pub inconclusive: usize,
}

impl Counts {
    pub(super) fn of(metrics: &[MetricComparison]) -> Self {
        let count = |verdict| metrics.iter().filter(|metric| metric.verdict == verdict).count();
        Self {
            improved: count(Change::Improved),
            regressed: count(Change::Regressed),
            unchanged: count(Change::Unchanged),
            inconclusive: count(Change::Inconclusive),
        }
    }

    /// Metrics with a verdict other than inconclusive.
    #[must_use]
    pub fn decided(self) -> usize {
        self.improved + self.regressed + self.unchanged
    }
}

/// The verdict on the whole, as [`Comparison::verdict`] describes it.
pub(super) fn overall(metrics: &[MetricComparison], unmatched: &[Unmatched], broken: &[Broken]) -> Change {
    let counts = Counts::of(metrics);
    let missing = unmatched.iter().any(|metric| metric.only_in == Side::Before);
    if counts.regressed > 0 || !broken.is_empty() {
        Change::Regressed
    } else if counts.improved > 0 {
        Change::Improved
    } else if counts.inconclusive > 0 || missing || metrics.is_empty() {
        Change::Inconclusive
    } else {
        Change::Unchanged
    }
}

fn label(name: &str, tags: &Tags) -> String {
    std::iter::once(name).chain(tags.values().map(String::as_str)).collect::<Vec<_>>().join(" ")
}
