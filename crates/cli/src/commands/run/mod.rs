//! `warpt run`: a model on given or random inputs.

mod compare;
mod inputs;
mod keep;
mod kernels;
mod observe;
mod record;
mod render;
mod roofline;
mod save;
mod state;
mod sweep;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use warpforge::{CompileOptions, CompiledModel, Device, Model, Outputs, RunOptions, Tensor, Tier};
use warpforge_calibrate::CostModel;
use warpforge_fusion::cluster::Machine;
use warpforge_golden::op_by_op::Compared;
use warpforge_golden_bench::values as values_of;
use warpforge_runtime::Executable;
use warpforge_tensor::io::input;

use self::record::Record;
use self::sweep::Combination;
use super::calibrate::machine;
use crate::exit::{Exit, Failure, Outcome};
use crate::format::{Format, FormatArgs};
use crate::{output, term, values};

/// Arguments of `warpt run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// StableHLO files (text or bytecode) or PyTorch archives (`.pt2`); `-` is standard input. Several are timed one
    /// after the other and compared
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<PathBuf>,
    #[command(flatten)]
    inputs: inputs::InputArgs,
    /// Write the outputs to this file: safetensors, or npy where there is one output and the name ends so; `-` is
    /// standard output
    #[arg(long, value_name = "OUT.safetensors")]
    outputs: Option<PathBuf>,
    /// Where to run: `cpu`, `cuda[:N]` or `hip[:N]`
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = values::devices())]
    device: Device,
    #[command(flatten)]
    sweep: sweep::SweepArgs,
    /// Refuse a model with operations that only the reference interpreter runs
    #[arg(long)]
    no_fallback: bool,
    /// Run so many times, for the statistics [default: 1, in a sweep 6]
    #[arg(long, value_name = "N", value_parser = values::count)]
    repeat: Option<NonZeroUsize>,
    /// Run so many times before that, untimed [default: 0, in a sweep 1]
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>)]
    warmup: Option<usize>,
    /// The function to run; by default `@main`, or the only public one
    #[arg(long, value_name = "FUNCTION")]
    entry: Option<String>,
    /// Compute the forward pass of a training step again, segment by segment, instead of keeping it for the backward
    /// pass: less memory, a third more work
    #[arg(long)]
    gradient_checkpointing: bool,
    /// The profile of this machine, as `warpt calibrate` wrote it: fusion decisions that are close are its own, and
    /// --profile says by it what bounds each kernel [default for --profile: the one at its default place]
    #[arg(long, value_name = "PROFILE.json")]
    machine: Option<PathBuf>,
    #[command(flatten)]
    state: state::StateArgs,
    #[command(flatten)]
    observe: observe::ObserveArgs,
    /// Write the run as a folder that `warpt validate` takes: inputs, outputs, the values of the graph's nodes,
    /// gradients, losses, and a manifest
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// With --save, write the weights too
    #[arg(long, requires = "save")]
    save_weights: bool,
    #[command(flatten)]
    keep: keep::KeepArgs,
    #[command(flatten)]
    format: FormatArgs,
}

impl RunArgs {
    /// The files that are written, by their options.
    fn files(&self) -> impl Iterator<Item = (&'static str, Option<&Path>)> + Clone {
        let own = [
            ("--outputs", self.outputs.as_deref()),
            ("--export-file", self.keep.file()),
            ("--state", self.state.file()),
        ];
        self.observe.files().into_iter().chain(own)
    }

    /// Whether several ways to run a model are compared.
    fn is_sweep(&self) -> bool {
        self.sweep.combinations(&self.inputs).len() > 1
    }

    /// Timed runs.
    fn repeat(&self) -> usize {
        let default = if self.is_sweep() { sweep::REPEAT } else { 1 };
        self.repeat.map_or(default, NonZeroUsize::get)
    }

    /// Untimed runs before them.
    fn warmup(&self) -> usize {
        self.warmup.unwrap_or(if self.is_sweep() { sweep::WARMUP } else { 0 })
    }

    /// Refuses what is about one run where there are several.
    fn check_single(&self) -> Result<(), Failure> {
        let several = match (self.models.len(), self.is_sweep()) {
            (1, false) => return Ok(()),
            (1, true) => "is for one run, and this is a sweep",
            _ => "is for one model, and there are several",
        };
        let mut options = self.files().filter(|(name, _)| *name != "--export-file");
        let given = options.find(|(_, path)| path.is_some()).map(|(name, _)| name);
        let given = given.or(self.save.is_some().then_some("--save"));
        match given.or(self.observe.compares().then_some("--compare")) {
            Some(option) => Err(Failure::bad_input(anyhow!("{option} {several}"))),
            None => Ok(()),
        }
    }

    /// Refuses to read standard input twice.
    fn check_standard(&self) -> Result<(), Failure> {
        match self.models.iter().filter(|model| input::is_standard(model)).count() {
            0 | 1 => Ok(()),
            _ => Err(Failure::bad_input(anyhow!("standard input has one model: give `-` once"))),
        }
    }

    /// Refuses a file of tensors with the name of another format.
    fn check_endings(&self) -> Result<(), Failure> {
        const OTHERS: [&str; 7] = ["csv", "json", "npz", "onnx", "pt", "pth", "txt"];
        let Some(path) = &self.outputs else { return Ok(()) };
        match path.extension().and_then(|ending| ending.to_str()) {
            Some(ending) if OTHERS.contains(&ending) => Err(Failure::bad_input(anyhow!(
                "--outputs {}: outputs are written as .safetensors, or one of them as .npy",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    fn compile_options(&self, combination: &Combination) -> Result<CompileOptions, Failure> {
        Ok(CompileOptions {
            device: self.device,
            tier: combination.tier.or_else(|| self.sees_values().then_some(Tier::Correctness)),
            precision: combination.precision,
            threads: combination.threads,
            no_fallback: self.no_fallback,
            gradient_checkpointing: self.gradient_checkpointing,
            machine: self
                .named_machine()?
                .map(|cost| Arc::new(cost.in_precision(combination.precision)) as Arc<dyn Machine>),
        })
    }

    /// The cost model of the profile that was named, which must be of this machine.
    fn named_machine(&self) -> Result<Option<CostModel>, Failure> {
        let read = |path: &Path| machine::read(path)?.of_this_machine()?.cost_model(self.device);
        self.machine.as_deref().map(read).transpose()
    }

    /// The limits for a profile: those of the machine's profile that was named, or else of the one at its default place.
    fn limits(&self, compiled: &CompiledModel) -> Result<Option<roofline::Roofline>, Failure> {
        if !self.observe.profiles() {
            return Ok(None);
        }
        let cost = self.named_machine()?.or_else(|| machine::of_here(self.device));
        Ok(cost.map(|cost| roofline::Roofline::new(cost, compiled)))
    }

    /// Whether single values are to be seen, which only the correctness tier shows.
    fn sees_values(&self) -> bool {
        self.observe.sees_values() || self.save.is_some()
    }
}

/// Runs the models one after the other, and says what came of it.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let taken = output::takes_stdout(args.files(), args.format.is_json())?;
    args.check_single()?;
    args.check_standard()?;
    args.check_endings()?;
    output::check(args.files().map(|(_, path)| path))?;
    let combinations = args.sweep.combinations(&args.inputs);
    let [combination] = combinations.as_slice() else {
        return sweep::run(args, &combinations, taken);
    };
    if matches!(args.format.form(), Format::Markdown | Format::Csv) {
        return sweep::run(args, &combinations, taken);
    }
    if args.state.file().is_none() {
        args.inputs.one_step()?;
    }
    let mut records = Vec::new();
    let mut exit = Exit::Pass;
    for model in &args.models {
        let (record, own) = match args.state.file() {
            Some(file) => state::one(args, model, combination, file)?,
            None => one(args, &load(args, model)?, combination)?,
        };
        exit = if exit == Exit::Pass { own } else { exit };
        records.push(record);
    }
    args.keep.keep(&records, &[])?;
    let text = match records.as_slice() {
        [record] if args.format.is_json() => return term::print_json(record).map(|()| exit),
        records if args.format.is_json() => return term::print_json(&records).map(|()| exit),
        [record] => render::text(record, term::screen(taken)),
        records => render::several(records, term::screen(taken)),
    };
    term::print_beside(taken, &text)?;
    Ok(exit)
}

/// A model with its weights.
struct Loaded<'a> {
    path: &'a Path,
    model: Model,
    /// How long that took.
    time: Duration,
}

fn load<'a>(args: &RunArgs, path: &'a Path) -> Result<Loaded<'a>, Failure> {
    let begin = Instant::now();
    let mut model = Model::load_entry(path, args.entry.as_deref())?;
    args.inputs.bind_weights(&mut model)?;
    Ok(Loaded { path, model, time: begin.elapsed() })
}

/// Compiles and runs one model in one way.
fn one(args: &RunArgs, loaded: &Loaded<'_>, combination: &Combination) -> Result<(Record, Exit), Failure> {
    let path = loaded.path;
    let begin = Instant::now();
    let compiled = loaded.model.compile(&args.compile_options(combination)?)?;
    let mut compile = begin.elapsed();

    let inputs = args.inputs.tensors(&compiled, &combination.shapes)?;
    let begin = Instant::now();
    let executable = compiled.prepare(&inputs)?;
    compile += begin.elapsed();
    term::warn_of_fallbacks(&executable.fallbacks());

    let started = Timestamp::now();
    let Ran { outputs, times, compared } = execute(args, path, &compiled, executable.as_ref(), &inputs)?;
    if let Some(path) = &args.outputs {
        save_outputs(&outputs, path)?;
    }
    let exit = compare::exit(compared.as_ref());
    let record = Record::new(path, &compiled, executable.as_ref(), &inputs, &outputs)
        .with_times(loaded.time, compile, &times)
        .with_start(started, args.warmup())
        .with_comparison(compared);
    Ok((record, exit))
}

/// What runs gave.
struct Ran {
    /// The outputs of the last run.
    outputs: Outputs,
    /// The time of each.
    times: Vec<Duration>,
    /// The operations beside the reference, where that was asked for.
    compared: Option<Compared>,
}

/// Runs as often as asked.
///
/// Watching costs time, so the run that is watched is one of its own, unless there is only one.
fn execute(
    args: &RunArgs,
    path: &Path,
    compiled: &CompiledModel,
    executable: &dyn Executable,
    inputs: &[Tensor],
) -> Result<Ran, Failure> {
    let mut times = Vec::new();
    let mut timed = |options: &RunOptions| -> Result<Outputs, warpforge::Error> {
        let begin = Instant::now();
        let outputs = compiled.run_in_order(inputs, options)?;
        times.push(begin.elapsed());
        Ok(outputs)
    };
    let mut compared = None;
    let watched = args.observe.any() || args.save.is_some();
    if watched {
        args.observe.check_inputs(compiled, inputs)?;
        // What is fused has values at the borders of its clusters alone.
        let fused = args.save.is_some() && compiled.target().tier != Tier::Correctness;
        let nodes = args.save.is_some() && !fused;
        let mut watch = args.observe.watch(compiled, executable, inputs, nodes)?;
        let options = RunOptions { clusters: fused, ..watch.run_options() };
        let mut outcome = timed(&options);
        if let Err(error) = &outcome
            && !args.observe.sees_values()
            && error.is_not_offered()
        {
            // Inputs, outputs, gradients and losses can be saved from every device.
            term::remark(&format!("values inside the model are not saved: {error}"));
            watch = args.observe.watch(compiled, executable, inputs, false)?;
            outcome = timed(&watch.run_options());
        }
        // What was traced before a run stopped is wanted; where nothing can be traced there is nothing to write.
        if !outcome.as_ref().is_err_and(warpforge::Error::is_not_offered) {
            watch.write_trace()?;
        }
        let outputs = outcome?;
        compared = watch.compared();
        let model = warpforge::shown(path);
        let limits = args.limits(compiled)?;
        watch.write_profile(outputs.profile().clone(), &model, executable, limits.as_ref())?;
        if let Some(folder) = &args.save {
            let (nodes, clusters) = match fused {
                true => values_of::at_borders(executable, outputs.clusters()),
                false => (watch.node_values(), Vec::new()),
            };
            let run = save::Run {
                file: path,
                seed: args.inputs.seed(),
                compiled,
                executable,
                inputs,
                outputs: &outputs,
                weights: args.save_weights,
                nodes: &nodes,
                clusters,
                modules: values_of::Modules::of(compiled.model(), &nodes)?,
            };
            let saved = save::save(&run, folder);
            saved.map_err(|error| Failure::not_possible(anyhow!("{error}")))?;
        }
        if args.repeat() == 1 && args.warmup() == 0 {
            return Ok(Ran { outputs, times, compared });
        }
    }
    // A device's own clock, inputs where it reads them: what is repeated is the run, not the transfers.
    if args.repeat() > 1
        && let Some(mut bound) = executable.bind(inputs).map_err(warpforge::Error::from)?
    {
        // The first run of a device does more than the others.
        for _ in 0..args.warmup().max(1) {
            bound.run().map_err(warpforge::Error::from)?;
        }
        let mut times = Vec::new();
        for _ in 0..args.repeat() {
            times.push(bound.run().map_err(warpforge::Error::from)?);
        }
        let outputs = bound.outputs().map_err(warpforge::Error::from)?;
        return Ok(Ran { outputs: compiled.named(outputs), times, compared });
    }
    for _ in 0..args.warmup() {
        compiled.run_in_order(inputs, &RunOptions::default())?;
    }
    let mut outputs = timed(&RunOptions::default())?;
    for _ in 1..args.repeat() {
        outputs = timed(&RunOptions::default())?;
    }
    times.drain(..usize::from(watched));
    Ok(Ran { outputs, times, compared })
}

/// Writes the outputs: one to an npy file, or all to a safetensors file.
fn save_outputs(outputs: &Outputs, path: &Path) -> Result<(), Failure> {
    let mut tensors = outputs.iter();
    match (path.extension().is_some_and(|extension| extension == "npy"), tensors.next(), tensors.next()) {
        (true, Some((_, only)), None) => {
            let written = warpforge::io::npy::write(path, only);
            written.map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))
        }
        (true, ..) => {
            let count = outputs.len();
            let text = format!("an npy file holds one tensor, the model gives {count}; use .safetensors");
            Err(Failure::bad_input(anyhow!("{}: {text}", path.display())))
        }
        (false, ..) => {
            outputs.save(path).map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))
        }
    }
}
