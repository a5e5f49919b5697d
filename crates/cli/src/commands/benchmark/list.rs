//! `warpt benchmark list`.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

/// Runs the command.
pub(crate) fn run(_args: &ListArgs) -> Outcome {
    Ok(Exit::Pass)
}
