//! `warpt golden run`: the pass of this engine.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use warpforge::{CompileOptions, Precision, Tier};
use warpforge_collective::Collectives;
use warpforge_golden_bench::run::{
    Codes, Finished, Inject, Options, Selection, StepNumbers, run as run_golden,
};
use warpforge_golden_bench::{Agreement, Description, GoldenRun, Wanted};

use super::BenchmarkArgs;
use super::ranks::Ranks;
use crate::exit::{Exit, Failure, Outcome};
use crate::values::RankDevice;
use crate::{term, values};

/// Seconds between two lines where standard error is no terminal.
const PERIOD: Duration = Duration::from_secs(5);

/// Train the same as a golden run with this engine, and keep the same of it.
///
/// The data pipeline is our own: features that differ from the golden run's are refused. The whole step is one program
/// whose state stays on the device. A run that was stopped goes on from its last checkpoint when the same command is given
/// again.
///
/// `--ranks N` shares each batch among N processes of this machine, whose gradients are averaged. Started by `mpirun`, by
/// `srun`, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, each process is one rank. The golden run must have
/// been recorded with a multiple of that. Gradients stay on the GPUs, by NCCL or RCCL, where every rank has one of its own.
///
/// Exit codes: 0 done (compare with `warpt validate`), 1 the run cannot go on (a loss that is not finite, too little
/// memory, a rank that is gone), 2 bad input, 3 not possible here.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    benchmark: BenchmarkArgs,
    /// The folder of the golden run
    #[arg(long, value_name = "DIR")]
    compare_golden: PathBuf,
    /// The folder to write, or to go on with
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Where to run: `cpu`, `cuda[:N]` or `hip[:N]`; several ranks of a machine take its GPUs in turn where N is left out
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::rank_devices())]
    device: RankDevice,
    /// How to run [default: the fastest that the device has]
    #[arg(long, value_name = "TIER", value_parser = values::tiers())]
    tier: Option<Tier>,
    /// What contractions multiply f32 operands as
    #[arg(long, value_name = "PRECISION", default_value = "model", value_parser = values::float_precisions())]
    precision: Precision,
    /// The most threads to use [default: as many as the backend likes]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// How several ranks talk to each other: `tcp`, `mpi` or `ucc`, or `nccl` or `rccl` between their GPUs [default: NCCL or RCCL
    /// where every rank has a GPU of its own, else what their launcher suggests]
    #[arg(long, value_name = "ENGINE", env = "WARPFORGE_COLLECTIVES", value_parser = values::collectives())]
    collectives: Option<Collectives>,
    /// Write a checkpoint after so many steps [default: as often as takes 2 % of the time]
    #[arg(long, value_name = "N")]
    save_every: Option<NonZeroU64>,
    /// Of a detector: train on the boxes that the golden run chose (`recorded`), or on those that the model being trained chooses
    /// by itself (`own`), which other losses and weights come of; compare metrics only then
    #[arg(long, value_name = "recorded|own", default_value = "recorded")]
    selection: Selection,
    /// Put an error into one operation from a step on, to see that `warpt validate` finds it: multiply the values of a node
    /// of the graph by 1 + PART
    #[arg(long, value_name = "NODE@STEP[=PART]")]
    inject: Option<Inject>,
    /// Compute the forward pass of each step again, segment by segment, instead of keeping it for the backward pass
    #[arg(long)]
    gradient_checkpointing: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RunArgs) -> Outcome {
    let description = Description::find(&args.benchmark.benchmark)?;
    let overrides = args.benchmark.overrides();
    let wanted = Wanted {
        benchmark: description.name(),
        preset: args.benchmark.preset.as_deref(),
        overrides: &overrides,
    };
    let golden = GoldenRun::open(&args.compare_golden, &wanted)?;
    golden.plan.check_licences(&args.benchmark.accept_licence)?;
    let ranks = Ranks::join(args.benchmark.ranks, args.collectives, args.device)?;
    let options = Options {
        compile: CompileOptions {
            device: ranks.device(),
            tier: args.tier,
            precision: args.precision,
            threads: args.threads.or_else(|| ranks.threads()),
            gradient_checkpointing: args.gradient_checkpointing,
            ..CompileOptions::default()
        },
        out: args.out.clone(),
        save_every: args.save_every,
        selection: args.selection,
        inject: args.inject.clone(),
        group: ranks.group(),
    };
    let mut progress = Progress::new();
    let finished = run_golden(&golden, &options, &mut |step, steps| progress.step(step, steps));
    progress.bar.finish_and_clear();
    // The first rank speaks for all.
    if let Some(finished) = finished? {
        let group = options.group.as_ref();
        let used = group.map(|group| (group.communicator().size(), group.engine()));
        drop(options);
        ranks.end()?;
        print(args, &golden, &finished, used)?;
    }
    Ok(Exit::Pass)
}

/// Progress on standard error: a bar on a terminal, else a line now and then.
struct Progress {
    bar: ProgressBar,
    begin: Instant,
    done: u64,
    said: Option<Instant>,
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, begin: Instant::now(), done: 0, said: None }
    }

    fn step(&mut self, numbers: &StepNumbers, steps: u64) {
        self.done += 1;
        let rate = self.done as f64 / self.begin.elapsed().as_secs_f64().max(1e-9);
        let text = format!("loss {:.4}, {rate:.2} steps/s", numbers.loss);
        self.bar.set_length(steps);
        self.bar.set_position(numbers.step + 1);
        self.bar.set_message(text.clone());
        let last = numbers.step + 1 == steps;
        let due = self.said.is_none_or(|said| said.elapsed() >= PERIOD);
        if self.bar.is_hidden() && (last || due) {
            self.said = Some(Instant::now());
            let left = (steps - numbers.step - 1) as f64 / rate;
            term::tell!("warpt: step {}/{steps}, {text}, {left:.0} s left", numbers.step + 1);
        }
    }
}

/// Prints what a run came to; `ranks` is how many there were, and how their gradients travelled.
fn print(
    args: &RunArgs,
    golden: &GoldenRun,
    finished: &Finished,
    ranks: Option<(usize, &str)>,
) -> Result<(), Failure> {
    let last = finished.steps.last().map_or(f64::NAN, |step| step.loss);
    if args.json {
        return term::print_json(&json!({
            "schema_version": 1,
            "benchmark": golden.plan.benchmark,
            "preset": golden.plan.preset,
            "out": args.out.display().to_string(),
            "resumed_at": finished.resumed,
            "ranks": {"count": ranks.map_or(1, |(count, _)| count), "engine": ranks.map(|(_, engine)| engine)},
            "steps": finished.steps,
            "metrics": finished.metrics,
            "golden_metrics": finished.golden_metrics,
            "seconds": finished.time.as_secs_f64(),
            "codes": {"base": finished.base_codes, "moments": finished.moment_codes},
            "detections": finished.detections,
        }));
    }
    let mut text = format!("{}: {} steps, last loss {last:.6}\n", args.out.display(), finished.steps.len());
    if let Some(step) = finished.resumed {
        text += &format!("went on from step {step}\n");
    }
    if let Some((count, engine)) = ranks {
        text += &format!(
            "gradients averaged by {engine} among {count} {}\n",
            if count == 1 { "rank" } else { "ranks" }
        );
    }
    for (name, value) in &finished.metrics {
        let golden = finished.golden_metrics.get(name).copied().unwrap_or(f64::NAN);
        text += &format!("{name:<12} {value:8.3}   golden {golden:8.3}\n");
    }
    let codes = [("base", finished.base_codes), ("moments", finished.moment_codes)];
    for (what, codes) in codes.into_iter().filter_map(|(what, codes)| Some((what, codes?))) {
        let Codes { compared, differing, largest } = codes;
        text += &format!("codes of the {what}: {differing} of {compared} differ, at most by {largest}\n");
    }
    if let Some(Agreement { golden, own, paired, largest_box, largest_score }) = finished.detections {
        text += &format!(
            "detections: {own}, golden {golden}, of the same objects {paired}, at most {largest_box:.3} pixels and {largest_score:.1e} of score apart\n"
        );
    }
    text += &format!(
        "compare: warpt validate --golden {} --candidate {}\n",
        args.compare_golden.display(),
        args.out.display()
    );
    term::print(&text)
}
