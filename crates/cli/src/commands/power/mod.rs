//! `warpt power`: what the machine, or a command on it, draws and uses.

pub(crate) mod measure;
pub(crate) mod text;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use warpforge_inventory::live::{Energy, ProcessEnergy, SourceEnergy};

use crate::exit::{Exit, Outcome};
use crate::signals::stop_on_signals;
use crate::{term, values};
use measure::{CommandEnergy, Measured, Request, measure, reports_power};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Seconds between samples, 0.05 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Seconds to measure; a command is measured from its start to its end
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = term::positive_seconds, conflicts_with = "command")]
    duration: f64,
    /// How many processes to show, those that used most first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = values::whole::<usize>)]
    top: usize,
    /// Do not list processes
    #[arg(long)]
    no_processes: bool,
    /// Print JSON for programs; what the command writes to standard output goes to standard error
    #[arg(long)]
    json: bool,
    /// Show what reports its power on this machine, and measure nothing
    #[arg(long, conflicts_with = "command")]
    sources: bool,
    /// Read `/proc` and `/sys` below this folder
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
    /// A command and its arguments, after `--`: its energy from start to end
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    energy: &'a Energy,
    /// The processes that used most; null where that is not known or not asked for.
    processes: Option<&'a [ProcessEnergy]>,
    /// Why not, where they were asked for.
    processes_reason: Option<&'a str>,
    /// The command, where one was run.
    command: Option<&'a CommandEnergy>,
}

/// Runs the command.
pub(crate) fn run(args: &PowerArgs) -> Outcome {
    if args.sources {
        return sources(args);
    }
    let stop = stop_on_signals()?;
    // Where nothing reports its power, there is nothing to wait for.
    let is_silent = args.command.is_empty() && !reports_power(&args.root);
    let request = Request {
        root: &args.root,
        interval: args.interval,
        duration: if is_silent { Duration::ZERO } else { Duration::from_secs_f64(args.duration) },
        command: &args.command,
        stdout_is_taken: args.json,
        processes: !args.no_processes && !is_silent,
    };
    let measured = measure(&request, &|| stop.load(Ordering::Relaxed))?;
    let Measured { energy, processes, command } = &measured;
    let listed = processes.as_ref().and_then(|processes| processes.as_ref().ok());
    let report = Report {
        energy,
        processes: listed.map(|list| &list[..list.len().min(args.top)]),
        processes_reason: processes
            .as_ref()
            .and_then(|processes| processes.as_ref().err().map(String::as_str)),
        command: command.as_ref(),
    };
    if args.json {
        term::print_json(&report)?;
    } else {
        term::print(&text::report(&report, term::screen(false)))?;
    }
    Ok(match command {
        Some(command) => command.exit(),
        None if energy.sources.is_empty() => Exit::NotPossible,
        None => Exit::Pass,
    })
}

/// What reports its power, each with how it does.
fn sources(args: &PowerArgs) -> Outcome {
    let request = Request {
        root: &args.root,
        interval: args.interval,
        duration: Duration::from_millis(100),
        command: &[],
        stdout_is_taken: false,
        processes: false,
    };
    let energy = measure(&request, &|| false)?.energy;
    let sources: &[SourceEnergy] = &energy.sources;
    if args.json {
        term::print_json(&sources)?;
    } else {
        term::print(&text::sources(&energy, term::screen(false)))?;
    }
    Ok(if sources.is_empty() { Exit::NotPossible } else { Exit::Pass })
}

/// Parses the time between samples for clap. Counters may wrap unseen in longer ones.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=60.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds from 0.05 to 60".to_owned()),
    }
}
