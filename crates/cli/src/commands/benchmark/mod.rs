//! `warpt benchmark`: list, describe, run, compare, score, fleet, history.

mod compare;
mod describe;
mod fleet;
mod history;
mod list;
mod load;
mod round;
mod run;
mod score;
mod selector;

use clap::Subcommand;
use warpforge_bench::record::{BenchmarkComponent, BenchmarkSuiteRun};
use warpforge_report::run as report;

use crate::exit::{Failure, Outcome};
use crate::format::Format;
use crate::term;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchmarkCommand {
    /// List the suites and their benchmarks
    List(list::ListArgs),
    /// Show everything about one benchmark
    Describe(describe::DescribeArgs),
    /// Run benchmarks and keep their results
    Run(run::RunArgs),
    /// Compare two runs, metric by metric
    Compare(compare::CompareArgs),
    /// One number for a run: the geometric mean of its ratios to a baseline
    Score(score::ScoreArgs),
    /// The baseline of many machines, and those that stray from it
    Fleet(fleet::FleetArgs),
    /// Look at earlier runs
    History(history::HistoryArgs),
    /// Run one round in this process: how `run` starts its fresh processes
    #[command(hide = true)]
    Round,
}

/// Runs the chosen subcommand.
pub(crate) fn run(command: BenchmarkCommand) -> Outcome {
    match command {
        BenchmarkCommand::List(args) => list::run(&args),
        BenchmarkCommand::Describe(args) => describe::run(&args),
        BenchmarkCommand::Run(args) => run::run(&args),
        BenchmarkCommand::Compare(args) => compare::run(&args),
        BenchmarkCommand::Score(args) => score::run(&args),
        BenchmarkCommand::Fleet(args) => fleet::run(&args),
        BenchmarkCommand::History(args) => history::run(&args),
        BenchmarkCommand::Round => round::run(),
    }
}

/// Prints a run; to standard error where standard output is taken by a file.
fn print(result: &BenchmarkSuiteRun, form: Format, taken: bool) -> Result<(), Failure> {
    let text = match form {
        Format::Json => return term::print_json(result),
        Format::Markdown => report::markdown(result),
        Format::Csv => report::csv(result).map_err(Failure::not_possible)?,
        Format::Text => report::text(result, term::screen(taken)),
    };
    term::print_beside(taken, &text)
}

fn component_names(components: &[BenchmarkComponent]) -> String {
    components.iter().map(|component| component.name()).collect::<Vec<_>>().join(",")
}
