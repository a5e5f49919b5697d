//! Set-up, tests and comparisons with other tools: `cargo xtask`.

#![forbid(unsafe_code)]

mod command;
mod differential;
#[cfg(test)]
mod layers;
mod peers;
mod test;

use clap::{Parser, Subcommand};

/// Set-up, tests and comparisons with other tools.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Set up whatever the tests need, then run all of them
    Test(test::TestArgs),
    /// Compare the reference with XLA on random programs
    Differential(differential::DifferentialArgs),
    /// Measure warpt beside the tools that people would use instead
    #[command(subcommand)]
    Peers(peers::Peers),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Test(args) => test::run_tests(&args),
        Task::Differential(args) => differential::run(&args),
        Task::Peers(peers) => peers::run(&peers),
    }
}
