//! The parameters that benchmarks of this suite share.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use warpforge::CompileOptions;
use warpforge_bio::available_threads;

use crate::benchmark::{BenchmarkError, MetricKey, float, int, text};
use crate::history::History;
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, ParamValue, Params, params,
};
use crate::suites::stages::Tagged;
use crate::suites::values::{bad_value, within};

const MOST_THREADS: i64 = 4096;
const MOST_BATCH: i64 = 256;
const MOST_SAMPLES: i64 = 100_000;
/// The seconds of a run that `mlperf.conf` asks for.
const OFFICIAL_SECONDS: f64 = 600.0;

/// How LoadGen sends queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    SingleStream,
    MultiStream,
    Server,
    Offline,
}

impl Scenario {
    pub(super) const ALL: [Self; 4] = [Self::SingleStream, Self::MultiStream, Self::Server, Self::Offline];

    /// LoadGen's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SingleStream => "SingleStream",
            Self::MultiStream => "MultiStream",
            Self::Server => "Server",
            Self::Offline => "Offline",
        }
    }
}

/// What is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Performance,
    Accuracy,
}

impl Mode {
    /// LoadGen's name.
    pub(super) fn loadgen(self) -> &'static str {
        match self {
            Self::Performance => "PerformanceOnly",
            Self::Accuracy => "AccuracyOnly",
        }
    }
}

/// Checked parameters.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The benchmark.
    name: &'static str,
    pub(super) scenario: Scenario,
    pub(super) mode: Mode,
    /// Queries a second in the scenario Server; `None` to search for the most.
    pub(super) target: Option<f64>,
    /// The bound of latencies in the scenario Server in milliseconds; `None` for that of `mlperf.conf`.
    pub(super) bound: Option<f64>,
    pub(super) samples: usize,
    pub(super) batch: usize,
    threads: Option<NonZeroUsize>,
    pub(super) seed: u64,
    logs: PathBuf,
    /// What figures depend on besides.
    tags: Vec<(&'static str, String)>,
}

impl Settings {
    pub(super) fn from(name: &'static str, params: &Params) -> Result<Self, BenchmarkError> {
        let scenario = text(params, "scenario");
        let scenario = Scenario::ALL
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(scenario))
            .ok_or_else(|| bad_value("scenario", &scenario, &format!("give {}", scenarios())))?;
        let mode = match text(params, "mode") {
            "performance" => Mode::Performance,
            "accuracy" => Mode::Accuracy,
            other => return Err(bad_value("mode", &other, "give performance or accuracy")),
        };
        let positive = |name: &str| match float(params, name) {
            value if value > 0.0 => Ok(Some(value)),
            0.0 => Ok(None),
            value => Err(bad_value(name, &value, "give a number that is not negative")),
        };
        let seed = int(params, "seed");
        let logs = match text(params, "logs") {
            "" => History::default_path()
                .ok()
                .and_then(|path| Some(path.parent()?.join("mlperf")))
                .ok_or_else(|| bad_value("logs", &"", "there is no home folder; name a folder"))?,
            path => std::path::absolute(path).unwrap_or_else(|_| path.into()),
        };
        if logs.exists() && !logs.is_dir() {
            return Err(bad_value("logs", &logs.display(), "this is no folder"));
        }
        Ok(Self {
            name,
            scenario,
            mode,
            target: positive("target_qps")?,
            bound: positive("latency_ms")?,
            samples: within(params, "samples", 1, MOST_SAMPLES)?,
            batch: within(params, "batch", 1, MOST_BATCH)?,
            threads: NonZeroUsize::new(within(params, "threads", 0, MOST_THREADS)?),
            seed: u64::try_from(seed).map_err(|_| bad_value("seed", &seed, "a seed is not negative"))?,
            logs,
            tags: Vec::new(),
        })
    }

    /// The same, with a tag for all metrics.
    #[must_use]
    pub(super) fn with_tag(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.tags.push((name, value.into()));
        self
    }

    /// The most samples that the engine gets at once.
    pub(super) fn most_at_once(&self) -> usize {
        if self.scenario == Scenario::SingleStream { 1 } else { self.batch }
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(available_threads, NonZeroUsize::get)
    }

    /// How programs are compiled: all of them kernels of the engine.
    pub(super) fn options(&self) -> CompileOptions {
        CompileOptions { threads: self.threads, no_fallback: true, ..CompileOptions::default() }
    }

    /// The folder of all runs of this benchmark.
    pub(super) fn all_logs(&self) -> PathBuf {
        self.logs.join(self.name)
    }

    /// A new folder for the logs of this round.
    ///
    /// # Errors
    /// [`BenchmarkError::NotPossible`] if it cannot be made.
    pub(super) fn new_logs(&self) -> Result<PathBuf, BenchmarkError> {
        let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        let name = format!("{now}-{}-{}", self.scenario.name(), std::process::id());
        let folder = self.all_logs().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| {
            BenchmarkError::NotPossible(format!(
                "cannot make {}: {error}; name another folder by --param logs=DIR",
                folder.display()
            ))
        })?;
        Ok(folder)
    }

    /// Why this is no MLPerf result.
    pub(super) fn unofficial(&self, seconds: f64) -> String {
        let short = match seconds < OFFICIAL_SECONDS {
            true => format!("{seconds:.1} s a run, not {OFFICIAL_SECONDS} s; "),
            false => String::new(),
        };
        format!(
            "division=unofficial, not an MLPerf result: {short}models and data are not those of MLPerf, and MLCommons has not verified it"
        )
    }

    /// The lines of `user.conf` that every test needs.
    pub(super) fn conf(&self, seconds: f64) -> String {
        let mut conf = format!("*.*.performance_sample_count_override = {}\n", self.samples);
        if seconds < OFFICIAL_SECONDS {
            conf += &format!("*.*.min_duration = {:.0}\n*.*.min_query_count = 1\n", seconds * 1e3);
        }
        conf
    }
}

impl Tagged for Settings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        let key = key
            .tag("scenario", self.scenario.name())
            .tag("division", "unofficial")
            .tag("batch", self.batch)
            .tag("threads", self.threads());
        self.tags.iter().fold(key, |key, (name, value)| key.tag(name, value))
    }
}

/// What a path is called in tags: its last part, or that there is none.
pub(super) fn called(path: Option<&Path>) -> String {
    let name = path.and_then(Path::file_name);
    name.map_or_else(|| "generated".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn scenarios() -> String {
    Scenario::ALL.map(Scenario::name).join(", ")
}

/// What the common parameters take, and its own.
pub(super) fn takes(own: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let common = [
        ("scenario", scenarios()),
        ("mode", "performance or accuracy".to_owned()),
        (
            "target_qps",
            "queries a second in the scenario Server; 0 to search for the most within the bound".to_owned(),
        ),
        ("latency_ms", "bound of the latency in the scenario Server; 0 for that of mlperf.conf".to_owned()),
        ("samples", format!("1 to {MOST_SAMPLES}")),
        ("batch", format!("1 to {MOST_BATCH}")),
        ("threads", format!("1 to {MOST_THREADS}; 0 for all")),
        ("seed", "a whole number, 0 or more".to_owned()),
        ("logs", "a folder for LoadGen's logs; empty for `mlperf` beside the history".to_owned()),
    ];
    common.into_iter().chain(own.iter().cloned()).collect()
}

/// The specification of a benchmark: the common parameters and its own.
pub(super) fn spec(
    name: &str,
    description: &str,
    [samples, batch]: [i64; 2],
    own: &[(&str, ParamValue)],
) -> BenchmarkSpec {
    let common = [
        ("scenario", ParamValue::Text(Scenario::Offline.name().to_owned())),
        ("mode", ParamValue::Text("performance".to_owned())),
        ("target_qps", ParamValue::Float(0.0)),
        ("latency_ms", ParamValue::Float(0.0)),
        ("samples", ParamValue::Int(samples)),
        ("batch", ParamValue::Int(batch)),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
        ("logs", ParamValue::Text(String::new())),
    ];
    BenchmarkSpec {
        components: vec![BenchmarkComponent::Cpu],
        description: Some(description.to_owned()),
        default_duration_seconds: Some(30),
        external_tool: Some("mlcommons-loadgen".to_owned()),
        params: Some(params(&[&common, own].concat())),
        ..BenchmarkId::new("mlperf", name).spec(BenchmarkKind::Application)
    }
}
