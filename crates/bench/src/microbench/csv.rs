//! Rows as CSV: the original's columns first, ours after them.

use super::config::{Config, Mode};
use super::row::Row;
use super::training;

/// The original's first columns, of both modes.
const SHARED: [&str; 14] = [
    "name",
    "quantization",
    "sparsity",
    "m",
    "k",
    "n",
    "high_precision_dtype",
    "use_torch_compile",
    "torch_compile_mode",
    "device",
    "model_type",
    "output_dir",
    "enable_profiler",
    "enable_memory_profiler",
];
/// Where profiles were written, in both modes.
const PROFILES: [&str; 4] =
    ["profiler_json_path", "memory_profile_path", "memory_visualization_path", "memory_stats"];
const INFERENCE: [&str; 3] = ["baseline_inference_time_in_ms", "model_inference_time_in_ms", "speedup"];
const TRAINING: [&str; 14] = [
    "scaling_type_input",
    "scaling_type_weight",
    "scaling_type_grad_output",
    "scaling_granularity",
    "use_fast_accum",
    "repeat_n",
    "forward_time_ms",
    "backward_time_ms",
    "total_time_ms",
    "reference_forward_time_ms",
    "reference_backward_time_ms",
    "reference_total_time_ms",
    "speedup",
    "scaling_repr",
];
const OURS: [&str; 13] = [
    "ci_low",
    "ci_high",
    "verdict",
    "threads",
    "sqnr_db",
    "max_rel_error",
    "of_roofline",
    "bound_by",
    "weight_bytes",
    "peak_bytes",
    "watts",
    "joules_per_run",
    "reason",
];

/// The columns of a mode.
fn columns(mode: Mode) -> Vec<&'static str> {
    match mode {
        Mode::Inference => [&SHARED[..], &INFERENCE, &PROFILES, &OURS].concat(),
        Mode::Training => {
            [&SHARED[..], &["model_inference_time_in_ms"], &PROFILES, &TRAINING, &OURS].concat()
        }
    }
}

/// The file of all rows.
#[must_use]
pub fn text(config: &Config, rows: &[Row]) -> String {
    let mut lines = vec![columns(config.mode).join(",")];
    for row in rows {
        let cells = cells(config, row);
        lines.push(cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

fn cells(config: &Config, row: &Row) -> Vec<String> {
    let params = &config.models[row.model];
    let mut cells = vec![
        row.name.clone(),
        row.quantization.clone(),
        row.sparsity.clone(),
        row.m.to_string(),
        row.k.to_string(),
        row.n.to_string(),
        row.high_precision_dtype.clone(),
        params.compile.to_string(),
        params.compile_mode.clone(),
        row.device.clone(),
        row.model_type.clone(),
        config.output_dir.clone(),
        params.enable_profiler.to_string(),
        params.enable_memory_profiler.to_string(),
    ];
    if config.mode == Mode::Inference {
        cells.extend([number(row.baseline_ms), number(row.time()), number(row.speedup())]);
    } else {
        cells.push(number(row.time()));
    }
    cells.push(row.profiler_json_path.clone().unwrap_or_default());
    cells.extend(row.memory_paths.clone().unwrap_or_default());
    cells.push(row.timeline.as_ref().map_or_else(String::new, |timeline| timeline.stats().to_string()));
    if config.mode == Mode::Training {
        cells.extend(training_cells(config, row));
    }
    let interval = row.interval();
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    cells.extend([
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        row.verdict.to_owned(),
        row.threads.to_string(),
        number(row.sqnr_db),
        number(row.max_rel_error),
        number(row.of_roofline),
        row.bound_by.unwrap_or_default().to_owned(),
        whole(row.weight_bytes),
        whole(row.peak_bytes),
        number(row.watts),
        number(row.joules),
        row.reason.clone().unwrap_or_default(),
    ]);
    cells
}

fn training_cells(config: &Config, row: &Row) -> Vec<String> {
    let scaling = scaling(config, row);
    let mut cells = scaling.to_vec();
    cells.push(config.repeat.map_or_else(String::new, |repeat| repeat.to_string()));
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    let (forward, backward) = (row.baseline_ms, row.baseline_backward_ms);
    let times =
        [row.time(), row.backward(), row.total(), forward, backward, sum(forward, backward), row.speedup()];
    cells.extend(times.map(number));
    cells.push(scaling[..4].join(" "));
    cells
}

/// The scaling of a row of training: the recipe names the granularity.
#[must_use]
pub fn scaling(config: &Config, row: &Row) -> [String; 5] {
    let mut scaling = config.scaling.clone();
    if let Some(granularity) = training::granularity(&row.quantization) {
        granularity.clone_into(&mut scaling[3]);
    }
    scaling
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
