//! Pass 2: the whole training step as one program with its state in place, on data of our own pipeline in the recorded order.

mod adapter;
mod cadence;
mod evaluate;
mod folder;
mod inject;
mod memory;
mod observe;
mod own;
mod ranks;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use adapter::Codes;
pub use folder::StepNumbers;
pub use inject::Inject;
pub use own::Selection;
use serde_json::json;
use warpforge::{
    CompileOptions, CompiledModel, Model, ModelState, Outputs, RankGroup, Recipe, RunOptions, Tensor,
};
use warpforge_detection::coco::write_detections;
use warpforge_golden::Class;
use warpforge_golden::folder::{FileEntry, Manifest, RunEntry};
use warpforge_train::{Optimizer, Schedule, Shape};

use self::cadence::Cadence;
use self::folder::{Identity, PROGRESS, RunFolder, curves};
use self::observe::{Graph, first_nan, observe, step_name};
use self::own::OwnChoice;
use self::ranks::Ranks;
use crate::description::{OptimizerName, Plan, ScheduleShape};
use crate::task::Task;
use crate::{Agreement, Error, GoldenRun};

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where, and how.
    pub compile: CompileOptions,
    /// The folder to write, or to go on with.
    pub out: PathBuf,
    /// Steps between two checkpoints; without it, as often as takes 2 % of the time.
    pub save_every: Option<NonZeroU64>,
    /// Where the boxes of a detector's steps come from.
    pub selection: Selection,
    /// An error to put in on purpose.
    pub inject: Option<Inject>,
    /// The other ranks, where several share each batch.
    pub group: Option<RankGroup>,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The numbers of each step.
    pub steps: Vec<StepNumbers>,
    /// The step that it began with, where it went on with an earlier one.
    pub resumed: Option<u64>,
    /// What the trained model is judged by.
    pub metrics: BTreeMap<String, f64>,
    /// The same of the golden run.
    pub golden_metrics: BTreeMap<String, f64>,
    /// How long the steps took, those of an earlier part not counted.
    pub time: Duration,
    /// With adapters: the quantized base, against that of the golden run.
    pub base_codes: Option<Codes>,
    /// With adapters: the optimizer's moments of 8 bits, against those of the golden run.
    pub moment_codes: Option<Codes>,
    /// Of a detector: what it found, against what the golden run found.
    pub detections: Option<Agreement>,
}

/// The optimizer of a golden run.
fn recipe(golden: &GoldenRun, pieces: usize) -> Recipe {
    let Plan { optimizer, schedule, training, .. } = &golden.plan;
    let weight_decay = optimizer.weight_decay;
    let decoupled = optimizer.name == OptimizerName::Adamw;
    Recipe {
        optimizer: match optimizer.name {
            OptimizerName::Sgd => Optimizer::Sgd {
                momentum: optimizer.momentum,
                dampening: optimizer.dampening,
                nesterov: optimizer.nesterov,
                weight_decay,
            },
            OptimizerName::Adamw8bit => {
                Optimizer::AdamW8bit { betas: optimizer.betas, eps: optimizer.eps, weight_decay }
            }
            OptimizerName::Adam | OptimizerName::Adamw => {
                Optimizer::Adam { betas: optimizer.betas, eps: optimizer.eps, weight_decay, decoupled }
            }
        },
        rate: optimizer.lr,
        schedule: Schedule {
            warmup: golden.warmup,
            shape: match schedule.shape {
                ScheduleShape::Constant => Shape::Constant,
                ScheduleShape::Step => Shape::Step { every: schedule.every, gamma: schedule.gamma },
                ScheduleShape::Milestones => {
                    Shape::Milestones { at: golden.milestones.clone(), gamma: schedule.gamma }
                }
                ScheduleShape::Linear => Shape::Linear { total: golden.steps },
                ScheduleShape::Cosine => Shape::Cosine { total: golden.steps },
            },
        },
        clip: optimizer.clip,
        accumulate: NonZeroU64::new(training.accumulate * pieces as u64).unwrap_or(NonZeroU64::MIN),
        no_decay: optimizer.no_decay.clone(),
        keep_gradients: false,
    }
}

/// What a step gives.
struct Numbers {
    /// Those of the last micro-batch.
    outputs: Outputs,
    loss: f64,
    parts: BTreeMap<String, f64>,
}

/// A step compiled with its state, and the same with an error in it.
struct Steps {
    ranks: Ranks,
    right: CompiledModel,
    wrong: Option<(u64, CompiledModel)>,
    own: Option<OwnChoice>,
}

impl Steps {
    fn state(&self) -> Result<&ModelState, Error> {
        let missing = || Error::Stopped("the step was compiled without its state".to_owned());
        self.right.state().ok_or_else(missing)
    }

    /// Runs the micro-batches of a step: the outputs of the last, the mean loss of all ranks, and what it is the sum of.
    fn run(&self, golden: &GoldenRun, task: &dyn Task, step: u64) -> Result<Numbers, Error> {
        let compiled = match &self.wrong {
            Some((from, wrong)) if step >= *from => {
                wrong.state().map(|state| self.state().and_then(|own| copy(own, state))).transpose()?;
                wrong
            }
            _ => &self.right,
        };
        let (mut outputs, mut total) = (Outputs::default(), 0.0);
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        let runs = golden.plan.training.accumulate;
        let pieces = self.ranks.pieces();
        for micro in 0..runs {
            for piece in 0..pieces {
                let run = step * runs + micro;
                let mut batch = self.ranks.batch(golden, task, run, piece)?;
                if let Some(own) = &self.own {
                    own.replace(golden, task, self.state()?, run, &mut batch)?;
                }
                let run = compiled.run_with(batch, &RunOptions::default());
                outputs = run.map_err(|error| self.ranks.cause(error))?;
                total += number(&outputs, "loss")?;
                for part in task.parts() {
                    *parts.entry((*part).to_owned()).or_default() += number(&outputs, part)? / runs as f64;
                }
            }
        }
        if let Some((from, wrong)) = &self.wrong
            && step >= *from
            && let Some(state) = wrong.state()
        {
            copy(state, self.state()?)?;
        }
        let loss = self.ranks.mean(total / (runs * pieces as u64) as f64)?;
        Ok(Numbers { outputs, loss, parts })
    }
}

/// Gives one state the content of another.
fn copy(from: &ModelState, to: &ModelState) -> Result<(), Error> {
    Ok(to.replace(&from.tensors()?)?)
}

fn number(outputs: &Outputs, name: &str) -> Result<f64, Error> {
    let output = outputs.get(name).filter(|tensor| tensor.len() == 1);
    let missing = || Error::Stopped(format!("the step gives no single number `{name}`"));
    Ok(output.ok_or_else(missing)?.get(0).to_f64())
}

/// The parameters among the values of a state.
fn parameters(model: &Model, state: &ModelState) -> Result<BTreeMap<String, Tensor>, Error> {
    let known: BTreeMap<&str, &Tensor> = model.weights().collect();
    let names = state.names().filter(|name| known.contains_key(name));
    names.map(|name| Ok((name.to_owned(), state.read(name)?))).collect()
}

/// Runs the second pass of a golden run. `each` sees the numbers of every step. Of several ranks the first writes the folder and
/// gives what the run came to; the others give `None`.
///
/// # Errors
///
/// When the data are not those of the golden run, the model does not fit, or a loss is not finite; what is done so far stays in
/// the folder, and the same call goes on from its last checkpoint.
pub fn run(
    golden: &GoldenRun,
    options: &Options,
    each: &mut dyn FnMut(&StepNumbers, u64),
) -> Result<Option<Finished>, Error> {
    let task = golden.task()?;
    let model = Model::load(golden.folder.join("model.pt2"))?;
    let ranks = Ranks::new(golden, options.group.clone())?;
    let base_codes = adapter::quantized(golden, &model)?;
    let recipe = recipe(golden, ranks.pieces());
    let own = ranks.model(golden, &model)?;
    let step_model = ranks.train(&own, &recipe)?;
    let faulty = options.inject.as_ref().map(|inject| Ok::<_, Error>((inject.step, inject.apply(&model)?)));
    let faulty = faulty.transpose()?;
    let target = &options.compile;
    let identity = Identity {
        golden: golden.identity.clone(),
        device: target.device.to_string(),
        tier: target.tier.map_or_else(|| "default".to_owned(), |tier| tier.to_string()),
        precision: target.precision.to_string(),
        inject: options.inject.as_ref().map(|inject| format!("{inject:?}")),
        selection: (options.selection == Selection::Own).then(|| "own".to_owned()),
        ranks: ranks.size(),
    };
    let opened = ranks.is_first().then(|| RunFolder::open(&options.out, &identity)).transpose()?;
    let (mut folder, initial, mut numbers) = match opened {
        Some((folder, initial, numbers)) => (Some(folder), initial, numbers),
        None => (None, None, Vec::new()),
    };
    let resumed = initial.is_some().then_some(numbers.len() as u64);
    let start = || initial.clone().unwrap_or_default();
    let right = step_model.compile_with_state(target, start())?;
    let choice = match (options.selection, right.state()) {
        (Selection::Own, Some(state)) => Some(OwnChoice::new(golden, target, &parameters(&model, state)?)?),
        _ => None,
    };
    let steps = Steps {
        right,
        own: choice,
        wrong: match &faulty {
            Some((from, _)) => {
                let inject = options.inject.as_ref().map(|inject| inject.apply(&own)).transpose()?;
                let faulty = ranks.train(inject.as_ref().unwrap_or(&own), &recipe)?;
                Some((*from, faulty.compile_with_state(target, start())?))
            }
            None => None,
        },
        ranks,
    };
    let ranks = &steps.ranks;
    let first = ranks.batch(golden, task.as_ref(), 0, 0)?;
    let executable = steps.right.prepare(&steps.right.in_order(&first)?)?;
    memory::check(executable.as_ref(), golden.plan.training.batch_size)?;
    let mut graph = Graph::default();
    let first = ranks.start(golden, numbers.len() as u64, resumed.is_some(), &[steps.state()?])?;
    let begin = Instant::now();
    if let Some(folder) = &mut folder {
        for &step in golden.observed.iter().filter(|step| **step < first && steps.own.is_none()) {
            folder.adopt(&step_name(step))?;
        }
    }
    let mut cadence = Cadence::new(options.save_every);
    for step in first..golden.steps {
        let started = Instant::now();
        // What is looked at is of the recorded choice.
        let looks = golden.observed.contains(&step) && steps.own.is_none();
        if let Some(folder) = folder.as_mut().filter(|_| looks) {
            let seen = match &faulty {
                Some((from, model)) if step >= *from => model,
                _ => &model,
            };
            let weights = parameters(&model, steps.state()?)?;
            let batch = golden.batch(task.as_ref(), step * golden.plan.training.accumulate)?;
            graph = observe(seen, target, golden.plan.record.activations, &weights, &batch, step, folder)?;
        }
        let Numbers { outputs, loss, parts } = steps.run(golden, task.as_ref(), step)?;
        let entry = StepNumbers {
            step,
            loss,
            lr: number(&outputs, "lr")?,
            grad_norm: recipe.clip.is_some().then(|| number(&outputs, "grad_norm")).transpose()?,
            seconds: started.elapsed().as_secs_f64(),
            parts,
        };
        if !loss.is_finite() {
            return Err(match &folder {
                Some(folder) if ranks.size() == 1 => {
                    not_finite(golden, task.as_ref(), &model, &steps, folder, step, loss)
                }
                _ => Error::Stopped(format!(
                    "the loss of step {step} is {loss}; one rank alone, with --ranks 1, names the operation that made it"
                )),
            });
        }
        let Some(folder) = &mut folder else { continue };
        folder.step(&entry)?;
        each(&entry, golden.steps);
        numbers.push(entry);
        if step + 1 < golden.steps && cadence.is_due(step + 1) {
            cadence.save(|| Ok::<_, Error>(steps.state()?.save(folder.state())?))?;
        }
    }
    let time = begin.elapsed();
    let Some(folder) = folder else {
        ranks.finish()?;
        return Ok(None);
    };
    let weights = parameters(&model, steps.state()?)?;
    let evaluation = evaluate::evaluate(golden, task.as_ref(), target, &weights)?;
    let finished = Finished {
        steps: numbers,
        resumed,
        metrics: evaluation.metrics.clone(),
        golden_metrics: evaluate::golden_metrics(golden)?,
        time,
        base_codes,
        moment_codes: adapter::moments(golden, steps.state()?)?,
        detections: evaluation.agreement,
    };
    write(golden, &steps, folder, &weights, &evaluation, graph, &finished)?;
    ranks.finish()?;
    Ok(Some(finished))
}

/// Says which operation made a loss that is not finite: the steps since the last checkpoint are made again, and the last is looked
/// into.
fn not_finite(
    golden: &GoldenRun,
    task: &dyn Task,
    model: &Model,
    steps: &Steps,
    folder: &RunFolder,
    step: u64,
    loss: f64,
) -> Error {
    let looked = || -> Result<String, Error> {
        let state = steps.state()?;
        let saved = folder.state();
        let first = if saved.is_file() {
            state.load(&saved)?;
            state.read("optimizer.step")?.get(0).to_i128() as u64
        } else {
            let own: BTreeMap<&str, &Tensor> = model.weights().collect();
            for name in state.names().map(str::to_owned).collect::<Vec<_>>() {
                let zeros = || -> Result<Tensor, Error> {
                    let tensor = state.read(&name)?;
                    Ok(Tensor::zeros(tensor.element_type(), tensor.shape().clone())?)
                };
                let content = own.get(name.as_str()).map_or_else(zeros, |tensor| Ok((*tensor).clone()))?;
                state.write(&name, &content)?;
            }
            0
        };
        for step in first..step {
            steps.run(golden, task, step)?;
        }
        let batch = golden.batch(task, step * golden.plan.training.accumulate)?;
        first_nan(model, &parameters(model, state)?, &batch)
    };
    let origin = looked().unwrap_or_else(|error| format!("where it comes from cannot be told: {error}"));
    Error::Stopped(format!("the loss of step {step} is {loss}: {origin}"))
}

fn write(
    golden: &GoldenRun,
    steps: &Steps,
    mut folder: RunFolder,
    weights: &BTreeMap<String, Tensor>,
    evaluation: &crate::task::Evaluation,
    graph: Graph,
    finished: &Finished,
) -> Result<(), Error> {
    let checkpoint = folder.path.join("checkpoint.safetensors");
    let named = weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
    warpforge_tensor::io::safetensors::write(&checkpoint, named)?;
    folder.writer.add("checkpoint.safetensors", true)?;
    if let Some(adapter) = &golden.plan.adapter {
        adapter::write(adapter, weights, &mut folder)?;
    }
    folder.writer.numbers(Class::Losses, &curves(&finished.steps))?;
    let json = |text: Result<String, serde_json::Error>| {
        text.map(|text| text + "\n").map_err(|error| Error::io(&folder.path)(error.into()))
    };
    let metrics = json(serde_json::to_string_pretty(&evaluation.metrics))?;
    let predictions = json(serde_json::to_string(&evaluation.predictions))?;
    folder.writer.text("metrics.json", &metrics)?;
    if evaluation.agreement.is_some() {
        folder.writer.text("detections.json", &(write_detections(&evaluation.detections)? + "\n"))?;
        folder.writer.add("detections.json", false)?;
    }
    if !evaluation.predictions.is_empty() {
        folder.writer.text("predictions.json", &predictions)?;
        folder.writer.add("predictions.json", false)?;
    }
    folder.writer.add(PROGRESS, false)?;
    let (compiled, ranks) = (&steps.right, &steps.ranks);
    let target = compiled.target();
    let mut seconds: Vec<f64> = finished.steps.iter().map(|step| step.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let versions = [("warpt", env!("CARGO_PKG_VERSION")), ("backend", compiled.backend())];
    let Plan { benchmark, preset, model, data, training, .. } = &golden.plan;
    folder.finish(Manifest {
        versions: versions.map(|(name, version)| (name.to_owned(), version.to_owned())).into(),
        seed: Some(i64::from(training.seed)),
        model: Some(benchmark.clone()),
        archive: Some(FileEntry { file: "model.pt2".to_owned(), sha256: None }),
        nodes: graph.nodes,
        clusters: graph.clusters,
        skipped: graph.skipped,
        run: Some(RunEntry {
            device: target.device.to_string(),
            tier: target.tier.to_string(),
            precision: target.precision.to_string(),
        }),
        benchmark: Some(json!({
            "schema_version": 1,
            "name": benchmark,
            "preset": preset,
            "golden": golden.identity,
            "steps": golden.steps,
            "ranks": {"count": ranks.size(), "engine": ranks.engine()},
            "codes": {"base": finished.base_codes, "moments": finished.moment_codes},
            "detections": finished.detections,
            "selection": steps.own.as_ref().map(|_| "own"),
            "licences": {"model": model.licence, "data": data.licence},
            "timings": {
                "step_median_s": median,
                "examples_per_s": training.batch_size as f64 / median,
            },
        })),
        ..Manifest::default()
    })
}
