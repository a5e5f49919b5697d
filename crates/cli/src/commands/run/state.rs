//! `--state`: a model whose state stays from step to step and, in a file, from run to run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use warpforge::io::safetensors;
use warpforge::{
    CompileOptions, CompiledModel, Inputs, Model, ModelState, Outputs, Recipe, RunOptions, Scalar,
};

use super::RunArgs;
use super::observe::Watch;
use super::record::Record;
use super::sweep::Combination;
use crate::exit::{Exit, Failure};
use crate::{term, values};

/// The options about state.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// Keep the model's state (arguments whose new values are results) from step to step, start from this file if it is there, and
    /// write it at the end
    #[arg(long, value_name = "FILE.safetensors", conflicts_with_all = ["repeat", "warmup", "save", "compare", "break_on"])]
    state: Option<PathBuf>,
    /// With --state, run so many times
    #[arg(long, value_name = "N", default_value = "1", requires = "state", value_parser = values::count)]
    steps: NonZeroUsize,
    /// With --state, write the file after every N steps too
    #[arg(long, value_name = "N", requires = "state", value_parser = values::count)]
    save_every: Option<NonZeroUsize>,
    /// With --state, the result that is the new value of an argument, where the model does not say so: `cache=out1`, or several in
    /// order, `w0..w7=out1..out8`; may be given several times
    #[arg(long, value_name = "ARGUMENT=RESULT", requires = "state")]
    alias: Vec<Alias>,
    /// With --state, append an optimizer to a model that gives a loss and gradients: sgd, adam or adamw, and settings, such as
    /// `adamw,lr=3e-4,clip=1`
    #[arg(long, value_name = "OPTIMIZER,lr=RATE,…", requires = "state")]
    train: Option<Recipe>,
}

/// An argument and the result that is its new value.
#[derive(Debug, Clone)]
struct Alias {
    argument: String,
    result: String,
}

impl FromStr for Alias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (argument, result) = text.split_once('=').unwrap_or_default();
        if argument.is_empty() || result.is_empty() {
            return Err("expected ARGUMENT=RESULT, such as cache=out1".to_owned());
        }
        Ok(Self { argument: argument.to_owned(), result: result.to_owned() })
    }
}

impl Alias {
    /// Declares the aliases to the model.
    fn declare(&self, model: &mut Model) -> Result<(), Failure> {
        let Self { argument, result } = self;
        let refused = |reason: String| Failure::bad_input(anyhow!("--alias {argument}={result}: {reason}"));
        let signature = model.signature();
        let arguments: Vec<&str> = signature.arguments.iter().map(|one| one.name.as_str()).collect();
        let results: Vec<&str> = signature.results.iter().map(|one| one.name.as_str()).collect();
        let from = range("argument", argument, &arguments).map_err(refused)?;
        let to = range("result", result, &results).map_err(refused)?;
        if from.len() != to.len() {
            return Err(refused(format!("{} arguments and {} results", from.len(), to.len())));
        }
        for (argument, result) in from.iter().zip(&to) {
            model.alias(argument, result).map_err(|error| refused(error.to_string()))?;
        }
        Ok(())
    }
}

/// The names from one to another, in the order of a signature; a name by itself is one.
fn range(what: &str, text: &str, names: &[&str]) -> Result<Vec<String>, String> {
    let position = |name: &str| names.iter().position(|known| *known == name);
    let (first, last) = match (position(text), text.split_once("..")) {
        (None, Some(ends)) => ends,
        _ => (text, text),
    };
    let at = |name: &str| position(name).ok_or_else(|| format!("there is no {what} `{name}`"));
    match (at(first)?, at(last)?) {
        (first, last) if first <= last => {
            Ok(names[first..=last].iter().map(|&name| name.to_owned()).collect())
        }
        _ => Err(format!("{what} `{last}` is before `{first}`")),
    }
}

impl StateArgs {
    /// The file of the state.
    pub(super) fn file(&self) -> Option<&Path> {
        self.state.as_deref()
    }
}

/// What the record says about the state.
#[derive(Debug, Serialize)]
pub(super) struct StateRecord {
    pub(super) file: String,
    /// Whether the file was there at the start.
    pub(super) loaded: bool,
    /// Steps that the file's state had made before.
    pub(super) steps_before: u64,
    pub(super) values: usize,
    pub(super) bytes: u64,
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    /// Its number, from 1, those of earlier runs included.
    pub(super) step: u64,
    pub(super) ms: f64,
    /// The outputs that are single numbers.
    pub(super) outputs: BTreeMap<String, f64>,
}

/// Loads, compiles and runs a model with its state.
pub(super) fn one(
    args: &RunArgs,
    path: &Path,
    combination: &Combination,
    file: &Path,
) -> Result<(Record, Exit), Failure> {
    let begin = Instant::now();
    let mut model = Model::load_entry(path, args.entry.as_deref())?;
    args.inputs.bind_weights(&mut model)?;
    if let Some(recipe) = &args.state.train {
        model = model.train(recipe)?;
    }
    for alias in &args.state.alias {
        alias.declare(&mut model)?;
    }
    if model.signature().state().next().is_none() {
        return Err(Failure::bad_input(anyhow!("{}", no_state(&model))));
    }
    let exists = std::fs::exists(file);
    let loaded = exists.map_err(|error| Failure::bad_input(anyhow!("{}: {error}", file.display())))?;
    let steps_before = if loaded { steps_made(file)? } else { 0 };
    let initial = match loaded {
        true => safetensors::read(file).map_err(|error| Failure::unreadable(file, &error))?.into(),
        false => args.inputs.initial_state(&model)?,
    };
    let load = begin.elapsed();

    let begin = Instant::now();
    let compiled = compile(&model, &args.compile_options(combination)?, initial, loaded.then_some(file))?;
    let mut compile = begin.elapsed();
    let Some(state) = compiled.state() else {
        return Err(Failure::not_possible(anyhow!("the model was compiled without its state")));
    };

    let mut inputs = args.inputs.tensors(&compiled, &combination.shapes)?;
    let begin = Instant::now();
    let executable = compiled.prepare(&inputs)?;
    compile += begin.elapsed();
    term::warn_of_fallbacks(&executable.fallbacks());
    let started = Timestamp::now();
    let (mut times, mut steps) = (Vec::new(), Vec::new());
    let mut outputs = Outputs::default();
    let last = args.state.steps.get() - 1;
    for step in 0..=last {
        if step > 0 {
            inputs = args.inputs.tensors_of_step(&compiled, step, &combination.shapes)?;
        }
        let watch = match step == last && args.observe.any() {
            true => Some(args.observe.watch(&compiled, executable.as_ref(), &inputs, false)?),
            false => None,
        };
        let options = watch.as_ref().map_or_else(RunOptions::default, Watch::run_options);
        let begin = Instant::now();
        outputs = compiled.run_in_order(&inputs, &options)?;
        times.push(begin.elapsed());
        let number = steps_before.saturating_add(step as u64 + 1);
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        steps.push(Step { step: number, ms, outputs: numbers(&outputs) });
        if let Some(watch) = watch {
            watch.write_trace()?;
            let limits = args.limits(&compiled)?;
            let model = warpforge::shown(path);
            watch.write_profile(outputs.profile().clone(), &model, executable.as_ref(), limits.as_ref())?;
        }
        if args.state.save_every.is_some_and(|every| (step + 1).is_multiple_of(every.get())) && step < last {
            save(state, file, number)?;
        }
    }
    save(state, file, steps_before.saturating_add(last as u64 + 1))?;
    if let Some(path) = &args.outputs {
        super::save_outputs(&outputs, path)?;
    }
    let values = state.names().len();
    let bytes = state.tensors()?.values().map(|tensor| tensor.bytes().len() as u64).sum();
    let record = Record::new(path, &compiled, executable.as_ref(), &inputs, &outputs)
        .with_times(load, compile, &times)
        .with_start(started, 0)
        .with_state(StateRecord {
            file: file.display().to_string(),
            loaded,
            steps_before,
            values,
            bytes,
            steps,
        });
    Ok((record, Exit::Pass))
}

fn compile(
    model: &Model,
    options: &CompileOptions,
    initial: Inputs,
    file: Option<&Path>,
) -> Result<CompiledModel, Failure> {
    let compiled = model.compile_with_state(options, initial);
    compiled.map_err(|error| match (&error, file) {
        (warpforge::Error::State(_), Some(file)) => {
            Failure::bad_input(anyhow!("{}: {error}", file.display()))
        }
        _ => error.into(),
    })
}

/// The name of the file's note that says how many steps were made.
const STEPS: &str = "steps";

/// Writes the state after so many steps.
fn save(state: &ModelState, file: &Path, steps: u64) -> Result<(), Failure> {
    let notes = BTreeMap::from([(STEPS.to_owned(), steps.to_string())]);
    let saved = state.save_with_notes(file, &notes);
    saved.map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))
}

/// How many steps the state of a file has made; a file of another program does not say, and counts from 1.
fn steps_made(file: &Path) -> Result<u64, Failure> {
    let notes = safetensors::read_notes(file).map_err(|error| Failure::unreadable(file, &error))?;
    let Some(text) = notes.get(STEPS) else { return Ok(0) };
    let wrong =
        || Failure::bad_input(anyhow!("{}: the note `{STEPS}` is no number: `{text}`", file.display()));
    text.parse().map_err(|_| wrong())
}

fn numbers(outputs: &Outputs) -> BTreeMap<String, f64> {
    let single = outputs.iter().filter(|(_, tensor)| tensor.len() == 1);
    single.map(|(name, tensor)| (name.to_owned(), Scalar::to_f64(tensor.get(0)))).collect()
}

/// What to do about a model that declares no state.
fn no_state(model: &Model) -> String {
    let signature = model.signature();
    let mut text = "--state: no argument of the model has a result as its new value; name them with \
                    --alias ARGUMENT=RESULT"
        .to_owned();
    for argument in &signature.arguments {
        let fitting: Vec<&str> = signature
            .results
            .iter()
            .filter(|result| result.ty == argument.ty)
            .map(|result| result.name.as_str())
            .collect();
        if !fitting.is_empty() {
            let donated = if argument.donated { ", donated" } else { "" };
            text +=
                &format!("\n  {}: {}{donated}; fitting: {}", argument.name, argument.ty, fitting.join(", "));
        }
    }
    text
}
