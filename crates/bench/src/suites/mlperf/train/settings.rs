//! The parameters.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use warpforge::{CompileOptions, Precision};
use warpforge_bio::available_threads;

use crate::benchmark::{BenchmarkError, MetricKey, int, text};
use crate::history::History;
use crate::record::{self, ParamValue, Params};
use crate::suites::stages::Tagged;
use crate::suites::values::{bad_value, within};

const MOST_THREADS: i64 = 4096;
const MOST_BATCH: i64 = 1024;
/// The fewest pixels that all poolings leave something of.
const LEAST_SIDE: i64 = 32;
const MOST_SIDE: i64 = 512;
/// The models that PyTorch has.
const MODELS: [&str; 2] = ["resnet50", "resnet18"];

/// The optimizer. At a larger rate a batch is learnt within three steps, and differences of rounding grow with every step.
pub(super) const RATE: f64 = 0.001;
pub(super) const MOMENTUM: f64 = 0.9;
pub(super) const WEIGHT_DECAY: f64 = 1e-4;

/// The parameters with their defaults.
pub(super) fn params() -> Params {
    record::params(&[
        ("model", ParamValue::Text(MODELS[0].to_owned())),
        ("batch", ParamValue::Int(8)),
        ("side", ParamValue::Int(224)),
        ("type", ParamValue::Text("f32".to_owned())),
        ("threads", ParamValue::Int(0)),
        ("seed", ParamValue::Int(1)),
        ("graphs", ParamValue::Text(String::new())),
    ])
}

/// What the parameters take.
pub(super) fn takes() -> Vec<(&'static str, String)> {
    vec![
        ("model", MODELS.join(" or ")),
        ("batch", format!("1 to {MOST_BATCH}")),
        ("side", format!("{LEAST_SIDE} to {MOST_SIDE}")),
        ("type", "f32 or bf16: what convolutions multiply in".to_owned()),
        ("threads", format!("1 to {MOST_THREADS}; 0 for all")),
        ("seed", "a whole number, 0 or more".to_owned()),
        (
            "graphs",
            "a folder that keeps traced graphs; empty for `mlperf/graphs` beside the history".to_owned(),
        ),
    ]
}

/// Checked parameters.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) model: &'static str,
    pub(super) batch: usize,
    /// Pixels of a side.
    pub(super) side: usize,
    pub(super) precision: Precision,
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) seed: u64,
    /// Where traced graphs are kept.
    pub(super) graphs: PathBuf,
}

impl Settings {
    /// # Errors
    /// If a parameter makes no sense.
    pub(super) fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let model = text(params, "model");
        let known = MODELS.into_iter().find(|known| *known == model);
        let precision = match text(params, "type") {
            "f32" => Precision::Model,
            "bf16" => Precision::Bf16,
            other => return Err(bad_value("type", &other, "give f32 or bf16")),
        };
        let seed = int(params, "seed");
        let graphs = match text(params, "graphs") {
            "" => History::default_path()
                .ok()
                .and_then(|path| Some(path.parent()?.join("mlperf/graphs")))
                .ok_or_else(|| bad_value("graphs", &"", "there is no home folder; name a folder"))?,
            path => std::path::absolute(path).unwrap_or_else(|_| path.into()),
        };
        if graphs.exists() && !graphs.is_dir() {
            return Err(bad_value("graphs", &graphs.display(), "this is no folder"));
        }
        Ok(Self {
            model: known
                .ok_or_else(|| bad_value("model", &model, &format!("give {}", MODELS.join(" or "))))?,
            batch: within(params, "batch", 1, MOST_BATCH)?,
            side: within(params, "side", LEAST_SIDE, MOST_SIDE)?,
            precision,
            threads: NonZeroUsize::new(within(params, "threads", 0, MOST_THREADS)?),
            seed: u64::try_from(seed).map_err(|_| bad_value("seed", &seed, "a seed is not negative"))?,
            graphs,
        })
    }

    /// How the step is compiled: all of it kernels of the engine.
    pub(super) fn options(&self) -> CompileOptions {
        CompileOptions {
            threads: self.threads,
            no_fallback: true,
            precision: self.precision,
            ..CompileOptions::default()
        }
    }

    /// The threads that compute.
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(available_threads, NonZeroUsize::get)
    }

    fn element(&self) -> &'static str {
        if self.precision == Precision::Bf16 { "bf16" } else { "f32" }
    }
}

impl Tagged for Settings {
    fn tag(&self, key: MetricKey) -> MetricKey {
        key.tag("model", self.model)
            .tag("division", "unofficial")
            .tag("batch", self.batch)
            .tag("side", self.side)
            .tag("type", self.element())
            .tag("threads", self.threads())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Resnet50Train;
    use super::*;
    use crate::suites::testing::{refused, round};

    #[test]
    fn what_makes_no_sense_is_named() {
        let settings =
            |name: &str, value: &str| Settings::from(&round(&Resnet50Train, &[(name, value)], 0.0).params);
        refused(settings, "model", &["vgg16"], "resnet50 or resnet18");
        refused(settings, "batch", &["0", "1025"], "1 to 1024");
        refused(settings, "side", &["31", "513"], "32 to 512");
        refused(settings, "type", &["f16"], "f32 or bf16");
        refused(settings, "seed", &["-1"], "not negative");
        refused(settings, "graphs", &["/proc/self/stat"], "no folder");
        assert_eq!(settings("threads", "3").unwrap().threads(), 3);
    }
}
