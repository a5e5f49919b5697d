//! `warpt monitor`: what the machine is doing, live.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {}

/// Runs the command.
pub(crate) fn run(_args: &MonitorArgs) -> Outcome {
    Ok(Exit::Pass)
}
