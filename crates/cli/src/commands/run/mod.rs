//! `warpt run`: a model on given or random inputs.

mod compare;
mod inputs;
mod kernels;
mod observe;
mod record;
mod render;
mod roofline;
mod save;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use warpforge::{CompileOptions, CompiledModel, Device, Model, Outputs, Precision, RunOptions, Tensor, Tier};
use warpforge_golden::beside::Compared;
use warpforge_runtime::Executable;

use crate::exit::{Failure, Outcome};
use crate::term;

/// Arguments of `warpt run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A StableHLO file (text or bytecode) or a PyTorch archive (`.pt2`)
    model: PathBuf,
    #[command(flatten)]
    inputs: inputs::InputArgs,
    /// Write the outputs to this file: safetensors, or npy where there is one output and the name ends so
    #[arg(long, value_name = "OUT.safetensors")]
    outputs: Option<PathBuf>,
    /// Where to run: `cpu`, `cuda[:N]` or `hip[:N]`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// How to run: production, observable or correctness [default: the fastest that the device
    /// has, or correctness where single values are traced or saved]
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// What contractions multiply f32 operands as: model, tf32, bf16 or f16
    #[arg(long, value_name = "PRECISION", default_value_t)]
    precision: Precision,
    /// Refuse a model with operations that only the reference interpreter runs
    #[arg(long)]
    no_fallback: bool,
    /// The most threads to use [default: as many as the backend likes]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Run so many times, for the statistics
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroUsize,
    /// The function to run; by default `@main`, or the only public one
    #[arg(long, value_name = "FUNCTION")]
    entry: Option<String>,
    #[command(flatten)]
    observe: observe::ObserveArgs,
    /// Write the run as a folder that `warpt validate` takes: inputs, outputs, the values of the graph's nodes,
    /// gradients, losses, and a manifest
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// With --save, write the weights too
    #[arg(long, requires = "save")]
    save_weights: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// Whether single values are to be seen, which only the correctness tier shows.
    fn sees_values(&self) -> bool {
        self.observe.sees_values() || self.save.is_some()
    }
}

/// Loads, compiles, runs, and says what came of it.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let begin = Instant::now();
    let mut model = Model::load_entry(&args.model, args.entry.as_deref())?;
    args.inputs.bind_weights(&mut model)?;
    let load = begin.elapsed();

    let options = CompileOptions {
        device: args.device,
        tier: args.tier.or_else(|| args.sees_values().then_some(Tier::Correctness)),
        precision: args.precision,
        threads: args.threads,
        no_fallback: args.no_fallback,
    };
    let begin = Instant::now();
    let compiled = model.compile(&options)?;
    let mut compile = begin.elapsed();

    let inputs = args.inputs.tensors(&compiled)?;
    let begin = Instant::now();
    let executable = compiled.prepare(&inputs)?;
    compile += begin.elapsed();
    term::warn_of_fallbacks(&executable.fallbacks());

    let Ran { outputs, times, compared } = execute(args, &compiled, executable.as_ref(), &inputs)?;
    if let Some(path) = &args.outputs {
        save_outputs(&outputs, path)?;
    }
    let exit = compare::exit(compared.as_ref());
    let record = record::Record::new(args, &compiled, executable.as_ref(), &inputs, &outputs)
        .with_times(load, compile, &times)
        .with_comparison(compared);
    if args.json {
        term::print_json(&record)?;
    } else {
        term::print(&render::text(&record, term::colour()))?;
    }
    Ok(exit)
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
        let mut watch = args.observe.watch(compiled, executable, inputs, args.save.is_some())?;
        let mut outcome = timed(&watch.run_options());
        if let Err(error) = &outcome
            && !args.observe.sees_values()
            && error.is_not_offered()
        {
            // Inputs, outputs, gradients and losses can be saved from every device.
            eprintln!("values inside the model are not saved: {error}");
            watch = args.observe.watch(compiled, executable, inputs, false)?;
            outcome = timed(&watch.run_options());
        }
        watch.write_trace()?;
        let outputs = outcome?;
        compared = watch.compared();
        let model = args.model.display().to_string();
        watch.write_profile(outputs.profile().clone(), &model, executable)?;
        if let Some(folder) = &args.save {
            let nodes = watch.node_values();
            let run = save::Run {
                file: &args.model,
                seed: args.inputs.seed(),
                compiled,
                executable,
                inputs,
                outputs: &outputs,
                weights: args.save_weights,
                nodes: &nodes,
                modules: save::Modules::of(compiled.model(), &nodes)?,
            };
            let saved = save::save(&run, folder);
            saved.map_err(|error| Failure::not_possible(anyhow::anyhow!("{error}")))?;
        }
        if args.repeat.get() == 1 {
            return Ok(Ran { outputs, times, compared });
        }
    }
    // A device's own clock, inputs where it reads them: what is repeated is the run, not the transfers.
    if args.repeat.get() > 1
        && let Some(mut bound) = executable.bind(inputs).map_err(warpforge::Error::from)?
    {
        bound.run().map_err(warpforge::Error::from)?;
        let mut times = Vec::new();
        for _ in 0..args.repeat.get() {
            times.push(bound.run().map_err(warpforge::Error::from)?);
        }
        let outputs = bound.outputs().map_err(warpforge::Error::from)?;
        return Ok(Ran { outputs: compiled.named(outputs), times, compared });
    }
    let mut outputs = timed(&RunOptions::default())?;
    for _ in 1..args.repeat.get() {
        outputs = timed(&RunOptions::default())?;
    }
    times.drain(..usize::from(watched));
    Ok(Ran { outputs, times, compared })
}

/// Writes the outputs: one to an npy file, or all to a safetensors file.
fn save_outputs(outputs: &Outputs, path: &std::path::Path) -> Result<(), Failure> {
    let mut tensors = outputs.iter();
    match (path.extension().is_some_and(|extension| extension == "npy"), tensors.next(), tensors.next()) {
        (true, Some((_, only)), None) => {
            let written = warpforge::io::npy::write(path, only);
            written.map_err(|error| Failure::not_possible(anyhow::anyhow!("{error}")))
        }
        (true, ..) => {
            let count = outputs.len();
            let text = format!("an npy file holds one tensor, the model gives {count}; use .safetensors");
            Err(Failure::bad_input(anyhow::anyhow!("{}: {text}", path.display())))
        }
        (false, ..) => outputs.save(path).map_err(|error| Failure::not_possible(anyhow::anyhow!("{error}"))),
    }
}
