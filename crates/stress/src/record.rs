//! What tests came to.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use warpforge_inventory::live::{Conditions, TimelineRecord};

use crate::catalog::{Component, Test};
use crate::load::Mismatch;
use crate::rate::Rate;
use crate::telemetry::Telemetry;

/// What a test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Every result was right.
    Pass,
    /// A result was wrong, or the load broke off.
    Fail,
    /// It did not run.
    Skipped,
}

impl Verdict {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Skipped => "SKIPPED",
        }
    }
}

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// What it loaded.
    pub component: Component,
    /// Its name.
    pub test: String,
    /// What it came to.
    pub verdict: Verdict,
    /// Why it did not run or broke off.
    pub reason: Option<String>,
    /// Whether the user ended it before its time.
    pub stopped: bool,
    /// Iterations done.
    pub iterations: u64,
    /// How long it ran.
    pub seconds: f64,
    /// How fast; null without an iteration.
    pub rate: Option<Rate>,
    /// Results that were wrong.
    pub errors: u64,
    /// The first of them.
    #[serde(default)]
    pub mismatches: Vec<Mismatch>,
    /// Whether the processor or a GPU lowered its clocks for heat or power; null where none reports it.
    pub throttled: Option<bool>,
    /// What the machine was doing meanwhile; null if it did not run.
    pub conditions: Option<Conditions>,
    /// Temperatures and power.
    #[serde(default)]
    pub telemetry: Telemetry,
    /// What a reader should know about how the load was made.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The samples behind the telemetry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineRecord>,
}

impl TestResult {
    pub(crate) fn new(test: &Test) -> Self {
        Self {
            component: test.component,
            test: test.name.to_owned(),
            verdict: Verdict::Skipped,
            reason: None,
            stopped: false,
            iterations: 0,
            seconds: 0.0,
            rate: None,
            errors: 0,
            mismatches: Vec::new(),
            throttled: None,
            conditions: None,
            telemetry: Telemetry::default(),
            notes: Vec::new(),
            timeline: Vec::new(),
        }
    }
}

/// The results of all tests of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressRun {
    /// The version of this form.
    pub schema_version: u32,
    /// When the first test began.
    pub started: Timestamp,
    /// Seconds that each test was to run.
    pub duration_seconds: f64,
    /// The tests.
    pub tests: Vec<TestResult>,
}

impl StressRun {
    /// The version that this program writes.
    pub const SCHEMA_VERSION: u32 = 1;

    /// A run that begins now.
    #[must_use]
    pub fn begin(duration_seconds: f64) -> Self {
        Self {
            schema_version: Self::SCHEMA_VERSION,
            started: Timestamp::now(),
            duration_seconds,
            tests: Vec::new(),
        }
    }

    /// Wrong results of all tests.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.tests.iter().map(|test| test.errors).sum()
    }
}
