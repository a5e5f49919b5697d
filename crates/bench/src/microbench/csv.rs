//! Rows as CSV: the original's columns first, ours after them.

use warpforge_measure::stats::median;

use super::config::{Config, Mode};
use super::run::Row;
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
const INFERENCE: [&str; 7] = [
    "baseline_inference_time_in_ms",
    "model_inference_time_in_ms",
    "speedup",
    "profiler_json_path",
    "memory_profile_path",
    "memory_visualization_path",
    "memory_stats",
];
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
const OURS: [&str; 12] = [
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
    "reason",
];

/// The file of all rows.
#[must_use]
pub fn text(config: &Config, rows: &[Row]) -> String {
    let mode: &[&str] = if config.mode == Mode::Inference { &INFERENCE } else { &TRAINING };
    let mut lines = vec![SHARED.iter().chain(mode).chain(&OURS).copied().collect::<Vec<_>>().join(",")];
    for row in rows {
        let cells = cells(config, row);
        lines.push(cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

fn cells(config: &Config, row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    let params = config.models.iter().find(|model| model.name == row.name);
    let flag = |value: Option<bool>| value.unwrap_or(false).to_string();
    let mut cells = vec![
        row.name.clone(),
        row.quantization.clone(),
        row.sparsity.clone(),
        row.m.to_string(),
        row.k.to_string(),
        row.n.to_string(),
        row.high_precision_dtype.clone(),
        flag(params.map(|model| model.compile)),
        params.map_or_else(String::new, |model| model.compile_mode.clone()),
        row.device.clone(),
        row.model_type.clone(),
        config.output_dir.clone(),
        flag(params.map(|model| model.enable_profiler)),
        flag(params.map(|model| model.enable_memory_profiler)),
    ];
    let (time, backward) = (row.time(), median(&row.backward_ms));
    match config.mode {
        Mode::Inference => {
            cells.extend([number(row.baseline_ms), number(time), number(row.speedup())]);
            cells.push(row.profiler_json_path.clone().unwrap_or_default());
            cells.extend(row.memory_paths.clone().unwrap_or_default());
            cells.push(
                row.timeline.as_ref().map_or_else(String::new, |timeline| timeline.stats().to_string()),
            );
        }
        Mode::Training => {
            let mut scaling = config.scaling.clone();
            if let Some(granularity) = training::granularity(&row.quantization) {
                granularity.clone_into(&mut scaling[3]);
            }
            cells.extend(scaling.iter().cloned());
            cells.push(config.repeat.map_or_else(String::new, |repeat| repeat.to_string()));
            let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
            let (forward, reference) = (row.baseline_ms, row.baseline_backward_ms);
            for value in [
                time,
                backward,
                sum(time, backward),
                forward,
                reference,
                sum(forward, reference),
                row.speedup(),
            ] {
                cells.push(number(value));
            }
            cells.push(scaling[..4].join(" "));
        }
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
        String::new(),
        row.reason.clone().unwrap_or_default(),
    ]);
    cells
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
