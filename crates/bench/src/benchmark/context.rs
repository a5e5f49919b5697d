//! What a benchmark is given while it runs one round.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpforge_measure::{SampleConfig, Timing, sample};

use super::BenchmarkError;
use crate::record::{BenchmarkId, ParamValue, Params, Tags};

/// One round of one benchmark, as the runner asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Which benchmark.
    pub id: BenchmarkId,
    /// Every parameter, with the user's values in place.
    pub params: Params,
    /// Seconds to spend measuring in this round, over all its metrics.
    pub seconds: f64,
    /// Seconds of load before the first measurement.
    pub burn_in_seconds: f64,
    /// The peer that runs in place of the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// What a round reports while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Measurement `done` of `total` is about to begin.
    Progress {
        /// Measurements behind us.
        done: usize,
        /// Measurements in all.
        total: usize,
        /// What is being measured.
        label: String,
    },
    /// A metric of this round, with its samples.
    Metric {
        /// Which metric.
        key: MetricKey,
        /// Its samples, in order, in the metric's unit.
        values: Vec<f64>,
    },
    /// How fast the core ran around each sample of a metric already reported.
    CoreSpeed {
        /// Which metric.
        key: MetricKey,
        /// One value a sample, as [`warpforge_measure::core_speed`] has it.
        values: Vec<f64>,
    },
    /// The version of the program that runs.
    Version {
        /// As the program says it.
        version: String,
    },
    /// Something a reader should know before trusting the results.
    Warning {
        /// The text.
        message: String,
    },
}

/// What identifies a metric within a benchmark, and how to read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricKey {
    /// The quantity, such as `gflops`.
    pub name: String,
    /// The unit, such as `GFLOP/s`.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub higher_is_better: bool,
    /// What distinguishes it from others of the same name.
    pub tags: Tags,
}

impl MetricKey {
    /// A metric of which more is better.
    pub fn more_is_better(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), higher_is_better: true, tags: Tags::new() }
    }

    /// A metric of which less is better.
    pub fn less_is_better(name: &str, unit: &str) -> Self {
        Self { higher_is_better: false, ..Self::more_is_better(name, unit) }
    }

    /// The same metric with a tag added.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass numbers and texts as they are")]
    pub fn tag(mut self, name: &str, value: impl ToString) -> Self {
        self.tags.insert(name.to_owned(), value.to_string());
        self
    }

    /// A label for progress and tables: the name and the tags' values.
    #[must_use]
    pub fn label(&self) -> String {
        std::iter::once(&self.name).chain(self.tags.values()).cloned().collect::<Vec<_>>().join(" ")
    }
}

/// What a running benchmark works with: its parameters, its share of the time, and the receiver of its metrics.
pub struct RunContext<'a> {
    round: &'a Round,
    stop: &'a dyn Fn() -> bool,
    report: &'a mut dyn FnMut(Event),
    total: usize,
    done: usize,
}

impl<'a> RunContext<'a> {
    /// A context for one round; `stop` is asked between samples, `report` gets every event.
    pub fn new(round: &'a Round, stop: &'a dyn Fn() -> bool, report: &'a mut dyn FnMut(Event)) -> Self {
        Self { round, stop, report, total: 1, done: 0 }
    }

    /// Says how many measurements this round will make, so that each gets an equal share of the time.
    pub fn plan(&mut self, measurements: usize) {
        self.total = measurements.max(1);
    }

    /// The time one measurement of the plan may take.
    #[must_use]
    pub fn share(&self) -> Duration {
        Duration::from_secs_f64(self.round.seconds / self.total as f64)
    }

    /// The time for all measurements of this round together.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.round.seconds)
    }

    /// The time to load the machine before the first measurement.
    #[must_use]
    pub fn burn_in(&self) -> Duration {
        Duration::from_secs_f64(self.round.burn_in_seconds)
    }

    /// Whether the user asked to stop; long workloads ask between steps.
    #[must_use]
    pub fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// Says what is being measured now.
    pub fn begin(&mut self, label: &str) {
        let event = Event::Progress { done: self.done, total: self.total, label: label.to_owned() };
        (self.report)(event);
        self.done += 1;
    }

    /// Measures `routine` for one share of the time and reports the metric. The routine does its work the given
    /// number of times and says how long that took; `to_value` turns seconds per iteration into the metric's unit.
    ///
    /// # Errors
    /// [`BenchmarkError::Stopped`] if the user stopped the run before there was a sample.
    pub fn measure<T: Into<Timing>>(
        &mut self,
        key: MetricKey,
        to_value: impl Fn(f64) -> f64,
        routine: impl FnMut(u64) -> T,
    ) -> Result<(), BenchmarkError> {
        self.measure_for(self.share(), key, to_value, routine)
    }

    /// As [`Self::measure`], for a time of its own: some measurements need more than others.
    ///
    /// # Errors
    /// As for [`Self::measure`].
    pub fn measure_for<T: Into<Timing>>(
        &mut self,
        time: Duration,
        key: MetricKey,
        to_value: impl Fn(f64) -> f64,
        mut routine: impl FnMut(u64) -> T,
    ) -> Result<(), BenchmarkError> {
        self.begin(&key.label());
        let config = SampleConfig::within(time);
        let samples = sample(&config, self.stop, &mut |iterations| routine(iterations).into());
        let values = samples.seconds_per_iteration.into_iter().map(to_value).collect();
        self.record(key.clone(), values)?;
        (self.report)(Event::CoreSpeed { key, values: samples.core_speeds });
        Ok(())
    }

    /// Reports a metric whose samples the benchmark took itself.
    ///
    /// # Errors
    /// [`BenchmarkError::Stopped`] if there are no samples because the user stopped the run.
    pub fn record(&mut self, key: MetricKey, values: Vec<f64>) -> Result<(), BenchmarkError> {
        if values.is_empty() {
            return Err(if self.stopped() {
                BenchmarkError::Stopped
            } else {
                BenchmarkError::Failed(format!("{}: no samples", key.label()))
            });
        }
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(BenchmarkError::Failed(format!("{}: a sample is {value}", key.label())));
        }
        (self.report)(Event::Metric { key, values });
        Ok(())
    }

    /// Says which version of an external program runs.
    pub fn version(&mut self, version: impl Into<String>) {
        (self.report)(Event::Version { version: version.into() });
    }

    /// Attaches a warning to the result.
    pub fn warn(&mut self, message: impl Into<String>) {
        (self.report)(Event::Warning { message: message.into() });
    }

    /// A whole-number parameter.
    ///
    /// # Panics
    /// If the specification has no such parameter of that type, which is a mistake in the benchmark.
    #[must_use]
    pub fn int(&self, name: &str) -> i64 {
        int(&self.round.params, name)
    }

    /// A text parameter.
    ///
    /// # Panics
    /// As for [`Self::int`].
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        text(&self.round.params, name)
    }

    /// Every parameter of the round.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.round.params
    }
}

/// A whole-number parameter that the specification declares.
///
/// # Panics
/// If it declares none of that name and type, which is a mistake in the benchmark.
#[must_use]
pub fn int(params: &Params, name: &str) -> i64 {
    match params.get(name) {
        Some(ParamValue::Int(value)) => *value,
        other => panic!("parameter `{name}` is {other:?}, not a whole number"),
    }
}

/// A text parameter that the specification declares.
///
/// # Panics
/// If it declares none of that name and type, which is a mistake in the benchmark.
#[must_use]
pub fn text<'a>(params: &'a Params, name: &str) -> &'a str {
    match params.get(name) {
        Some(ParamValue::Text(value)) => value,
        other => panic!("parameter `{name}` is {other:?}, not text"),
    }
}

/// A parameter that is a number, as the specification declares.
///
/// # Panics
/// If it declares none of that name and type, which is a mistake in the benchmark.
#[must_use]
pub fn float(params: &Params, name: &str) -> f64 {
    match params.get(name) {
        Some(ParamValue::Float(value)) => *value,
        // JSON does not tell 2 from 2.0.
        Some(ParamValue::Int(value)) => *value as f64,
        other => panic!("parameter `{name}` is {other:?}, not a number"),
    }
}
