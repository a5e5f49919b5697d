//! Set-up, tests and comparisons with other tools: `cargo xtask`.

#![forbid(unsafe_code)]

mod aa;
mod aten_cases;
mod command;
mod core_aten;
mod coverage;
mod data;
mod differential;
mod fuzz;
mod jax;
#[cfg(test)]
mod layers;
mod models;
#[cfg(test)]
mod modules;
mod peers;
mod python;
mod served;
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
    /// Write docs/coverage.md: which operation is read, verified, evaluated and tested
    Coverage,
    /// Compare the reference with XLA on random programs
    Differential(differential::DifferentialArgs),
    /// Feed mutated files to everything that reads files from strangers
    Fuzz(fuzz::FuzzArgs),
    /// Compare PyTorch's models, imported and run, with PyTorch
    Models(models::ModelsArgs),
    /// Write the cases that ATen lowerings are tested with, from PyTorch
    AtenCases(aten_cases::AtenCasesArgs),
    /// Compare the reference with JAX on programs that JAX lowered
    Jax(jax::JaxArgs),
    /// Fetch the real data sets of biobench from Debian's packages
    Data(data::DataArgs),
    /// Repeat benchmarks, and count how often the comparison calls the same program changed
    Aa(aa::AaArgs),
    /// Measure warpt beside the tools that people would use instead
    #[command(subcommand)]
    Peers(peers::Peers),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Test(args) => test::run_tests(&args),
        Task::Coverage => coverage::write(),
        Task::Differential(args) => differential::run(&args),
        Task::Fuzz(args) => fuzz::run_fuzz(&args),
        Task::Models(args) => models::run_models(&args),
        Task::AtenCases(args) => aten_cases::run_aten_cases(&args),
        Task::Jax(args) => jax::run_jax(&args),
        Task::Data(args) => data::run(&args),
        Task::Aa(args) => aa::run(&args),
        Task::Peers(peers) => peers::run(&peers),
    }
}
