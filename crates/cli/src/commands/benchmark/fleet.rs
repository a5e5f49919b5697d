//! `warpt benchmark fleet`: what many machines do at the median, and which stray from it.

use std::path::PathBuf;

use clap::Args;
use warpforge_bench::fleet::{DEFAULT_THRESHOLD_PERCENT, fleet};
use warpforge_bench::record::{self, BenchmarkSuiteRun};
use warpforge_report::fleet as render;

use super::load::load_run;
use crate::exit::{Exit, Failure, Outcome};
use crate::format::{Format, FormatArgs};
use crate::term;

/// The baseline of many machines, and those that stray from it.
///
/// A node strays where a value of it is further from the median of all than the threshold, and than four standard deviations of
/// the others.
///
/// Exit codes: 0 no node strays to the worse, 1 some do, 2 bad input.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// The runs, one of each node: files or ids of the history
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Deviations up to this size are none
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_THRESHOLD_PERCENT, allow_negative_numbers = true)]
    threshold: f64,
    /// Write the medians to this file, as a record to compare and score runs with
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Finds the baseline and what strays from it.
pub(crate) fn run(args: &FleetArgs) -> Outcome {
    let records = args
        .runs
        .iter()
        .map(|name| Ok((name.clone(), load_run(name)?)))
        .collect::<Result<Vec<(String, BenchmarkSuiteRun)>, Failure>>()?;
    let fleet = fleet(&records, args.threshold).map_err(Failure::bad_input)?;
    if let Some(path) = &args.baseline {
        record::write(path, &fleet.baseline(&records)).map_err(Failure::not_possible)?;
    }
    match args.format.form() {
        Format::Json => term::print_json(&fleet)?,
        Format::Markdown => term::print(&render::markdown(&fleet))?,
        Format::Csv => term::print(&render::table(&fleet).to_csv().map_err(Failure::not_possible)?)?,
        Format::Text => term::print(&render::text(&fleet, term::screen(false)))?,
    }
    let strays = fleet.strays.iter().any(|stray| stray.worse);
    Ok(if strays { Exit::CheckFailed } else { Exit::Pass })
}
