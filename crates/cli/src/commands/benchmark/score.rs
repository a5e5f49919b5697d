//! `warpt benchmark score`: one number for a run.

use clap::Args;
use warpforge_bench::score::score;
use warpforge_report::score as render;

use super::load::load_run;
use crate::exit::{Exit, Failure, Outcome};
use crate::format::{Format, FormatArgs};
use crate::term;

/// One number for a run: the geometric mean of its ratios to a baseline.
///
/// Rates and times count, each benchmark once. 1 is as fast as the baseline, 2 twice as fast.
///
/// Exit codes: 0 scored, 2 bad input, 4 nothing in common.
#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// The run: a file, the folder of a golden benchmark, or an id of the history
    #[arg(value_name = "RUN")]
    run: String,
    /// What it is measured by: a file, such as that of `fleet --baseline`, or an id of the history
    #[arg(long, value_name = "RUN")]
    baseline: String,
    #[command(flatten)]
    format: FormatArgs,
}

/// Scores a run.
pub(crate) fn run(args: &ScoreArgs) -> Outcome {
    let score = match score(&load_run(&args.run)?, &load_run(&args.baseline)?) {
        Ok(score) => score,
        Err(error) => {
            crate::term::tell!("{error}");
            return Ok(Exit::Inconclusive);
        }
    };
    let text = match args.format.form() {
        Format::Json => {
            term::print_json(&score)?;
            return Ok(Exit::Pass);
        }
        Format::Markdown => render::markdown(&score, &args.baseline),
        Format::Csv => render::table(&score).to_csv().map_err(Failure::not_possible)?,
        Format::Text => render::text(&score, &args.baseline, term::screen(false)),
    };
    term::print(&text)?;
    Ok(Exit::Pass)
}
