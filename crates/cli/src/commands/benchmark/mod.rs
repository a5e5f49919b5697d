//! `warpt benchmark`: list, describe, run, compare, history.

mod compare;
mod describe;
mod history;
mod list;
mod run;

use clap::Subcommand;

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
}

/// Runs the chosen subcommand.
pub(crate) fn run(command: BenchmarkCommand) -> Outcome {
    match command {
        BenchmarkCommand::List(args) => list::run(&args),
        BenchmarkCommand::Describe(args) => describe::run(&args),
        BenchmarkCommand::Run(args) => run::run(&args),
        BenchmarkCommand::Compare(args) => compare::run(&args),
        BenchmarkCommand::History(args) => history::run(&args),
    }
}
