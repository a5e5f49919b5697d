//! The `warpt` program: arguments in, rendering out.

#![forbid(unsafe_code)]

mod commands;
mod config;
mod exit;
mod format;
mod output;
mod place;
mod signals;
mod term;
mod timeline;
mod values;

use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};

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
            crate::term::tell!("{failure}");
            failure.exit.into()
        }
    }
}

fn run() -> Outcome {
    let command = config::apply(with_negative_numbers(Arguments::command())).map_err(|error| {
        // Help and the version say the same whatever the configuration.
        if let Err(shown) = Arguments::command().try_get_matches()
            && !shown.use_stderr()
        {
            shown.exit();
        }
        Failure::bad_input(error)
    })?;
    let matches = command.get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).run()
}

/// Has options take numbers below zero as values, so that what reads them can say what is wrong.
fn with_negative_numbers(command: Command) -> Command {
    let taking = |argument: Arg| {
        let takes = argument.get_action().takes_values() && !argument.is_positional();
        if takes { argument.allow_negative_numbers(true) } else { argument }
    };
    command.mut_args(taking).mut_subcommands(with_negative_numbers)
}
