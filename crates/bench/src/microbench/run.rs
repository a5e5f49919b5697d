//! Measures rows: one for each recipe and shape.

use warpforge::{CompileOptions, Device, Precision};

use super::bounds::{Rates, fits};
use super::config::{Config, Entry, Mode};
use super::inference;
use super::power::Power;
use super::row::Row;
use super::training;

/// Measures all rows of a file, and tells `progress` about each. What cannot run is a row with its reason.
pub fn rows(config: &Config, progress: &mut dyn FnMut(&Row)) -> Vec<Row> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let on_cpu = config.mode == Mode::Inference && config.models.iter().any(|model| model.device == "cpu");
    let rates = on_cpu.then(|| Rates::measure(threads).ok()).flatten();
    let mut power = Power::new();
    let mut rows: Vec<Row> = Vec::new();
    for (model, params) in config.models.iter().enumerate() {
        for shape in 0..params.shapes.len() {
            let mut baseline: Option<Row> = None;
            for entry in &config.recipes {
                let mut row = Row::new(config, [model, shape], entry, threads);
                if let Err(reason) = measure(config, entry, &mut power, &mut row) {
                    row.reason = Some(reason);
                }
                let of = baseline.get_or_insert_with(|| row.clone());
                (row.baseline_ms, row.baseline_backward_ms) = (of.time(), of.backward());
                if let (Some((low, high)), Some(total)) = (row.interval(), row.total()) {
                    row.verdict = if high - low > 0.1 * total { "INCONCLUSIVE" } else { "PASS" };
                    if let Some(rates) = &rates {
                        rates.place(&mut row, entry, params);
                    }
                }
                progress(&row);
                rows.push(row);
            }
            for name in &config.sparsity {
                let mut row = Row::new(config, [model, shape], &Entry::Baseline, threads);
                row.sparsity.clone_from(name);
                row.reason = Some("sparse weights have no kernels in this engine".to_owned());
                progress(&row);
                rows.push(row);
            }
        }
    }
    rows
}

fn measure(config: &Config, entry: &Entry, power: &mut Power, row: &mut Row) -> Result<(), String> {
    let params = &config.models[row.model];
    let shape = &params.shapes[row.shape];
    let precision = match entry {
        Entry::Recipe(recipe) => Precision::Quantized(*recipe),
        Entry::Missing(name) => return Err(format!("`{name}` has no kernels in this engine")),
        Entry::Baseline | Entry::Emulated(_) => Precision::Model,
    };
    let device: Device = match params.device.as_str() {
        "xpu" | "mps" => return Err(format!("this engine has no backend for `{}`", params.device)),
        name => name.parse::<Device>().map_err(|error| error.to_string())?,
    };
    fits(params, shape, config.mode, device, power)?;
    let options = CompileOptions { device, precision, no_fallback: true, ..CompileOptions::default() };
    match config.mode {
        Mode::Training => training::measure(config, params, shape, entry, device, power, row),
        Mode::Inference => match entry {
            Entry::Emulated(format) => inference::emulate(params, shape, *format, row),
            _ => inference::measure(config, params, shape, entry, &options, power, row),
        },
    }
}

/// The fastest recipe of each shape that keeps so much of the signal; in training by forward and backward pass together.
#[must_use]
pub fn recommended(rows: &[Row], least_db: f64) -> Vec<&Row> {
    let mut found: Vec<&Row> = Vec::new();
    for group in rows.chunk_by(|a, b| (a.model, a.shape) == (b.model, b.shape)) {
        let good = group.iter().filter(|row| row.sqnr_db.is_some_and(|db| db >= least_db));
        let timed = good.filter_map(|row| Some((row.total()?, row)));
        found.extend(timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row));
    }
    found
}
