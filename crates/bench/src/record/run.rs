//! The result of one benchmark and of a whole run.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warpforge_inventory::ListOutput;
use warpforge_inventory::live::TimelineRecord;

use super::{BenchmarkComponent, BenchmarkMetric, BenchmarkSpec, Conditions, PeerResult};

/// What a run of one benchmark came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Measured.
    Pass,
    /// Tried, and went wrong.
    Fail,
    /// Measured too little to say: interrupted, or noise too large.
    Inconclusive,
    /// Not tried; the reason is in `error_message`.
    Skipped,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Skipped => "SKIPPED",
        })
    }
}

/// The result of executing one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRunResult {
    /// The benchmark, with the parameters it ran with.
    pub spec: BenchmarkSpec,
    /// What was measured; complete only when `success` is true.
    pub metrics: Vec<BenchmarkMetric>,
    /// Whether the benchmark ran to its end.
    pub success: bool,
    /// Why it failed or was skipped.
    pub error_message: Option<String>,
    /// When it began.
    pub start_time: Timestamp,
    /// When it ended.
    pub end_time: Timestamp,
    /// The machine it ran on, as `warpt list` shows it.
    pub system: Option<ListOutput>,
    /// What it came to; absent in records made by other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What the machine was doing meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// What a reader should know before trusting the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What other programs did in turn with it, where it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PeerResult>,
}

/// The result of a suite, or of a component-driven run: the main export shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSuiteRun {
    /// The version of this record's shape.
    #[serde(default)]
    pub schema_version: u32,
    /// Identifies the run in the history; empty in records made by other tools.
    #[serde(default)]
    pub run_id: String,
    /// The version of `warpt` that made it.
    #[serde(default)]
    pub tool_version: String,
    /// The suite's name, or the components' names joined by `-`.
    pub suite: String,
    /// The components exercised.
    pub components: Vec<BenchmarkComponent>,
    /// One result a benchmark.
    pub benchmarks: Vec<BenchmarkRunResult>,
    /// Anything else worth keeping, as text.
    pub metadata: Option<BTreeMap<String, String>>,
    /// What the monitor saw beside the run, where it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineRecord>,
}
