//! `warpt benchmark compare`: what changed from one run to another.

mod self_test;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warpforge_bench::compare::{CompareOptions, Comparison, DEFAULT_NOISE_THRESHOLD_PERCENT, compare};
use warpforge_report::comparison as render;

use super::load::load_run;
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

/// Compare two runs, metric by metric.
///
/// Each metric gets its change with a 95 % interval and a verdict: improved, regressed, unchanged or inconclusive.
///
/// Exit codes: 0 compared (with --fail-on-regression: and nothing regressed), 1 a regression and
/// --fail-on-regression, 2 bad input or different machines, 4 nothing to compare (with --fail-on-regression: or
/// nothing but inconclusive metrics).
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The earlier run: a file, the folder of a golden benchmark, or an id of the history
    #[arg(value_name = "A", required_unless_present = "self_test")]
    before: Option<String>,
    /// The later run: a file, the folder of a golden benchmark, or an id of the history
    #[arg(value_name = "B", required_unless_present = "self_test")]
    after: Option<String>,
    /// Changes up to this size are never called improved or regressed
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_NOISE_THRESHOLD_PERCENT, allow_negative_numbers = true)]
    noise_threshold: f64,
    /// Exit with 1 if a metric regressed or a benchmark that ran fails now
    #[arg(long)]
    fail_on_regression: bool,
    /// Compare even if the runs are of different machines
    #[arg(long)]
    force: bool,
    /// How to show the comparison
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compare a CPU kernel with itself and with a slowed one on this machine, and count the wrong verdicts
    #[arg(long, conflicts_with_all = ["before", "after", "fail_on_regression", "force", "format", "output"])]
    self_test: bool,
    /// How often --self-test compares the kernel with itself
    #[arg(long, value_name = "N", default_value_t = 20, requires = "self_test", value_parser = clap::value_parser!(u32).range(1..=1000))]
    comparisons: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for the terminal
    Text,
    /// A Markdown page
    Markdown,
    /// JUnit XML: regressions are failures, what is inconclusive or missing is skipped
    Junit,
    /// JSON for programs
    Json,
}

/// Compares two runs, or tests the comparison.
pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let options = CompareOptions { noise_threshold_percent: args.noise_threshold, force: args.force };
    let (Some(before), Some(after)) = (&args.before, &args.after) else {
        return self_test::run(args.comparisons, options, args.json);
    };
    let comparison = compare(&load_run(before)?, &load_run(after)?, &options).map_err(Failure::bad_input)?;
    let text = rendered(args, &comparison)?;
    match &args.output {
        None => term::print(&text)?,
        Some(path) => {
            output::write(path, text.as_bytes())?;
            crate::term::tell!("{}, written to {}", comparison.verdict, path.display());
        }
    }
    Ok(exit(&comparison, args.fail_on_regression))
}

fn rendered(args: &CompareArgs, comparison: &Comparison) -> Result<String, Failure> {
    match if args.json { Format::Json } else { args.format } {
        Format::Text => Ok(render::text(comparison, term::screen(args.output.is_some()))),
        Format::Markdown => Ok(render::markdown(comparison)),
        Format::Junit => render::junit(comparison).map_err(Failure::not_possible),
        Format::Json => {
            serde_json::to_string_pretty(comparison).map(|text| text + "\n").map_err(Failure::not_possible)
        }
    }
}

/// As the command's help says. A gate must not pass because nothing could be judged.
fn exit(comparison: &Comparison, fail_on_regression: bool) -> Exit {
    let regressed = comparison.counts.regressed > 0 || !comparison.broken.is_empty();
    if fail_on_regression && regressed {
        Exit::CheckFailed
    } else if comparison.metrics.is_empty() || (fail_on_regression && comparison.counts.decided() == 0) {
        Exit::Inconclusive
    } else {
        Exit::Pass
    }
}
