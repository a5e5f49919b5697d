//! `warpt calibrate check`: predictions beside runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use warpforge::{CompileOptions, Device, Model, Precision, shown};
use warpforge_calibrate::{Checker, ModelCheck};
use warpforge_inventory::live::ConditionsWatch;
use warpforge_measure::stats;
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
    /// Wait at most so long, in all, for a processor that other guests of the host slow down
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = super::measure::seconds)]
    patience: Duration,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// What the predictions came to.
#[derive(Debug, Serialize)]
struct Checked {
    profile: String,
    models: Vec<ModelCheck>,
    /// The geometric mean of how far predictions are off, either way, less one; of the models that ran at the pace of the calibration,
    /// and null where none did.
    geometric_mean_error: Option<f64>,
    /// The furthest of them.
    worst_error: Option<f64>,
    /// What disturbed the calibration or these runs: errors are partly its.
    disturbances: Vec<String>,
}

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Outcome {
    let found = machine::named_or_default(args.machine.as_deref(), args.device)?.of_this_machine()?;
    let mut checker =
        Checker::new(&found.profile, args.device, args.patience, &found.origin()).map_err(failure)?;
    let watch = ConditionsWatch::start().ok();
    let mut models = Vec::new();
    for path in &args.models {
        let model = Model::load(path)?;
        for &precision in &args.precision {
            let options = CompileOptions { device: args.device, precision, ..CompileOptions::default() };
            models.push(checker.check(&shown(path), &model, &options).map_err(failure)?);
        }
    }
    let checked = Checked::new(&found, models, watch);
    for disturbance in &checked.disturbances {
        term::tell!("warpt: {disturbance}");
    }
    if args.json {
        term::print_json(&checked)?;
    } else {
        term::print(&text(&checked, term::screen(false)))?;
    }
    match (args.fail_above, checked.worst_error) {
        (Some(most), Some(worst)) if 100.0 * worst > most => Err(Failure::check_failed(anyhow!(
            "a prediction is {:.1} % off, more than {most} %",
            100.0 * worst
        ))),
        _ if checked.unsteady() > 0 => Ok(Exit::Inconclusive),
        _ => Ok(Exit::Pass),
    }
}

impl Checked {
    fn new(found: &machine::Found, models: Vec<ModelCheck>, watch: Option<ConditionsWatch>) -> Self {
        let off: Vec<f64> =
            models.iter().filter(|model| model.steady).map(|model| factor(model.error)).collect();
        let mean = stats::geometric_mean(&off).map(|factor| factor - 1.0);
        let worst = off.iter().copied().reduce(f64::max).map(|factor| factor - 1.0);
        let mut checked = Self {
            profile: found.origin(),
            models,
            geometric_mean_error: mean,
            worst_error: worst,
            disturbances: disturbances(found, watch),
        };
        let (unsteady, all) = (checked.unsteady(), checked.models.len());
        if unsteady > 0 {
            checked.disturbances.push(format!(
                "{unsteady} of {all} runs are INCONCLUSIVE: the processor was not as fast as when it was calibrated, and stayed so; other \
                 guests of the host take its clock or its execution units. Check, or calibrate, when they are quiet"
            ));
        }
        checked
    }

    /// Models that ran at another pace than the calibration.
    fn unsteady(&self) -> usize {
        self.models.iter().filter(|model| !model.steady).count()
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
        ("pace", Align::Right),
        ("", Align::Left),
    ]);
    for model in &checked.models {
        let cells = [
            model.model.clone(),
            model.precision.clone(),
            number::significant(model.predicted_ms, 4),
            number::significant(model.measured_ms, 4),
            number::percent(100.0 * model.error),
            model.pace.map_or_else(String::new, |pace| format!("{pace:.2}")),
            if model.steady { "" } else { "INCONCLUSIVE" }.to_owned(),
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
    let steady = checked.models.len() - checked.unsteady();
    let line = match (checked.geometric_mean_error, checked.worst_error) {
        (Some(mean), Some(worst)) => {
            let (mean, worst) = (100.0 * mean, 100.0 * worst);
            format!("off by {mean:.1} % in the geometric mean, {worst:.1} % at worst, of {steady} runs")
        }
        _ => "no run was at the pace of the calibration".to_owned(),
    };
    out + &screen.line(Style::Plain, 2, &line)
}
