//! The `warpt` program: arguments in, rendering out.

#![forbid(unsafe_code)]

mod commands;
mod config;
mod exit;
mod term;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use commands::Arguments;
use exit::{Failure, Outcome};

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match run() {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit.into()
        }
    }
}

fn run() -> Outcome {
    let command = config::apply(Arguments::command()).map_err(Failure::bad_input)?;
    let matches = command.get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).run()
}
