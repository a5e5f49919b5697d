//! `warpt calibrate`: what this machine really does, which fusions pay on it, and how well that predicts models.

mod check;
pub(crate) mod machine;
mod measure;
mod page;
mod place;
mod show;
mod tables;
mod text;

use clap::{Args, Subcommand};
use warpforge_calibrate::Error;

use crate::exit::{Failure, Outcome};

/// Arguments of `warpt calibrate`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CalibrateArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    measure: measure::MeasureArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show a profile: limits, fusion patterns with their verdicts, a roofline
    Show(show::ShowArgs),
    /// Draw the roofline of a profile as an SVG document, or as an HTML page with its tables
    Plot(show::PlotArgs),
    /// Predict models from a profile, run them, and say how far off the predictions are
    Check(check::CheckArgs),
}

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs) -> Outcome {
    match &args.command {
        None => measure::run(&args.measure),
        Some(Command::Show(args)) => show::show(args),
        Some(Command::Plot(args)) => show::plot(args),
        Some(Command::Check(args)) => check::run(args),
    }
}

/// What a failure leads to.
fn failure(error: Error) -> Failure {
    match error {
        Error::Model(error) => error.into(),
        Error::Profile(_) | Error::Settings(_) => Failure::bad_input(error),
        Error::Mismatch { .. } => Failure::check_failed(error),
        _ => Failure::not_possible(error),
    }
}
