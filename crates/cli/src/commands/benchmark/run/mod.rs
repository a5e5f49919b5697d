//! `warpt benchmark run`: run benchmarks and keep their results.

mod observer;
mod plan;
mod timeline;

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, anyhow};
use clap::Args;
use warpforge_bench::benchmark::override_params;
use warpforge_bench::history::{History, HistoryError};
use warpforge_bench::record::{self, BenchmarkSuiteRun, Verdict};
use warpforge_bench::runner::{self, DEFAULT_BURNIN_SECONDS, DEFAULT_ROUNDS, RunOptions};
use warpforge_bench::selection::{Selection, nearest, select};
use warpforge_inventory::export;

use super::selector::{Selector, present_components};
use crate::exit::{Exit, Failure, Outcome};
use crate::format::{Format, FormatArgs};
use crate::signals::stop_on_signals;
use crate::timeline::TimelineArgs;
use crate::{output, term};
use observer::Terminal;

/// Arguments of `warpt benchmark run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    selector: Selector,
    /// Seconds to measure each benchmark, over all its rounds [default: the benchmark's own]
    #[arg(long, env = "WARPT_DURATION", value_name = "SECONDS", value_parser = term::positive_seconds)]
    duration: Option<f64>,
    /// Seconds of load before the first measurement of a round
    #[arg(long, env = "WARPT_BURNIN_SECONDS", value_name = "SECONDS", default_value_t = DEFAULT_BURNIN_SECONDS, value_parser = term::seconds)]
    burnin_seconds: f64,
    /// Fresh processes to run each benchmark in
    #[arg(long, env = "WARPT_ROUNDS", value_name = "N", default_value_t = DEFAULT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Set a benchmark's parameter; `BENCHMARK.NAME=VALUE` sets it for one benchmark only
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Measure another program in turn with each benchmark that has it as a peer; `benchmark describe` names them
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    beside: Vec<String>,
    /// Write the result to a file with a name of its own in this folder
    #[arg(long)]
    export: bool,
    /// Write the result to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_file: Option<PathBuf>,
    /// Print what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: FormatArgs,
    /// Do not keep the result in the history
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    timeline: TimelineArgs,
}

/// Runs the selected benchmarks.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let mut selection =
        select(&args.selector.request(), &present_components()).map_err(Failure::bad_input)?;
    apply_params(&mut selection, &args.param)?;
    selection.add_peers(&args.beside).map_err(Failure::bad_input)?;
    runner::prepare(&selection).map_err(Failure::bad_input)?;
    if args.dry_run {
        return dry_run(args, &selection);
    }
    let files = [("--export-file", args.export_file.as_deref()), args.timeline.file()];
    let taken = output::takes_stdout(files, args.format.is_json())?;
    output::check(files.map(|(_, path)| path))?;
    let own = args.export.then(|| export::default_file_name(&format!("benchmark_{}", selection.name)));
    output::check([own.as_deref()])?;
    let history = open_history(args)?;
    let stop = stop_on_signals()?;

    let options = RunOptions {
        rounds: args.rounds,
        duration_seconds: args.duration,
        burn_in_seconds: args.burnin_seconds,
        system: Some(warpforge_inventory::list()),
        monitor_interval: args.timeline.is_asked().then(|| args.timeline.interval()),
    };
    let mut terminal = Terminal::new(history);
    let executor = super::round::executor()?;
    let stopped = || stop.load(Ordering::Relaxed);
    let run = runner::run(&selection, &options, &executor, &mut terminal, &stopped)
        .context("cannot start the monitor")
        .map_err(Failure::not_possible)?;
    terminal.finish(&run);

    write_files(args, own, &run)?;
    super::print(&run, args.format.form(), taken)?;
    if args.format.form() == Format::Text && options.monitor_interval.is_some() {
        let (_, file) = args.timeline.file();
        let kept = terminal.is_kept().then_some(run.run_id.as_str());
        term::print_beside(taken, &timeline::text(&run.timeline, file, kept, term::screen(taken)))?;
    }
    if terminal.is_kept() {
        crate::term::tell!("kept in the history as {}", run.run_id);
    }
    Ok(exit(&run, stopped()))
}

fn dry_run(args: &RunArgs, selection: &Selection) -> Outcome {
    if args.format.is_json() {
        let specs: Vec<_> = selection.chosen.iter().map(|chosen| &chosen.spec).collect();
        term::print_json(&specs)?;
    } else {
        term::print(&plan::text(selection, args.rounds, args.duration))?;
    }
    Ok(Exit::Pass)
}

/// Sets parameters in every chosen benchmark that has them.
fn apply_params(selection: &mut Selection, settings: &[String]) -> Result<(), Failure> {
    for setting in settings {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Failure::bad_input(anyhow!("--param {setting}: expected NAME=VALUE")))?;
        let (only, name) = name.split_once('.').map_or((None, name), |(only, name)| (Some(only), name));
        let mut applied = false;
        for chosen in &mut selection.chosen {
            let spec = &mut chosen.spec;
            let has = spec.params.as_ref().is_some_and(|params| params.contains_key(name));
            let meant = only.map_or(has, |only| only == spec.id.name);
            if meant {
                override_params(spec, name, value).map_err(Failure::bad_input)?;
                applied = true;
            }
        }
        if !applied {
            return Err(unknown_param(selection, only, name));
        }
    }
    Ok(())
}

fn unknown_param(selection: &Selection, only: Option<&str>, name: &str) -> Failure {
    let specs = selection.chosen.iter().map(|chosen| &chosen.spec);
    if let Some(only) = only {
        let names: Vec<_> = specs.map(|spec| spec.id.name.as_str()).collect();
        return Failure::bad_input(anyhow!(
            "--param: `{only}` is not among the benchmarks to run: {}",
            names.join(", ")
        ));
    }
    let known: Vec<_> =
        specs.filter_map(|spec| spec.params.as_ref()).flat_map(|params| params.keys()).collect();
    let hint = nearest(name, known.iter().map(|name| name.as_str()))
        .map_or(String::new(), |nearest| format!(", did you mean `{nearest}`?"));
    Failure::bad_input(anyhow!("no benchmark to run has a parameter `{name}`{hint}"))
}

/// The history, or none where it cannot be written; one of a newer version is an error, so that nothing is lost.
fn open_history(args: &RunArgs) -> Result<Option<History>, Failure> {
    if args.no_history {
        return Ok(None);
    }
    match History::open_default() {
        Ok(history) => Ok(Some(history)),
        Err(error @ HistoryError::TooNew { .. }) => Err(Failure::not_possible(error)),
        Err(error) => {
            term::remark(&format!("warpt: the result will not be kept: {error}"));
            Ok(None)
        }
    }
}

fn write_files(args: &RunArgs, own: Option<PathBuf>, run: &BenchmarkSuiteRun) -> Result<(), Failure> {
    let named = args.export_file.clone();
    for path in named.into_iter().chain(own) {
        record::write(&path, run).map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))?;
        crate::term::tell!("result written to {}", path.display());
    }
    args.timeline.write(&run.timeline)
}

/// Failed if anything failed; inconclusive if it was stopped, or a peer failed that it was to be measured beside; not
/// possible if there was nothing that could run.
fn exit(run: &BenchmarkSuiteRun, stopped: bool) -> Exit {
    let any = |verdict| run.benchmarks.iter().any(|result| result.verdict == Some(verdict));
    let peers = || run.benchmarks.iter().flat_map(|result| &result.beside);
    let any_peer = |verdict| peers().any(|peer| peer.verdict == verdict);
    if any(Verdict::Fail) {
        Exit::CheckFailed
    } else if stopped || any(Verdict::Inconclusive) || any_peer(Verdict::Fail) {
        Exit::Inconclusive
    } else if any(Verdict::Pass) {
        Exit::Pass
    } else {
        Exit::NotPossible
    }
}
