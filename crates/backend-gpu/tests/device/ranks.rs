//! Gradients averaged between ranks by NCCL: a group of one rank on any machine, of two where there are two GPUs. Each rank is a thread.

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use warpforge_backend_gpu::Gpus;
use warpforge_diag::Source;
use warpforge_interp::{CustomCall, Value};
use warpforge_ir::OpRef;
use warpforge_runtime::{
    Backend, CustomCalls, Device, DeviceGroup, DeviceReduction, Executable, Precision, Program, RankPlace,
    RunOptions, Target, Tier, Weights,
};
use warpforge_snakeburger::text;
use warpforge_tensor::{Scalar, Tensor};

use crate::NEEDS_NCCL;
use crate::case::inputs;

/// Two buckets with kernels before, between and behind; the first has two gradients.
const STEP: &str = "func.func @main(%a: tensor<37x65xTYPE>, %b: tensor<1000xTYPE>, %c: tensor<300x700xTYPE>) -> (tensor<37x65xTYPE>, tensor<1000xTYPE>, tensor<300x700xTYPE>) {
    %x = stablehlo.tanh %a : tensor<37x65xTYPE>
    %y = stablehlo.multiply %b, %b : tensor<1000xTYPE>
    %0 = stablehlo.custom_call @start(%x, %y) {backend_config = \"0/2\"} : (tensor<37x65xTYPE>, tensor<1000xTYPE>) -> tensor<i64>
    %d = stablehlo.add %c, %c : tensor<300x700xTYPE>
    %z = stablehlo.tanh %d : tensor<300x700xTYPE>
    %1 = stablehlo.custom_call @start(%z) {backend_config = \"1/2\"} : (tensor<300x700xTYPE>) -> tensor<i64>
    %2:2 = stablehlo.custom_call @done(%0, %1) : (tensor<i64>, tensor<i64>) -> (tensor<37x65xTYPE>, tensor<1000xTYPE>)
    %3 = stablehlo.custom_call @done(%1, %0) : (tensor<i64>, tensor<i64>) -> tensor<300x700xTYPE>
    %4 = stablehlo.add %2#0, %2#0 : tensor<37x65xTYPE>
    func.return %4, %2#1, %3 : tensor<37x65xTYPE>, tensor<1000xTYPE>, tensor<300x700xTYPE>\n}";

/// A bucket that is sent where the argument says so.
const CONDITIONAL: &str = "func.func @main(%r: tensor<i1>, %a: tensor<37x65xf32>) -> tensor<37x65xf32> {
    %x = stablehlo.tanh %a : tensor<37x65xf32>
    %0 = stablehlo.custom_call @start(%r, %x) {backend_config = \"0/1\"} : (tensor<i1>, tensor<37x65xf32>) -> tensor<i64>
    %1 = stablehlo.custom_call @done(%0) : (tensor<i64>) -> tensor<37x65xf32>
    func.return %1 : tensor<37x65xf32>\n}";

pub(crate) fn trials(gpus: &Arc<Gpus>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for size in 1..=gpus.devices().len().clamp(1, 2) {
        for tier in Tier::ALL {
            for element in ["f32", "bf16", "f64"] {
                let gpus = Arc::clone(gpus);
                let test = move || {
                    each_rank(&gpus, size, |rank| {
                        rank.averages(&STEP.replace("TYPE", element), tier, element)
                    })
                };
                trials.push(Trial::test(format!("ranks_{size}_{element}/{tier}"), test));
            }
            let gpus = Arc::clone(gpus);
            let test = move || each_rank(&gpus, size, |rank| rank.averages(CONDITIONAL, tier, "f32"));
            trials.push(Trial::test(format!("ranks_{size}_conditional/{tier}"), test));
        }
    }
    let own = Arc::clone(gpus);
    trials.push(Trial::test("ranks_aborted", move || each_rank(&own, 1, Rank::is_aborted)));
    let own = Arc::clone(gpus);
    trials.push(Trial::test("ranks_on_one_gpu", move || on_one_gpu(&own)));
    trials.into_iter().map(|trial| trial.with_kind(NEEDS_NCCL)).collect()
}

/// A rank with its GPU.
struct Rank {
    gpus: Arc<Gpus>,
    rank: usize,
    size: usize,
    group: Arc<dyn DeviceGroup>,
}

/// Connects so many ranks and runs each.
fn each_rank(
    gpus: &Arc<Gpus>,
    size: usize,
    run: impl Fn(&Rank) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    let id = gpus.device_collectives(Device::Cuda(0))?.new_id()?;
    let (all, groups) = (Barrier::new(size), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                let (id, run, all, groups) = (&id, &run, &all, &groups);
                scope.spawn(move || -> Result<(), Failed> {
                    let device = gpus.device_collectives(Device::Cuda(rank as u32))?;
                    let group = device.connect(id, RankPlace { rank, size }, &|| None)?;
                    let of_all = || groups.lock().unwrap_or_else(PoisonError::into_inner);
                    of_all().push(Arc::clone(&group));
                    let outcome =
                        run(&Rank { gpus: Arc::clone(gpus), rank, size, group: Arc::clone(&group) });
                    if outcome.is_err() {
                        of_all().iter().for_each(|group| group.abort("another rank failed"));
                    }
                    // Ranks leave together.
                    all.wait();
                    of_all().clear();
                    group.finish();
                    outcome
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Failed::from("a rank panics"))?)
    })
}

impl Rank {
    fn program(&self, text: &str) -> Result<Program, Failed> {
        let module = text::parse(&Source::new("ranks", text), &text::Options::default());
        let module = Arc::new(module.map_err(|error| format!("{error:?}"))?);
        let refuses = |_: OpRef<'_>, _: &[Value]| Err("made by the host".to_owned());
        let refuses: Arc<dyn CustomCall> = Arc::new(refuses);
        let calls: HashMap<String, Arc<dyn CustomCall>> =
            ["start", "done"].map(|target| (target.to_owned(), Arc::clone(&refuses))).into();
        let group = Arc::clone(&self.group);
        let reduction = DeviceReduction { start: "start", done: "done", group };
        let program = Program::new(module, "main", Weights::default())?;
        Ok(program.with_calls(CustomCalls::new(calls).with_reduction(reduction)))
    }

    fn compile(&self, text: &str, tier: Tier) -> Result<Box<dyn Executable>, Failed> {
        let target = Target::new(Device::Cuda(self.rank as u32), tier, Precision::Model);
        let executable = self.gpus.compile(&self.program(text)?, &target)?;
        match executable.fallbacks().first() {
            None => Ok(executable),
            Some(fallback) => Err(fallback.to_string().into()),
        }
    }

    /// Runs with other inputs each time, those of a rank larger than those of the one before, and compares the averages: step by step,
    /// while they are captured, and replayed.
    fn averages(&self, text: &str, tier: Tier, element: &str) -> Result<(), Failed> {
        let executable = self.compile(text, tier)?;
        let tolerance = if element == "bf16" { 1e-2 } else { 1e-5 };
        for (run, profile) in [true, false, false, false, true, false].into_iter().enumerate() {
            // Not complete in one run of three.
            let complete = run % 3 != 1;
            let of = |rank: usize| scaled(executable.program(), rank, run, complete);
            let outcome =
                executable.run(&of(self.rank)?, &RunOptions { profile, ..RunOptions::default() })?;
            let reduces =
                outcome.profile.events.iter().any(|event| event.name.contains("all_reduce of bucket"));
            if profile && !reduces {
                return Err("no step is an all-reduce".into());
            }
            let mut means: Vec<Vec<f64>> = Vec::new();
            let is_sent = complete || !text.contains("%r:");
            let ranks = if is_sent { 0..self.size } else { self.rank..self.rank + 1 };
            let share = 1.0 / ranks.len() as f64;
            for rank in ranks {
                let gradients = gradients(text, &of(rank)?);
                means.resize(gradients.len(), Vec::new());
                for (mean, own) in means.iter_mut().zip(gradients) {
                    mean.resize(own.len(), 0.0);
                    mean.iter_mut().zip(own).for_each(|(mean, own)| *mean += own * share);
                }
            }
            for (at, (found, expected)) in outcome.outputs.iter().zip(&means).enumerate() {
                for (place, (one, mean)) in found.iter().zip(expected).enumerate() {
                    let one = one.to_f64();
                    if (one - mean).abs() > tolerance * mean.abs().max(1.0) {
                        let size = self.size;
                        return Err(format!(
                            "run {run} of {size} ranks, result {at}, element {place}: {one}, {mean} expected"
                        )
                        .into());
                    }
                }
            }
        }
        Ok(())
    }

    /// After an abort, runs fail with its reason, in time, also where their work was captured.
    fn is_aborted(&self) -> Result<(), Failed> {
        let executable = self.compile(&STEP.replace("TYPE", "f32"), Tier::Production)?;
        let inputs = scaled(executable.program(), 0, 0, true)?;
        for _ in 0..3 {
            executable.run(&inputs, &RunOptions::default())?;
        }
        let begin = Instant::now();
        self.group.abort("rank 1 is gone: its process has ended");
        for _ in 0..2 {
            match executable.run(&inputs, &RunOptions::default()) {
                Err(error) if error.to_string().contains("rank 1 is gone") => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Err("it runs without the other rank".into()),
            }
        }
        drop(executable);
        if begin.elapsed() < Duration::from_secs(10) {
            Ok(())
        } else {
            Err("the abort takes too long".into())
        }
    }
}

/// What a rank gives to a run; the condition first, where the program has one.
fn scaled(program: &Program, rank: usize, run: usize, complete: bool) -> Result<Vec<Tensor>, Failed> {
    let scale = (rank + 1) as f64 / 2.0 + run as f64 / 8.0;
    let scaled = |tensor: Tensor| {
        let scalars = tensor.iter().map(|value| match value {
            Scalar::Float(value) => Scalar::Float(value * scale),
            Scalar::Bool(_) => Scalar::Bool(complete),
            other => other,
        });
        Tensor::from_scalars(tensor.element_type(), tensor.shape().clone(), scalars.collect::<Vec<_>>())
    };
    Ok(inputs(program).into_iter().map(scaled).collect::<Result<_, _>>()?)
}

/// The results of a rank by itself.
fn gradients(text: &str, inputs: &[Tensor]) -> Vec<Vec<f64>> {
    let of = |at: usize, function: fn(f64) -> f64| -> Vec<f64> {
        inputs[at].iter().map(|value| function(value.to_f64())).collect()
    };
    match text.contains("%r:") {
        true => vec![of(1, f64::tanh)],
        false => vec![of(0, |x| 2.0 * x.tanh()), of(1, |x| x * x), of(2, |x| (2.0 * x).tanh())],
    }
}

/// Two ranks say that they are on the same GPU, by which those who connect ranks refuse them.
fn on_one_gpu(gpus: &Gpus) -> Result<(), Failed> {
    let device = || Ok::<_, Failed>(gpus.device_collectives(Device::Cuda(0))?.device());
    match (device()?, device()?) {
        (Some(one), Some(other)) if one == other => Ok(()),
        found => Err(format!("{found:?}").into()),
    }
}
