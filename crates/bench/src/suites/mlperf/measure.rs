//! A round: the gate, what the way to LoadGen costs, LoadGen's test, and the same work without LoadGen.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use warpforge_measure::stats::median;

use super::loadgen::{self, Summary, Test};
use super::log::{Answered, Log};
use super::settings::{Mode, Scenario, Settings};
use super::system::{Null, System};
use super::{accuracy, server};
use crate::benchmark::{BenchmarkError, MetricKey, RunContext};
use crate::energy::EnergyMeter;
use crate::python::Python;
use crate::suites::stages::{Tagged as _, report_memory};

/// Parts of the round's time: to see how fast the engine is, for LoadGen's test, and for the same without LoadGen.
pub(super) const CALIBRATION: f64 = 0.1;
pub(super) const TEST: f64 = 0.6;
pub(super) const ALONE: f64 = 0.3;
/// A test of LoadGen takes at least so many seconds.
const SHORTEST: f64 = 0.05;
/// Samples of a query in the scenario MultiStream, as `mlperf.conf` has it.
const STREAMS: usize = 8;
/// Times of single queries that are kept.
const MOST_TIMES: usize = 10_000;
/// Queries, and samples of one query, that the cost of the hand-over is measured with.
const HANDED_OVER: usize = 1000;
const HANDED_OVER_BATCHED: usize = 8192;

/// What a round works with.
pub(super) struct Stage<'a, 'b> {
    pub(super) context: &'a mut RunContext<'b>,
    pub(super) settings: &'a Settings,
    /// The model's name in `mlperf.conf`.
    model: &'static str,
    pub(super) system: &'a mut dyn System,
    python: Python,
    folder: PathBuf,
}

/// Runs a round and reports its metrics.
///
/// # Errors
/// A wrong answer, what LoadGen or the engine says, and that the user stopped it; what was measured is reported before.
pub(super) fn run(
    context: &mut RunContext<'_>,
    settings: &Settings,
    model: &'static str,
    system: &mut dyn System,
) -> Result<(), BenchmarkError> {
    let python = loadgen::python()?;
    context.plan(3);
    context.begin("gate");
    system.judge()?;
    if context.stopped() {
        return Err(BenchmarkError::Stopped);
    }
    let folder = settings.new_logs()?;
    context.warn(settings.unofficial(context.time().as_secs_f64() * TEST));
    let (version, logs) = (loadgen::version(&python), settings.all_logs());
    context.warn(format!("logs of LoadGen {version} are in {}", logs.display()));
    let mut stage = Stage { context, settings, model, system, python, folder };
    stage.context.begin("hand-over");
    stage.hand_over()?;
    stage.context.begin(settings.scenario.name());
    match (settings.mode, settings.scenario) {
        (Mode::Accuracy, _) => accuracy::run(&mut stage)?,
        (Mode::Performance, Scenario::Server) => server::run(&mut stage)?,
        (Mode::Performance, _) => stage.stream()?,
    }
    report_memory(stage.context, settings)
}

impl Stage<'_, '_> {
    /// A part of the round's time, in seconds.
    pub(super) fn part(&self, part: f64) -> f64 {
        (self.context.time().as_secs_f64() * part).max(SHORTEST)
    }

    /// What a query costs with an engine that takes no time: one that is waited for, and one sample of many in a query.
    fn hand_over(&mut self) -> Result<(), BenchmarkError> {
        let stop = || self.context.stopped();
        let common = "*.*.performance_sample_count_override = 1\n*.*.min_duration = 1\n";
        let test = |name: &str, scenario, own: String| {
            let logs = self.folder.join(format!("hand_over_{name}"));
            let conf = format!("{common}{own}");
            let test = Test { model: "resnet50", scenario, mode: Mode::Performance, conf, logs };
            loadgen::run(&self.python, &test, &mut Null, &mut Log::new(), &stop)
        };
        let single = format!(
            "*.SingleStream.min_query_count = {HANDED_OVER}\n*.SingleStream.target_latency = 0.001\n"
        );
        let single = test("single", Scenario::SingleStream, single)?;
        let batched =
            format!("*.Offline.min_query_count = {HANDED_OVER_BATCHED}\n*.Offline.target_qps = 1\n");
        let batched = test("batched", Scenario::Offline, batched)?;
        let costs = [
            ("single", single.needed("50.00 percentile latency (ns)")? / 1e3),
            ("batched", 1e6 / batched.needed("Samples per second")?),
        ];
        for (name, cost) in costs {
            let key = MetricKey::less_is_better("query_overhead", "us").tag("hand_over", name);
            self.context.record(key, vec![cost])?;
        }
        Ok(())
    }

    /// Seconds that the engine needs for queries of so many samples.
    pub(super) fn calibrate(&mut self, samples: usize) -> Result<f64, BenchmarkError> {
        let (all, batch) = (self.system.samples(), self.system.batch());
        let mut next = 0;
        let mut query = || -> Result<f64, BenchmarkError> {
            let list: Vec<usize> = (0..samples).map(|at| (next + at) % all).collect();
            next += samples;
            let began = Instant::now();
            for samples in list.chunks(batch) {
                self.system.answer(samples, &mut |_| Ok(()))?;
            }
            Ok(began.elapsed().as_secs_f64())
        };
        // The first time is longer: memory is touched, threads wake up.
        query()?;
        let time = Duration::from_secs_f64(self.context.time().as_secs_f64() * CALIBRATION);
        let (began, mut times) = (Instant::now(), Vec::new());
        while times.is_empty() || (began.elapsed() < time && !self.context.stopped()) {
            times.push(query()?);
        }
        Ok(times.iter().sum::<f64>() / times.len() as f64)
    }

    /// Has LoadGen run a test, with its logs in a folder of this name. Of one that did not come to its end the queries so far
    /// are reported.
    ///
    /// # Errors
    /// As [`loadgen::run`].
    pub(super) fn test(&mut self, name: &str, conf: String) -> Result<(Summary, Log), BenchmarkError> {
        let Settings { scenario, mode, .. } = *self.settings;
        let test = Test { model: self.model, scenario, mode, conf, logs: self.folder.join(name) };
        let mut log = Log::new();
        let stop = || self.context.stopped();
        match loadgen::run(&self.python, &test, self.system, &mut log, &stop) {
            Ok(summary) => Ok((summary, log)),
            Err(error) => {
                self.queries(&log)?;
                Err(error)
            }
        }
    }

    /// The folder of a test.
    pub(super) fn logs(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The scenarios in which a query waits for the one before, or there is only one.
    fn stream(&mut self) -> Result<(), BenchmarkError> {
        let scenario = self.settings.scenario;
        let samples = match scenario {
            Scenario::SingleStream => 1,
            Scenario::MultiStream => STREAMS,
            Scenario::Server | Scenario::Offline => self.system.batch(),
        };
        let each = self.calibrate(samples)?;
        let seconds = self.part(TEST);
        // LoadGen makes its queries before the test: too few would end it early.
        let expected = match scenario {
            Scenario::Offline => format!("*.Offline.target_qps = {}\n", 1.1 * samples as f64 / each),
            _ => format!("*.{}.target_latency = {:.6}\n", scenario.name(), 500.0 * each),
        };
        let mut meter = EnergyMeter::new();
        let before = meter.joules();
        let (summary, log) = self.test("performance", self.settings.conf(seconds) + &expected)?;
        let joules = before.zip(meter.joules()).map(|(before, after)| after - before);
        self.report(&summary, &log, joules)?;
        let rate = match scenario {
            Scenario::Offline => summary.needed("Samples per second")?,
            _ => samples as f64 * 1e9 / summary.needed("Mean latency (ns)")?,
        };
        self.record(MetricKey::more_is_better("samples_per_second", "samples/s"), vec![rate])?;
        self.alone(&log)
    }

    /// The same batches without LoadGen: by how much it makes them slower.
    fn alone(&mut self, log: &Log) -> Result<(), BenchmarkError> {
        let time = Duration::from_secs_f64(self.part(ALONE));
        let (began, mut alone) = (Instant::now(), Vec::new());
        for samples in log.batches() {
            if began.elapsed() > time || self.context.stopped() {
                break;
            }
            let begun = Instant::now();
            self.system.answer(samples, &mut |_| Ok(()))?;
            alone.push(begun.elapsed().as_secs_f64());
        }
        self.overhead(&log.batch_seconds(), &alone)
    }

    /// Reports how much longer batches or queries take with LoadGen: the median, because what disturbs some of them is not
    /// LoadGen.
    pub(super) fn overhead(&mut self, with: &[f64], alone: &[f64]) -> Result<(), BenchmarkError> {
        let more: Vec<f64> =
            with.iter().zip(alone).map(|(with, alone)| 100.0 * (with / alone - 1.0)).collect();
        let more = median(&more).ok_or(BenchmarkError::Stopped)?;
        self.record(MetricKey::less_is_better("loadgen_overhead_percent", "%"), vec![more])
    }

    /// Reports what every test of performance has: LoadGen's verdict and latencies, queries, tokens and energy.
    pub(super) fn report(
        &mut self,
        summary: &Summary,
        log: &Log,
        joules: Option<f64>,
    ) -> Result<(), BenchmarkError> {
        if let Some(reason) = summary.invalid() {
            self.context.warn(reason);
        }
        if self.settings.scenario != Scenario::Offline {
            let latencies = [
                ("latency_p50", "50.00 percentile latency (ns)"),
                ("latency_p90", "90.00 percentile latency (ns)"),
                ("latency_p99", "99.00 percentile latency (ns)"),
            ];
            for (name, line) in latencies {
                self.record(MetricKey::less_is_better(name, "us"), vec![summary.needed(line)? / 1e3])?;
            }
        }
        let tokens: u32 = log.answered().iter().map(|query| query.tokens).sum();
        if let Some(seconds) = log.seconds(log.batches().count()).filter(|_| tokens > 0) {
            let key = MetricKey::more_is_better("tokens_per_second", "tokens/s");
            self.record(key, vec![f64::from(tokens) / seconds])?;
        }
        let samples: usize = log.answered().iter().map(|query| query.samples).sum();
        if let Some(joules) = joules.filter(|_| samples > 0) {
            let key = MetricKey::less_is_better("energy", "J").tag("of", "sample");
            self.record(key, vec![joules / samples as f64])?;
        }
        self.queries(log)
    }

    /// Reports the time of every query, and of its tokens.
    fn queries(&mut self, log: &Log) -> Result<(), BenchmarkError> {
        let answered = log.answered();
        let times = |of: fn(&Answered) -> Option<f64>| -> Vec<f64> {
            answered.iter().filter_map(of).take(MOST_TIMES).map(|seconds| seconds * 1e3).collect()
        };
        let metrics = [
            (MetricKey::less_is_better("query_time", "ms"), times(|query| Some(query.time))),
            (MetricKey::less_is_better("time_to_first_token", "ms"), times(|query| query.first)),
            (MetricKey::less_is_better("token_time", "ms"), times(|query| query.token)),
        ];
        for (key, values) in metrics {
            // A single query with all samples has no time worth keeping; other models have no tokens.
            if !values.is_empty() && self.settings.scenario != Scenario::Offline {
                self.record(key, values)?;
            }
        }
        Ok(())
    }

    /// Reports a metric of this scenario.
    pub(super) fn record(&mut self, key: MetricKey, values: Vec<f64>) -> Result<(), BenchmarkError> {
        self.context.record(self.settings.tag(key), values)
    }
}
