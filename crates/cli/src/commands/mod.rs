//! The commands, a module each.

mod benchmark;
mod check;
mod conformance;
mod import;
mod list;
mod model;
mod monitor;
mod opt;
mod run;
mod serve;
mod shell;
mod validate;

use clap::{Parser, Subcommand};

use crate::exit::Outcome;

/// How fast is this machine, how fast could a model be on it, and are the results right.
#[derive(Debug, Parser)]
#[command(name = "warpt", version, about, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what this machine is made of: hardware and software
    List(list::ListArgs),
    /// Watch what this machine is doing
    Monitor(monitor::MonitorArgs),
    /// List, describe, run and compare benchmarks
    #[command(subcommand)]
    Benchmark(benchmark::BenchmarkCommand),
    /// Answer another host's network benchmark
    Serve(serve::ServeArgs),
    /// Parse and verify a StableHLO model; what is wrong goes to standard error
    Check(check::CheckArgs),
    /// Read a StableHLO model and write it again
    Opt(opt::OptArgs),
    /// Turn a PyTorch archive (.pt2) into a StableHLO model
    Import(import::ImportArgs),
    /// Run a model on given or random inputs
    Run(run::RunArgs),
    /// Compare what a model gave with a golden run, and find the first operation that differs
    Validate(validate::ValidateArgs),
    /// Run the StableHLO project's test files on the reference evaluator
    Conformance(conformance::ConformanceArgs),
    /// Write shell completions to standard output
    Completions(shell::CompletionsArgs),
    /// Write manual pages to a folder
    Man(shell::ManArgs),
}

impl Arguments {
    /// Runs the chosen command.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::List(args) => list::run(&args),
            Command::Monitor(args) => monitor::run(&args),
            Command::Benchmark(command) => benchmark::run(command),
            Command::Serve(args) => serve::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Opt(args) => opt::run(&args),
            Command::Import(args) => import::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Validate(args) => validate::run(&args),
            Command::Conformance(args) => conformance::run(&args),
            Command::Completions(args) => shell::completions(&args),
            Command::Man(args) => shell::man(&args),
        }
    }
}
