//! `warpt list`: the inventory, for people and for programs.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

/// Runs the command.
pub(crate) fn run(_args: &ListArgs) -> Outcome {
    Ok(Exit::Pass)
}
