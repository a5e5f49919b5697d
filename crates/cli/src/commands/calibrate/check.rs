//! `warpt calibrate check`: predictions beside runs.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use warpforge::{CompileOptions, Device, Model, Precision, shown};
use warpforge_calibrate::{ModelCheck, check};
use warpforge_inventory::live::ConditionsWatch;
use warpforge_report::{Align, Screen, Style, Table, number};

use super::{failure, machine};
use crate::exit::{Exit, Failure, Outcome};
use crate::{term, values};

/// Kernels that are shown of a model: those whose prediction is furthest off, in milliseconds.
const SHOWN: usize = 5;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Models: StableHLO files or PyTorch archives
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    /// The profile [default: this machine's]
    #[arg(long, value_name = "PROFILE.json")]
    machine: Option<PathBuf>,
    /// Where to run: `cpu`, `cuda[:N]` or `hip[:N]`
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    /// The precisions of contractions, separated by commas
    #[arg(long, value_name = "PRECISION", value_delimiter = ',', default_value = "model", value_parser = values::float_precisions())]
    precision: Vec<Precision>,
    /// Fail where a prediction is further off than this many percent
    #[arg(long, value_name = "PERCENT", value_parser = super::measure::positive)]
    fail_above: Option<f64>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// What the predictions came to.
#[derive(Debug, Serialize)]
struct Checked {
    profile: String,
    models: Vec<ModelCheck>,
    /// The geometric mean of how far predictions are off, either way, less one.
    geometric_mean_error: f64,
    /// The furthest.
    worst_error: f64,
    /// What disturbed the calibration or these runs: errors are partly its.
    disturbances: Vec<String>,
}

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Outcome {
    let found = machine::named_or_default(args.machine.as_deref(), args.device)?.of_this_machine()?;
    let cost = found.cost_model(args.device)?;
    let watch = ConditionsWatch::start().ok();
    let mut models = Vec::new();
    for path in &args.models {
        let model = Model::load(path)?;
        for &precision in &args.precision {
            let options = CompileOptions { device: args.device, precision, ..CompileOptions::default() };
            models.push(check(&cost, &shown(path), &model, &options).map_err(failure)?);
        }
    }
    let disturbances = disturbances(&found, watch);
    let off: Vec<f64> = models.iter().map(|model| factor(model.error)).collect();
    let mean = off.iter().map(|factor| factor.ln()).sum::<f64>() / off.len().max(1) as f64;
    let worst_error = off.iter().copied().fold(1.0, f64::max) - 1.0;
    let geometric_mean_error = mean.exp() - 1.0;
    let checked =
        Checked { profile: found.origin(), models, geometric_mean_error, worst_error, disturbances };
    for disturbance in &checked.disturbances {
        term::tell!("warpt: {disturbance}");
    }
    if args.json {
        term::print_json(&checked)?;
    } else {
        term::print(&text(&checked, term::screen(false)))?;
    }
    match args.fail_above {
        Some(most) if 100.0 * worst_error > most => Err(Failure::check_failed(anyhow!(
            "a prediction is {:.1} % off, more than {most} %",
            100.0 * worst_error
        ))),
        _ => Ok(Exit::Pass),
    }
}

/// A profile that is too noisy to say, and what disturbed the runs.
fn disturbances(found: &machine::Found, watch: Option<ConditionsWatch>) -> Vec<String> {
    let noisy = found.profile.self_check.is_inconclusive().then(|| {
        format!(
            "{}: measured on a machine too noisy to say, and so are its predictions; calibrate again",
            found.origin()
        )
    });
    let now = watch.map(ConditionsWatch::finish).unwrap_or_default().warnings();
    noisy.into_iter().chain(now).collect()
}

/// How many times too long or too short a prediction is: 1 where it is right.
fn factor(error: f64) -> f64 {
    let ratio = (1.0 + error).max(1e-9);
    ratio.max(1.0 / ratio)
}

fn text(checked: &Checked, screen: Screen) -> String {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("precision", Align::Left),
        ("predicted ms", Align::Right),
        ("measured ms", Align::Right),
        ("off", Align::Right),
    ]);
    for model in &checked.models {
        let cells = [
            model.model.clone(),
            model.precision.clone(),
            number::significant(model.predicted_ms, 4),
            number::significant(model.measured_ms, 4),
            number::percent(100.0 * model.error),
        ];
        table.row(Style::Plain, cells);
    }
    let mut out = table.to_text(screen);
    for model in checked.models.iter().filter(|model| !model.kernels.is_empty()) {
        let mut kernels: Vec<_> = model.kernels.iter().collect();
        let off = |predicted: f64, measured: f64| (predicted - measured).abs();
        kernels.sort_by(|a, b| {
            off(b.predicted_ms, b.measured_ms).total_cmp(&off(a.predicted_ms, a.measured_ms))
        });
        let mut table = Table::new(&[
            ("kernel", Align::Left),
            ("bound by", Align::Left),
            ("predicted ms", Align::Right),
            ("measured ms", Align::Right),
            ("off", Align::Right),
        ]);
        for kernel in kernels.into_iter().take(SHOWN) {
            let cells = [
                kernel.name.clone(),
                kernel.bound.to_string(),
                number::significant(kernel.predicted_ms, 3),
                number::significant(kernel.measured_ms, 3),
                number::percent(100.0 * kernel.error),
            ];
            table.row(Style::Plain, cells);
        }
        out += "\n";
        let title = format!("{} ({}), the kernels furthest off:", model.model, model.precision);
        out += &screen.line(Style::Plain, 2, &title);
        out += &table.to_text(screen);
    }
    out += "\n";
    let (mean, worst) = (100.0 * checked.geometric_mean_error, 100.0 * checked.worst_error);
    out + &screen.line(
        Style::Plain,
        2,
        &format!("off by {mean:.1} % in the geometric mean, {worst:.1} % at worst"),
    )
}
