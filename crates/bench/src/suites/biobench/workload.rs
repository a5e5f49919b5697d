//! What the benchmarks of this suite share: parameters, data, repetition, stages and memory.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warpforge_bio::formats::{FormatError, read_nucleotides};
use warpforge_bio::map::Reference;
use warpforge_bio::{available_threads, sets, simulate};

use crate::benchmark::{BenchmarkError, MetricKey, RunContext, int, text};
use crate::energy::EnergyMeter;
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};

/// How much work a benchmark does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Seconds.
    Small,
    /// Tens of seconds.
    Medium,
    /// Minutes.
    Large,
}

impl Size {
    /// The value for this size.
    pub(super) fn pick<T>(self, small: T, medium: T, large: T) -> T {
        match self {
            Self::Small => small,
            Self::Medium => medium,
            Self::Large => large,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.pick("small", "medium", "large")
    }
}

/// The parameters that every benchmark has, checked.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) size: Size,
    pub(super) threads: usize,
    pub(super) seed: u64,
    /// A file of real data; `None` for generated data.
    pub(super) data: Option<PathBuf>,
    /// Where inputs and results are written for other tools.
    pub(super) export: Option<PathBuf>,
}

impl Common {
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let bad = |name: &str, reason: &str| {
            bad_value(name, &params.get(name).map(ToString::to_string).unwrap_or_default(), reason)
        };
        let size = match text(params, "size") {
            "small" => Size::Small,
            "medium" => Size::Medium,
            "large" => Size::Large,
            _ => return Err(bad("size", "it takes small, medium or large")),
        };
        let threads = match int(params, "threads") {
            0 => available_threads(),
            threads => usize::try_from(threads)
                .ok()
                .filter(|&threads| threads <= 4096)
                .ok_or_else(|| bad("threads", "it takes 0 (all) to 4096"))?,
        };
        let seed = u64::try_from(int(params, "seed")).map_err(|_| bad("seed", "a seed is not negative"))?;
        let data = match text(params, "data") {
            "" => None,
            data => Some(sets::locate(data).map_err(|reason| bad("data", &reason))?),
        };
        let export = match text(params, "export") {
            "" => None,
            folder if Path::new(folder).is_dir() => Some(PathBuf::from(folder)),
            _ => return Err(bad("export", "there is no such folder")),
        };
        Ok(Self { size, threads, seed, data, export })
    }

    /// The genome: the first sequences of the file, or a generated one of this length.
    pub(super) fn genome(&self, length: usize) -> Result<Reference, BenchmarkError> {
        let sequences = match &self.data {
            Some(path) => {
                let records = read_nucleotides(path).map_err(bad_data)?;
                records.into_iter().map(|record| (record.name, record.codes)).collect()
            }
            None => vec![("chr1".to_owned(), simulate::genome(length, self.seed))],
        };
        Reference::new(sequences).map_err(|error| BenchmarkError::BadInput(format!("data: {error}")))
    }

    /// The longest sequence of a reference, which reads of this length are simulated from.
    pub(super) fn longest(reference: &Reference, read: usize) -> Result<usize, BenchmarkError> {
        let length = |&contig: &usize| reference.sequence(contig).len();
        let longest = (0..reference.names().len()).max_by_key(length).unwrap_or(0);
        if length(&longest) < read {
            return Err(BenchmarkError::BadInput(format!(
                "data: the longest sequence, `{}`, has {} bases; reads of {read} bases are taken from it",
                reference.names()[longest],
                length(&longest)
            )));
        }
        Ok(longest)
    }

    /// The tags of every metric: what the figure depends on besides the machine.
    pub(super) fn tag(&self, key: MetricKey) -> MetricKey {
        let data = self.data.as_ref().and_then(|path| path.file_name());
        let data = data.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned());
        key.tag("size", self.size.name()).tag("data", data).tag("threads", self.threads)
    }
}

/// A parameter that is a whole number of a range.
pub(super) fn within(params: &Params, name: &str, least: i64, most: i64) -> Result<usize, BenchmarkError> {
    match int(params, name) {
        value if (least..=most).contains(&value) => Ok(value as usize),
        value => Err(bad_value(name, &value, &format!("it takes {least} to {most}"))),
    }
}

/// A parameter that is an odd number of a range.
pub(super) fn odd_within(
    params: &Params,
    name: &str,
    least: i64,
    most: i64,
) -> Result<usize, BenchmarkError> {
    let refused = |value| bad_value(name, &value, &format!("it takes an odd number from {least} to {most}"));
    let value = int(params, name);
    within(params, name, least, most).ok().filter(|value| value % 2 == 1).ok_or_else(|| refused(value))
}

/// A parameter that makes no sense.
pub(super) fn bad_value(name: &str, value: &dyn Display, reason: &str) -> BenchmarkError {
    BenchmarkError::BadInput(format!("{name}={value}: {reason}"))
}

/// An unreadable data file is the user's to mend.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn bad_data(error: FormatError) -> BenchmarkError {
    BenchmarkError::BadInput(format!("data: {error}"))
}

/// An export that cannot be written is a failure.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn bad_export(error: FormatError) -> BenchmarkError {
    BenchmarkError::Failed(format!("export: {error}"))
}

/// What the common parameters take, and its own.
pub(super) fn takes(own: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let common = [
        ("size", "small, medium or large"),
        ("threads", "1 to 4096; 0 for all"),
        ("seed", "a whole number, 0 or more"),
        ("data", "a file, or the name of a known data set; empty for generated data"),
        ("export", "a folder for inputs and results; empty for none"),
    ];
    common.map(|(name, what)| (name, what.to_owned())).into_iter().chain(own.iter().cloned()).collect()
}

/// A specification of this suite: the common parameters and its own.
pub(super) fn spec(name: &str, description: &str, own: &[(&str, ParamValue)]) -> BenchmarkSpec {
    let common = [
        ("size", ParamValue::Text("small".to_owned())),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
        ("data", ParamValue::Text(String::new())),
        ("export", ParamValue::Text(String::new())),
    ];
    BenchmarkSpec {
        components: vec![BenchmarkComponent::Cpu],
        description: Some(format!(
            "{description} `size` is small, medium or large; `data` is a file or a data set's name instead of generated \
             data; `export` is a folder for inputs and results."
        )),
        default_duration_seconds: Some(15),
        params: Some(params(&[&common, own].concat())),
        ..BenchmarkId::new("biobench", name).spec(BenchmarkKind::Domain)
    }
}

/// Seconds of the named steps of one run.
pub(super) type StageTimes = Vec<(&'static str, f64)>;

/// Times a step and adds it to the stages.
pub(super) fn timed<T>(stages: &mut StageTimes, name: &'static str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    stages.push((name, began.elapsed().as_secs_f64()));
    result
}

/// The samples of a workload: seconds of each run and of its stages, and joules where they are measured.
#[derive(Debug, Default)]
pub(super) struct Samples {
    seconds: Vec<f64>,
    stages: Vec<StageTimes>,
    joules: Vec<f64>,
}

/// Runs a workload once, has its answer judged, and then runs it for the round's time. Nothing is recorded of a workload
/// whose answer is wrong.
///
/// # Errors
/// What the workload or the gate says, and that the user stopped the run.
pub(super) fn measure<T>(
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
    pub(super) fn rates(&self, amount: f64) -> Vec<f64> {
        self.seconds.iter().map(|seconds| amount / seconds).collect()
    }

    /// Reports the rate of some amount of work, the time of each stage, and the energy of a run where it is measured.
    pub(super) fn report(
        &self,
        context: &mut RunContext<'_>,
        common: &Common,
        key: MetricKey,
        amount: f64,
    ) -> Result<(), BenchmarkError> {
        let tags = key.tags.clone();
        context.record(common.tag(key), self.rates(amount))?;
        let names: Vec<&'static str> =
            self.stages.first().into_iter().flatten().map(|stage| stage.0).collect();
        for (index, name) in names.into_iter().enumerate() {
            let mut stage = common.tag(MetricKey::less_is_better("stage_time", "s")).tag("stage", name);
            stage.tags.extend(tags.clone());
            let values = self.stages.iter().filter_map(|stages| stages.get(index)).map(|stage| stage.1);
            context.record(stage, values.collect())?;
        }
        if self.joules.is_empty() {
            return Ok(());
        }
        let mut energy = common.tag(MetricKey::less_is_better("energy", "J"));
        energy.tags.extend(tags);
        context.record(energy, self.joules.clone())
    }
}

/// Reports the most memory that this process has had.
pub(super) fn report_memory(context: &mut RunContext<'_>, common: &Common) -> Result<(), BenchmarkError> {
    // A system that does not tell gives no figure.
    match warpforge_runtime::memory::process_peak_bytes() {
        Some(bytes) => {
            let key = common.tag(MetricKey::less_is_better("peak_rss", "MiB"));
            context.record(key, vec![bytes as f64 / f64::from(1 << 20)])
        }
        None => Ok(()),
    }
}

/// Reports a share, such as recall, once.
pub(super) fn report_share(
    context: &mut RunContext<'_>,
    common: &Common,
    name: &str,
    share: f64,
) -> Result<(), BenchmarkError> {
    context.record(common.tag(MetricKey::more_is_better(name, "share")), vec![share])
}

/// The failure of a gate: what was asked for and what was found.
pub(super) fn require(what: &str, found: f64, least: f64) -> Result<(), BenchmarkError> {
    if found >= least {
        return Ok(());
    }
    Err(BenchmarkError::Failed(format!("wrong answer: {what} is {found:.4}, at least {least:.4} is right")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_says_what_it_wanted() {
        let error = require("recall", 0.5, 0.98).unwrap_err().to_string();
        assert!(error.contains("recall is 0.5000") && error.contains("0.9800"), "{error}");
        assert!(require("recall", 0.98, 0.98).is_ok());
    }
}
