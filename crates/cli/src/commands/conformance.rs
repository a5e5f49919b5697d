//! `warpt conformance`: the StableHLO project's test files, run and judged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use clap::Args;
use warpforge::{CompileOptions, Device, Tensor, Tier};
use warpforge_interp::conformance::{Case, Engine, Judge, Status, Summary, run_folder};
use warpforge_report::{Align, Style, Table};
use warpforge_runtime::{Choice, Fallback, Program, RunOptions, Weights};

use crate::exit::{Exit, Failure, Outcome};
use crate::{term, values};

/// Failures shown in full; the rest is in `--json`.
const SHOWN_FAILURES: usize = 20;

/// Arguments of `warpt conformance`.
#[derive(Debug, Args)]
pub(crate) struct ConformanceArgs {
    /// A folder of `.mlir` files, or one file
    dir: PathBuf,
    /// Where to run: `cpu`, `cuda[:N]` or `hip[:N]`
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    /// How to run
    #[arg(long, value_name = "TIER", default_value = "correctness", value_parser = values::tiers())]
    tier: Tier,
    /// Fail files with operations that only the reference interpreter runs
    #[arg(long)]
    no_fallback: bool,
    /// Files to run at a time [default: one a processor]
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<NonZeroUsize>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// A backend that files are run on, and what fell back to the reference interpreter.
struct Chosen {
    choice: Choice,
    fallbacks: Mutex<Vec<Fallback>>,
}

impl Engine for Chosen {
    fn run(
        &self,
        module: warpforge_ir::Module,
        function: &str,
        inputs: Vec<Tensor>,
    ) -> Result<Vec<Tensor>, String> {
        let program = Program::new(Arc::new(module), function, Weights::default());
        let outcome = program.and_then(|program| self.choice.compile(&program)).and_then(|executable| {
            let mut fallbacks = self.fallbacks.lock().unwrap_or_else(PoisonError::into_inner);
            fallbacks.extend(executable.fallbacks());
            drop(fallbacks);
            executable.run(&inputs, &RunOptions::default())
        });
        outcome.map(|outcome| outcome.outputs).map_err(|error| error.to_string())
    }
}

/// Runs every file below the folder.
pub(crate) fn run(args: &ConformanceArgs) -> Outcome {
    let options = CompileOptions {
        device: args.device,
        tier: Some(args.tier),
        no_fallback: args.no_fallback,
        ..CompileOptions::default()
    };
    let choice =
        warpforge_runtime::choose(warpforge::backends(), &options).map_err(warpforge::Error::from)?;
    let chosen = match choice.target.tier {
        Tier::Correctness if choice.target.device == Device::Cpu => None,
        _ => Some(Arc::new(Chosen { choice, fallbacks: Mutex::default() })),
    };
    let engine = chosen.clone().map(|chosen| chosen as Arc<dyn Engine>);
    let judge = Judge { engine, ..Judge::default() };
    let own = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(own, NonZeroUsize::get);
    let summary = run_folder(&args.dir, &judge, threads)
        .map_err(|error| Failure::bad_input(anyhow!("{}: {error}", args.dir.display())))?;
    if summary.cases.is_empty() {
        return Err(Failure::bad_input(anyhow!("{}: no .mlir files there", args.dir.display())));
    }
    if let Some(chosen) = chosen {
        term::warn_of_fallbacks(&chosen.fallbacks.lock().unwrap_or_else(PoisonError::into_inner));
    }
    if args.json {
        term::print_json(&summary)?;
    } else {
        term::print(&text(&summary))?;
    }
    Ok(if summary.failed > 0 { Exit::CheckFailed } else { Exit::Pass })
}

fn text(summary: &Summary) -> String {
    let mut out = String::new();
    let failed: Vec<&Case> = summary.cases.iter().filter(|case| case.status == Status::Failed).collect();
    for case in failed.iter().take(SHOWN_FAILURES) {
        let reason = case.reason.as_deref().unwrap_or("no reason given");
        let _ = writeln!(out, "{}:{}: {reason}", case.file, case.line);
    }
    if failed.len() > SHOWN_FAILURES {
        let _ = writeln!(out, "… and {} more; --json has all", failed.len() - SHOWN_FAILURES);
    }
    let mut operations: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for case in &summary.cases {
        operations.entry(&case.operation).or_default()[case.status as usize] += 1;
    }
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("passed", Align::Right),
        ("failed", Align::Right),
        ("skipped", Align::Right),
    ]);
    for (operation, counts) in operations {
        let style = if counts[Status::Failed as usize] > 0 { Style::Bad } else { Style::Plain };
        table.row(style, std::iter::once(operation.to_owned()).chain(counts.map(|count| count.to_string())));
    }
    let Summary { passed, failed, skipped, .. } = summary;
    let _ = write!(
        out,
        "{}\n{passed} passed, {failed} failed, {skipped} skipped\n",
        table.to_text(term::screen(false))
    );
    out
}
