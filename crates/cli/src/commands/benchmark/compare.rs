//! `warpt benchmark compare`.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {}

/// Runs the command.
pub(crate) fn run(_args: &CompareArgs) -> Outcome {
    Ok(Exit::Pass)
}
