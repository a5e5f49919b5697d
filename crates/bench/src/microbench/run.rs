//! Measures rows: one for each recipe and shape.

use serde::Serialize;
use warpforge::profile::Profile;
use warpforge::{
    CompileOptions, Device, ElementType, Model, Precision, QuantizationRecipe, RunOptions, Tensor,
};
use warpforge_measure::stats::{median, median_interval};
use warpforge_probes::cpu::Dtype;
use warpforge_probes::limits::Limits;

use super::config::{Config, Entry, Mode, ModelParams};
use super::model::{self, Case};
use super::noise::{COMPARED_ROWS, Noise};
use super::shapes::MatrixShape;
use super::timeline::Timeline;
use super::times::{RUNS, TIME, times};
use super::training;

/// A measured or skipped row.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
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
    /// Times of the runs, forward and, in training, backward, in ms.
    pub times_ms: Vec<f64>,
    /// Times of the backward pass.
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

    /// The confidence interval of the median.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        median_interval(&self.times_ms, 0.95).map(|interval| (interval.low, interval.high))
    }

    /// How many times faster than the baseline.
    #[must_use]
    pub fn speedup(&self) -> Option<f64> {
        let all = |forward: f64, backward: Option<f64>| forward + backward.unwrap_or(0.0);
        let ours = all(self.time()?, median(&self.backward_ms));
        Some(all(self.baseline_ms?, self.baseline_backward_ms) / ours)
    }
}

/// Measures all rows of a file, and tells `progress` about each. What cannot run is a row with its reason.
pub fn rows(config: &Config, progress: &mut dyn FnMut(&Row)) -> Vec<Row> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = config
        .models
        .iter()
        .any(|model| model.device == "cpu")
        .then(|| Limits::measure(threads).ok())
        .flatten();
    let mut rows: Vec<Row> = Vec::new();
    for params in &config.models {
        for shape in &params.shapes {
            let mut baseline: Option<Row> = None;
            for entry in &config.recipes {
                let mut row = empty(params, shape, entry, threads);
                if let Err(reason) = measure(config, params, shape, entry, &mut row) {
                    (row.verdict, row.reason) = ("SKIPPED", Some(reason));
                }
                if let Some(baseline) = &baseline {
                    (row.baseline_ms, row.baseline_backward_ms) =
                        (baseline.time(), median(&baseline.backward_ms));
                } else {
                    (row.baseline_ms, row.baseline_backward_ms) = (row.time(), median(&row.backward_ms));
                    baseline = Some(row.clone());
                }
                if let Some((low, high)) = row.interval() {
                    let wide = row.time().is_some_and(|time| high - low > 0.1 * time);
                    row.verdict = if wide { "INCONCLUSIVE" } else { "PASS" };
                    if let Some(limits) = limits.as_ref().filter(|_| config.mode == Mode::Inference) {
                        bound(&mut row, entry, params.dtype, limits);
                    }
                }
                progress(&row);
                rows.push(row);
            }
            for name in &config.sparsity {
                let mut row = empty(params, shape, &Entry::Baseline, threads);
                row.sparsity = name.clone();
                row.reason = Some("sparse weights have no kernels in this engine".to_owned());
                progress(&row);
                rows.push(row);
            }
        }
    }
    rows
}

fn empty(params: &ModelParams, shape: &MatrixShape, entry: &Entry, threads: usize) -> Row {
    Row {
        name: params.name.clone(),
        quantization: entry.name(),
        sparsity: "None".to_owned(),
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
        of_roofline: None,
        bound_by: None,
        threads,
        profile: None,
        timeline: None,
        profiler_json_path: None,
        memory_paths: None,
    }
}

fn measure(
    config: &Config,
    params: &ModelParams,
    shape: &MatrixShape,
    entry: &Entry,
    row: &mut Row,
) -> Result<(), String> {
    let precision = match entry {
        Entry::Baseline => Precision::Model,
        Entry::Recipe(recipe) => Precision::Quantized(*recipe),
        Entry::Missing(name) => return Err(format!("`{name}` has no kernels in this engine")),
    };
    let device: Device = match params.device.as_str() {
        "xpu" | "mps" => return Err(format!("this engine has no backend for `{}`", params.device)),
        name => name.parse::<Device>().map_err(|error| error.to_string())?,
    };
    fits(params, shape, config.mode)?;
    let options = CompileOptions { device, precision, no_fallback: true, ..CompileOptions::default() };
    match config.mode {
        Mode::Training => {
            let passes = training::measure(config, params, shape, entry, device)?;
            [row.times_ms, row.backward_ms] = passes.times_ms;
            row.sqnr_db = Some(passes.noise.sqnr_db());
            row.max_rel_error = Some(passes.noise.max_rel_error());
            Ok(())
        }
        Mode::Inference => infer(config, params, shape, entry, &options, row),
    }
}

fn infer(
    config: &Config,
    params: &ModelParams,
    shape: &MatrixShape,
    entry: &Entry,
    options: &CompileOptions,
    row: &mut Row,
) -> Result<(), String> {
    let text = |error: warpforge::Error| error.to_string();
    let case = model::case(&params.model_type, shape, shape.m, params.dtype);
    let mut model = Model::from_text("microbench.mlir", case.text.as_str()).map_err(text)?;
    model.bind_weights(&case.weights(params.dtype).map_err(text)?).map_err(text)?;
    let compiled = model.compile(options).map_err(text)?;
    drop(model);
    let inputs = [case.input(params.dtype).map_err(text)?];
    let executable = compiled.prepare(&inputs).map_err(text)?;
    let outputs = compiled.run_in_order(&inputs, &RunOptions::default()).map_err(text)?;
    let ours = outputs.iter().next().map(|(_, tensor)| tensor.clone()).ok_or("the model gives nothing")?;
    (row.sqnr_db, row.max_rel_error) = accuracy(params, shape, &ours).map_err(text)?;
    row.weight_bytes = Some(weight_bytes(&case, entry, params.dtype));
    let emulates = match options.device {
        Device::Cpu => Some("CPUs have"),
        Device::Hip(_) => Some("the libraries for AMD have"),
        _ => None,
    };
    if let (Some(who), Entry::Recipe(recipe)) = (emulates, entry)
        && recipe.is_float8_dynamic()
    {
        return Err(format!("{who} no float8 arithmetic: accuracy by emulation, no speed"));
    }
    row.times_ms = times(config.repeat, &*executable, &inputs)?;
    row.peak_bytes = executable.peak_memory_bytes();
    if params.enable_profiler || params.enable_memory_profiler {
        let profiled = RunOptions { profile: true, ..RunOptions::default() };
        let outcome = executable.run(&inputs, &profiled).map_err(|error| error.to_string())?;
        row.timeline =
            params.enable_memory_profiler.then(|| Timeline::new(executable.lifetimes(), &outcome.profile));
        row.profile = params.enable_profiler.then_some(outcome.profile);
    }
    Ok(())
}

/// SQNR and the largest relative error of the first rows against the model in f64.
fn accuracy(
    params: &ModelParams,
    shape: &MatrixShape,
    ours: &Tensor,
) -> warpforge::Result<(Option<f64>, Option<f64>)> {
    let m = shape.m.min(if params.model_type == "transformer_block" { 2 } else { COMPARED_ROWS });
    let case = model::case(&params.model_type, shape, m, ElementType::F64);
    let mut model = Model::from_text("microbench.mlir", case.text.as_str())?;
    // Weights and inputs have the values that were rounded to the type of the model.
    let wide = |tensor: Tensor| {
        let values: Vec<f64> = tensor.iter().map(warpforge::Scalar::to_f64).collect();
        Tensor::from_slice(tensor.dims(), &values)
    };
    let weights = case.weights(params.dtype)?.into_iter();
    model.bind_weights(
        &weights.map(|(name, tensor)| Ok((name, wide(tensor)?))).collect::<warpforge::Result<_>>()?,
    )?;
    let input = wide(case.input(params.dtype)?)?;
    let options = CompileOptions { no_fallback: true, ..CompileOptions::default() };
    let outputs = model.compile(&options)?.run_in_order(&[input], &RunOptions::default())?;
    let Some((_, exact)) = outputs.iter().next() else { return Ok((None, None)) };
    let mut noise = Noise::default();
    noise.add(exact, ours);
    Ok((Some(noise.sqnr_db()), Some(noise.max_rel_error())))
}

/// Bytes of the weights as a recipe stores them.
fn weight_bytes(case: &Case, entry: &Entry, dtype: ElementType) -> u64 {
    let bytes = |dims: &Vec<usize>| {
        let count = (dims[0] * dims[1]) as u64;
        match entry {
            Entry::Recipe(QuantizationRecipe::Int4WeightOnly { group, .. }) => {
                count / 2 + 4 * (count / u64::from(*group))
            }
            Entry::Recipe(_) => count + 4 * dims[0] as u64,
            _ => count * dtype.byte_width() as u64,
        }
    };
    case.weights.iter().map(|(_, dims)| bytes(dims)).sum()
}

/// Refuses what would not fit, before anything is allocated.
fn fits(params: &ModelParams, shape: &MatrixShape, mode: Mode) -> Result<(), String> {
    let [m, k, n] = [shape.m, shape.k, shape.n].map(|size| size as u128);
    let width = params.dtype.byte_width() as u128;
    let (weights, values) = match (params.model_type.as_str(), mode) {
        ("transformer_block", _) => (12 * k * k, 16 * m * 16 * k),
        (_, Mode::Training) => (2 * k * n, 2 * m * (k + n)),
        _ => (k * n, m * (2 * k + n)),
    };
    // Weights as values of f32, rounded, in f64 for the comparison, and packed.
    let needed = weights * (2 * width + 20) + values * (width + 4);
    match warpforge_tensor::memory::available_bytes() {
        Some(available) if needed > u128::from(available) => Err(format!(
            "needs about {:.1} GB of memory, {:.1} GB are available",
            needed as f64 / 1e9,
            available as f64 / 1e9
        )),
        _ => Ok(()),
    }
}

/// What bounds a linear layer, and what part of that it reached.
fn bound(row: &mut Row, entry: &Entry, dtype: ElementType, limits: &Limits) {
    let (Some(time), Some(weights), "linear", "cpu") =
        (row.time(), row.weight_bytes, row.model_type.as_str(), row.device.as_str())
    else {
        return;
    };
    let wanted = if matches!(entry, Entry::Recipe(QuantizationRecipe::Int8Dynamic)) {
        Dtype::Int8
    } else {
        Dtype::F32
    };
    let Some((_, rate)) = limits.operations.iter().find(|(dtype, _)| *dtype == wanted) else { return };
    let operations = 2.0 * row.m as f64 * row.k as f64 * row.n as f64;
    let bytes = weights as f64 + (row.m * (row.k + row.n) * dtype.byte_width()) as f64;
    let (arithmetic, memory) = (operations / rate, bytes / limits.bytes);
    row.bound_by = Some(if arithmetic > memory { "arithmetic" } else { "memory" });
    row.of_roofline = Some(arithmetic.max(memory) * 1e3 / time);
}

/// What a file would run, with the time that it would take at least: every recipe of every shape.
#[must_use]
pub fn predicted_seconds(config: &Config, shape: &MatrixShape, rate: f64) -> f64 {
    let runs = (config.repeat.unwrap_or(RUNS.0) + 2) as f64;
    let passes = if config.mode == Mode::Training { 3.0 } else { 1.0 };
    let one = 2.0 * passes * shape.m as f64 * shape.k as f64 * shape.n as f64 / rate;
    let measured = if config.repeat.is_some() { one * runs } else { (one * runs).max(TIME.as_secs_f64()) };
    measured * config.recipes.len() as f64
}

/// The fastest recipe of each shape that keeps so much of the signal.
#[must_use]
pub fn recommended(rows: &[Row], least_db: f64) -> Vec<&Row> {
    let mut found: Vec<&Row> = Vec::new();
    for group in rows.chunk_by(|a, b| (&a.name, a.m, a.k, a.n) == (&b.name, b.m, b.k, b.n)) {
        let good =
            group.iter().filter(|row| row.sqnr_db.is_some_and(|db| db >= least_db) && row.time().is_some());
        found.extend(
            good.min_by(|a, b| a.time().unwrap_or(f64::MAX).total_cmp(&b.time().unwrap_or(f64::MAX))),
        );
    }
    found
}
