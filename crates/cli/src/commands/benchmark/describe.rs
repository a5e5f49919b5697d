//! `warpt benchmark describe`.

use clap::Args;

use crate::exit::{Exit, Outcome};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {}

/// Runs the command.
pub(crate) fn run(_args: &DescribeArgs) -> Outcome {
    Ok(Exit::Pass)
}
