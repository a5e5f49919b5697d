//! A row of results.

use serde::Serialize;
use warpforge::profile::Profile;
use warpforge_measure::stats::{median, median_interval};

use super::config::{Config, Entry, ModelParams};
use super::timeline::Timeline;

/// A measured or skipped row.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The model's place in the file.
    #[serde(skip)]
    pub model: usize,
    /// The shape's place among those of the model.
    #[serde(skip)]
    pub shape: usize,
    /// The name of the model.
    pub name: String,
    /// The recipe.
    pub quantization: String,
    /// Sparsity, which this engine has not.
    pub sparsity: String,
    /// Rows.
    pub m: usize,
    /// The reduction depth.
    pub k: usize,
    /// Columns.
    pub n: usize,
    /// The model type.
    pub model_type: String,
    /// The device.
    pub device: String,
    /// The type without quantization.
    pub high_precision_dtype: String,
    /// PASS, INCONCLUSIVE where noise hides the result, or SKIPPED.
    pub verdict: &'static str,
    /// Why it was skipped, or what is missing.
    pub reason: Option<String>,
    /// Times of the runs, in training those of the forward pass, in ms.
    pub times_ms: Vec<f64>,
    /// Times of the backward pass, in ms.
    pub backward_ms: Vec<f64>,
    /// The median without quantization.
    pub baseline_ms: Option<f64>,
    /// The same of the backward pass.
    pub baseline_backward_ms: Option<f64>,
    /// Signal to noise against f64.
    pub sqnr_db: Option<f64>,
    /// The largest error relative to the largest result.
    pub max_rel_error: Option<f64>,
    /// Bytes of weights, scales and offsets.
    pub weight_bytes: Option<u64>,
    /// The most memory of a run.
    pub peak_bytes: Option<u64>,
    /// The mean power of the processors, or of the GPU, during the runs.
    pub watts: Option<f64>,
    /// The energy of a run; in training of both passes.
    pub joules: Option<f64>,
    /// Part of the measured limit.
    pub of_roofline: Option<f64>,
    /// `arithmetic` or `memory`.
    pub bound_by: Option<&'static str>,
    /// Threads.
    pub threads: usize,
    /// What happened when in one run more, where a trace is asked for.
    #[serde(skip)]
    pub profile: Option<Profile>,
    /// The memory of that run, where its timeline is asked for.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
    /// Where the trace was written.
    pub profiler_json_path: Option<String>,
    /// Where the memory timeline was written: as JSON and as a picture.
    pub memory_paths: Option<[String; 2]>,
}

impl Row {
    /// The median time.
    #[must_use]
    pub fn time(&self) -> Option<f64> {
        median(&self.times_ms)
    }

    /// The median time of the backward pass.
    #[must_use]
    pub fn backward(&self) -> Option<f64> {
        median(&self.backward_ms)
    }

    /// The median time of all passes that the row has.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        Some(self.time()? + self.backward().unwrap_or(0.0))
    }

    /// The confidence interval of the total: the sums of the ends of each pass.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        let of = |times: &[f64]| median_interval(times, 0.95).map(|interval| (interval.low, interval.high));
        let (low, high) = of(&self.times_ms)?;
        let (low_backward, high_backward) = match self.backward_ms.is_empty() {
            true => (0.0, 0.0),
            false => of(&self.backward_ms)?,
        };
        Some((low + low_backward, high + high_backward))
    }

    /// How many times faster than the baseline.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        Some((self.baseline_ms? + self.baseline_backward_ms.unwrap_or(0.0)) / self.total()?)
    }

    /// What tells the row from others: all that a file may have several of.
    #[must_use]
    pub fn title(&self) -> String {
        let Self { name, quantization, sparsity, m, k, n, model_type, device, .. } = self;
        let sparsity = if sparsity == DENSE { String::new() } else { format!(" {sparsity}") };
        let dtype = self.high_precision_dtype.trim_start_matches("torch.");
        format!("{name} {quantization}{sparsity} {model_type} {device} {dtype} {m}x{k}x{n}")
    }

    /// Notes what the profilers of a model are to write. A backend without a memory plan leaves the columns of memory empty.
    pub(super) fn keep(&mut self, params: &ModelParams, profile: Profile, timeline: Option<Timeline>) {
        if params.enable_memory_profiler {
            if timeline.is_none() {
                let reason =
                    format!("no memory timeline: the backend of `{}` tells no lifetimes", params.device);
                self.reason = Some(reason);
            }
            self.timeline = timeline;
        }
        self.profile = params.enable_profiler.then_some(profile);
    }
}

/// What the column `sparsity` says without any.
const DENSE: &str = "None";

impl Row {
    /// The row of a recipe that nothing is known of yet: the model and the shape by their places.
    pub(super) fn new(config: &Config, [model, at]: [usize; 2], entry: &Entry, threads: usize) -> Self {
        let params = &config.models[model];
        let shape = &params.shapes[at];
        Self {
            model,
            shape: at,
            name: params.name.clone(),
            quantization: entry.name(),
            sparsity: DENSE.to_owned(),
            m: shape.m,
            k: shape.k,
            n: shape.n,
            model_type: params.model_type.clone(),
            device: params.device.clone(),
            high_precision_dtype: params.dtype_name.clone(),
            verdict: "SKIPPED",
            reason: None,
            times_ms: Vec::new(),
            backward_ms: Vec::new(),
            baseline_ms: None,
            baseline_backward_ms: None,
            sqnr_db: None,
            max_rel_error: None,
            weight_bytes: None,
            peak_bytes: None,
            watts: None,
            joules: None,
            of_roofline: None,
            bound_by: None,
            threads,
            profile: None,
            timeline: None,
            profiler_json_path: None,
            memory_paths: None,
        }
    }
}
