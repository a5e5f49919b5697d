//! `warpt benchmark`: list, describe, run, compare, history.

mod compare;
mod describe;
mod format;
mod history;
mod list;
mod load;
mod round;
mod run;
mod selector;

use clap::Subcommand;
use warpforge_bench::record::BenchmarkComponent;

use crate::exit::Outcome;

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
        BenchmarkCommand::History(args) => history::run(&args),
        BenchmarkCommand::Round => round::run(),
    }
}

fn component_names(components: &[BenchmarkComponent]) -> String {
    components.iter().map(|component| component.name()).collect::<Vec<_>>().join(",")
}
