//! `warpt golden`: a model trained by PyTorch, then by this engine, and both runs kept for `warpt validate`.

mod list;
mod ranks;
mod record;
mod run;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use warpforge_golden_bench::Error;
use warpforge_golden_bench::description::Overrides;

use crate::exit::{Failure, Outcome};
use crate::signals;

/// The commands about golden benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum GoldenCommand {
    /// List the golden benchmarks, their presets and licences
    List(list::ListArgs),
    /// Pass 1: train with PyTorch and keep what another engine is judged by
    Record(Box<record::RecordArgs>),
    /// Pass 2: train the same with this engine
    Run(Box<run::RunArgs>),
}

pub(crate) fn run(command: GoldenCommand) -> Outcome {
    match command {
        GoldenCommand::List(args) => list::run(&args),
        GoldenCommand::Record(args) => record::run(&args),
        GoldenCommand::Run(args) => signals::clean_up().and_then(|()| run::run(&args)),
    }
}

/// Which benchmark, and what is to be otherwise than it says.
#[derive(Debug, Args)]
struct BenchmarkArgs {
    /// A built-in benchmark, or the path of a description of your own, which ends in `.toml`
    #[arg(value_name = "BENCHMARK|FILE.toml")]
    benchmark: String,
    /// The preset
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// A folder with the model's weights and vocabulary, or a file of weights, instead of the description's
    #[arg(long, value_name = "DIR|FILE")]
    model: Option<PathBuf>,
    /// A file of instructions or a folder of COCO to train on, instead of the description's
    #[arg(long, value_name = "FILE.jsonl|DIR")]
    data: Option<PathBuf>,
    /// How often to go through the data
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    epochs: Option<u64>,
    /// Examples of a batch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: Option<u32>,
    /// Updates, whatever the epochs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "epochs")]
    steps: Option<u64>,
    /// The seed of weights and data order
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Processes that share each batch
    #[arg(long, value_name = "N")]
    ranks: Option<NonZeroUsize>,
    /// Accept a licence that does not allow commercial use, by its name; may be given several times
    #[arg(long, value_name = "NAME")]
    accept_licence: Vec<String>,
}

impl BenchmarkArgs {
    fn overrides(&self) -> Overrides {
        Overrides {
            model: self.model.clone(),
            data: self.data.clone(),
            epochs: self.epochs,
            batch_size: self.batch_size.map(|size| size as usize),
            steps: self.steps,
            seed: self.seed,
            ranks: self.ranks.map(NonZeroUsize::get),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Model(error) => error.into(),
            Error::Python(_) => Self::not_possible(error),
            Error::Stopped(_) | Error::Group(_) => Self::check_failed(error),
            _ => Self::bad_input(error),
        }
    }
}
