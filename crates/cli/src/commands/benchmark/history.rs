//! `warpt benchmark history`.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {}

/// Runs the command.
pub(crate) fn run(_args: &HistoryArgs) -> Outcome {
    Ok(Exit::Pass)
}
