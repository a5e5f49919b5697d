//! `warpt serve`: the far end of the network benchmark.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {}

/// Runs the command.
pub(crate) fn run(_args: &ServeArgs) -> Outcome {
    Ok(Exit::Pass)
}
