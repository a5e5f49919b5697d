//! `warpt benchmark run`.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {}

/// Runs the command.
pub(crate) fn run(_args: &RunArgs) -> Outcome {
    Ok(Exit::Pass)
}
