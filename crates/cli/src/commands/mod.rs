//! The commands, a module each.

mod benchmark;
mod calibrate;
mod carbon;
mod check;
mod conformance;
mod golden;
mod import;
mod list;
mod microbench;
mod model;
mod monitor;
mod opt;
mod pages;
mod power;
mod run;
mod serve;
mod shell;
pub(crate) mod stress;
mod validate;

use anyhow::anyhow;
use clap::{Parser, Subcommand};
use warpforge_bench::selection::nearest;

use crate::exit::{Failure, Outcome};
use crate::signals;

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
    /// Measure what this machine really does, what fusion is worth on it, and predict models
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Measure quantized layers for speed and accuracy, as a YAML file of torchao's runner asks
    Microbench(microbench::MicrobenchArgs),
    /// Load a part of this machine for a time and verify every result
    Stress(Box<stress::StressArgs>),
    /// Measure what this machine, or a command on it, draws and uses
    Power(power::PowerArgs),
    /// Measure a command's energy and, for a named grid, its carbon
    Carbon(carbon::CarbonArgs),
    /// Answer another host's network benchmark and stress test
    Serve(serve::ServeArgs),
    /// Parse and verify a StableHLO model; what is wrong goes to standard error
    Check(check::CheckArgs),
    /// Read a StableHLO model and write it again
    Opt(opt::OptArgs),
    /// Turn a PyTorch archive (.pt2) into a StableHLO model
    Import(import::ImportArgs),
    /// Run a model on given or random inputs
    Run(Box<run::RunArgs>),
    /// Train a model with PyTorch, then the same with this engine, for a comparison of all that comes of it
    #[command(subcommand)]
    Golden(golden::GoldenCommand),
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
        check_environment()?;
        match self.command {
            Command::List(args) => list::run(&args),
            Command::Monitor(args) => monitor::run(&args),
            Command::Benchmark(command) => benchmark::run(command),
            Command::Calibrate(args) => calibrate::run(&args),
            Command::Microbench(args) => signals::clean_up().and_then(|()| microbench::run(&args)),
            Command::Stress(args) => stress::run(&args),
            Command::Power(args) => power::run(&args),
            Command::Carbon(args) => carbon::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Opt(args) => signals::clean_up().and_then(|()| opt::run(&args)),
            Command::Import(args) => signals::clean_up().and_then(|()| import::run(&args)),
            Command::Run(args) => signals::clean_up().and_then(|()| run::run(&args)),
            Command::Golden(command) => golden::run(command),
            Command::Validate(args) => validate::run(&args),
            Command::Conformance(args) => conformance::run(&args),
            Command::Completions(args) => shell::completions(&args),
            Command::Man(args) => shell::man(&args),
        }
    }
}

/// The instructions that kernels can be held to.
const INSTRUCTION_SETS: [&str; 3] = ["portable", "avx2", "avx512"];

/// Refuses a setting of the environment that would have no effect.
fn check_environment() -> Result<(), Failure> {
    const NAME: &str = "WARPFORGE_ISA";
    match std::env::var_os(NAME).filter(|value| !value.is_empty()) {
        Some(value) if !INSTRUCTION_SETS.iter().any(|known| value == *known) => {
            let (value, known) = (value.display(), INSTRUCTION_SETS.join(", "));
            Err(Failure::bad_input(anyhow!("{NAME}={value}: there are no such instructions; choose {known}")))
        }
        _ => Ok(()),
    }
}

/// An option names an input that the model has not.
fn no_such_input(option: &str, name: &str, inputs: &[&str]) -> Failure {
    let hint = match nearest(name, inputs.iter().copied()) {
        Some(nearest) => format!(", did you mean `{nearest}`?"),
        None if inputs.is_empty() => "; it has none".to_owned(),
        None => format!("; it has {}", inputs.join(", ")),
    };
    Failure::bad_input(anyhow!("{option} {name}: the model has no such input{hint}"))
}
