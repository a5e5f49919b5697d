//! The child's side of `warpt benchmark run`: one round, asked for on standard input.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use warpforge_bench::runner::{ChildProcess, answer_round};

use crate::exit::{Exit, Failure, Outcome};

/// Runs rounds in fresh processes of this very program.
pub(super) fn executor() -> Result<ChildProcess, Failure> {
    let program = std::env::current_exe()
        .context("cannot find this program's own file")
        .map_err(Failure::not_possible)?;
    Ok(ChildProcess { program, arguments: ["benchmark", "round"].map(str::to_owned).to_vec() })
}

/// Answers one round.
pub(super) fn run() -> Outcome {
    // A parent that is killed takes its child along, so that no load is left behind.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(Failure::not_possible)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::not_possible)?;
    }
    answer_round(&mut io::stdin().lock(), &mut io::stdout().lock(), &|| stop.load(Ordering::Relaxed))
        .context("this command is how `warpt benchmark run` starts its processes; it takes one round as JSON")
        .map_err(Failure::bad_input)?;
    Ok(Exit::Pass)
}
