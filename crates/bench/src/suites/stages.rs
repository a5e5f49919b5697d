//! Workloads of several stages: repeated for a time, with the time of each stage, energy and memory.

use std::time::{Duration, Instant};

use crate::benchmark::{BenchmarkError, MetricKey, RunContext};
use crate::energy::EnergyMeter;

/// Settings that say what a figure depends on besides the machine.
pub(crate) trait Tagged {
    /// The metric with those tags.
    fn tag(&self, key: MetricKey) -> MetricKey;
}

/// Seconds of the named steps of one run.
pub(crate) type StageTimes = Vec<(&'static str, f64)>;

/// Times a step and adds it to the stages.
pub(crate) fn timed<T>(stages: &mut StageTimes, name: &'static str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    stages.push((name, began.elapsed().as_secs_f64()));
    result
}

/// The samples of a workload: seconds of each run and of its stages, and joules where they are measured.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    seconds: Vec<f64>,
    stages: Vec<StageTimes>,
    joules: Vec<f64>,
}

/// Runs a workload once, has its answer judged, and then runs it for the round's time. Nothing is recorded of a workload
/// whose answer is wrong.
///
/// # Errors
/// What the workload or the gate says, and that the user stopped the run.
pub(crate) fn measure<T>(
    context: &RunContext<'_>,
    mut work: impl FnMut(&mut StageTimes) -> Result<T, BenchmarkError>,
    gate: impl FnOnce(&T) -> Result<(), BenchmarkError>,
    time: Duration,
) -> Result<(T, Samples), BenchmarkError> {
    let first = work(&mut StageTimes::new())?;
    gate(&first)?;
    let mut samples = Samples::default();
    let mut meter = EnergyMeter::new();
    let began = Instant::now();
    while samples.seconds.is_empty() || (began.elapsed() < time && !context.stopped()) {
        let mut stages = StageTimes::new();
        let before = meter.joules();
        let run = Instant::now();
        std::hint::black_box(work(&mut stages)?);
        samples.seconds.push(run.elapsed().as_secs_f64());
        samples.stages.push(stages);
        samples.joules.extend(before.zip(meter.joules()).map(|(before, after)| after - before));
    }
    if context.stopped() {
        return Err(BenchmarkError::Stopped);
    }
    Ok((first, samples))
}

impl Samples {
    /// The rate of some amount of work in each run.
    pub(crate) fn rates(&self, amount: f64) -> Vec<f64> {
        self.seconds.iter().map(|seconds| amount / seconds).collect()
    }

    /// Reports the rate of some amount of work, the time of each stage, and the energy of a run where it is measured.
    pub(crate) fn report(
        &self,
        context: &mut RunContext<'_>,
        tagged: &dyn Tagged,
        key: MetricKey,
        amount: f64,
    ) -> Result<(), BenchmarkError> {
        let tags = key.tags.clone();
        context.record(tagged.tag(key), self.rates(amount))?;
        let names: Vec<&'static str> =
            self.stages.first().into_iter().flatten().map(|stage| stage.0).collect();
        for (index, name) in names.into_iter().enumerate() {
            let mut stage = tagged.tag(MetricKey::less_is_better("stage_time", "s")).tag("stage", name);
            stage.tags.extend(tags.clone());
            let values = self.stages.iter().filter_map(|stages| stages.get(index)).map(|stage| stage.1);
            context.record(stage, values.collect())?;
        }
        if self.joules.is_empty() {
            return Ok(());
        }
        let mut energy = tagged.tag(MetricKey::less_is_better("energy", "J"));
        energy.tags.extend(tags);
        context.record(energy, self.joules.clone())
    }
}

/// Reports the most memory that this process has had.
pub(crate) fn report_memory(context: &mut RunContext<'_>, tagged: &dyn Tagged) -> Result<(), BenchmarkError> {
    // A system that does not tell gives no figure.
    match warpforge_runtime::memory::process_peak_bytes() {
        Some(bytes) => {
            let key = tagged.tag(MetricKey::less_is_better("peak_rss", "MiB"));
            context.record(key, vec![bytes as f64 / f64::from(1 << 20)])
        }
        None => Ok(()),
    }
}
