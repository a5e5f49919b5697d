//! Predictions beside measurements: whole models and their kernels.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use serde::Serialize;
use warpforge::{CompileOptions, Device, Model, RunOptions, Tensor, seeded};
use warpforge_measure::stats::{self, Summary};
use warpforge_runtime::Executable;

use crate::error::{Error, Result};
use crate::model::{Bound, CostModel};
use crate::pace::Pace;
use crate::profile::Profile;

/// How long a model is timed.
const BUDGET: Duration = Duration::from_secs(2);
const LEAST: usize = 5;
const MOST: usize = 200;

/// Runs with an event for each kernel.
const PROFILED: usize = 5;

/// A model beside its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCheck {
    /// The file.
    pub model: String,
    /// The device.
    pub device: String,
    /// What contractions multiply in.
    pub precision: String,
    /// The prediction.
    pub predicted_ms: f64,
    /// The median time.
    pub measured_ms: f64,
    /// Its 95 % interval.
    pub ci: [f64; 2],
    /// Prediction over measurement, less one.
    pub error: f64,
    /// The part of the pace of the calibration that the processor was at; null where it is not known, as on GPUs.
    pub pace: Option<f64>,
    /// Whether the processor was as fast as when it was calibrated. Where it was not, the error is not the prediction's.
    pub steady: bool,
    /// The kernels, where the device reports one for each cluster.
    pub kernels: Vec<KernelCheck>,
}

/// A kernel beside its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelCheck {
    /// The kernel's name in profiles.
    pub name: String,
    /// The prediction.
    pub predicted_ms: f64,
    /// The median time.
    pub measured_ms: f64,
    /// Prediction over measurement, less one.
    pub error: f64,
    /// What bounds it.
    pub bound: Bound,
    /// Octaves to the nearest size of the sweep; null where no such kernel was measured.
    pub distance: Option<f64>,
}

/// Compares predictions by one profile with runs on the machine that it is of.
pub struct Checker {
    cost: CostModel,
    pace: Option<Pace>,
}

impl Checker {
    /// The checker of a device, which waits so long in all for a processor that others slow down. `origin` is what messages call the
    /// profile.
    ///
    /// # Errors
    ///
    /// When the profile has nothing of the device, or the processor's pace cannot be measured.
    pub fn new(profile: &Profile, device: Device, patience: Duration, origin: &str) -> Result<Self> {
        let cost = CostModel::new(profile, &device.to_string(), origin)?;
        let pace = match (device, profile.self_check.pace_gflops) {
            (Device::Cpu, Some(gflops)) => Some(Pace::of(gflops, cost.threads(), patience)?),
            _ => None,
        };
        Ok(Self { cost, pace })
    }

    /// Predicts a model, runs it on random inputs with the host threads of the profile, and compares.
    ///
    /// # Errors
    ///
    /// When the model cannot be planned or run, or its shapes are not all known.
    pub fn check(&mut self, name: &str, model: &Model, options: &CompileOptions) -> Result<ModelCheck> {
        let options = &CompileOptions { threads: NonZeroUsize::new(self.cost.threads()), ..options.clone() };
        let plan = model.plan(options)?;
        let cost = self.cost.clone().in_precision(options.precision);
        let (predicted_ms, predictions) = cost.model(&plan);
        let compiled = model.compile(options)?;
        let slots = compiled.inputs();
        let inputs = slots.iter().enumerate().map(|(at, slot)| seeded(slot.ty, 1, at as u64));
        let inputs = inputs.collect::<warpforge::Result<Vec<Tensor>>>()?;
        let executable = compiled.prepare(&inputs)?;
        let measure = || -> Result<_> {
            Ok((timed(executable.as_ref(), &inputs)?, profiled(executable.as_ref(), &inputs)?))
        };
        let (measured, pace, steady) = match &mut self.pace {
            Some(pace) => {
                let paced = pace.steadily(|| false, measure)?;
                let steady = paced.is_steady();
                (paced.value, Some(paced.pace.part), steady)
            }
            None => (measure()?, None, true),
        };
        let (summary, events) = measured;
        let kernels = if events.len() == predictions.len() {
            events
                .into_iter()
                .zip(&predictions)
                .map(|((name, measured_ms), prediction)| KernelCheck {
                    name,
                    predicted_ms: prediction.ms,
                    measured_ms,
                    error: prediction.ms / measured_ms.max(1e-9) - 1.0,
                    bound: prediction.bound.clone(),
                    distance: prediction.distance,
                })
                .collect()
        } else {
            Vec::new()
        };
        let measured_ms = summary.value * 1e3;
        Ok(ModelCheck {
            model: name.to_owned(),
            device: options.device.to_string(),
            precision: options.precision.to_string(),
            predicted_ms,
            measured_ms,
            ci: [summary.spread.ci_low * 1e3, summary.spread.ci_high * 1e3],
            error: predicted_ms / measured_ms - 1.0,
            pace,
            steady,
            kernels,
        })
    }
}

/// Seconds of a run.
fn timed(executable: &dyn Executable, inputs: &[Tensor]) -> Result<Summary> {
    let mut bound = executable.bind(inputs)?;
    let mut run = || -> Result<f64> {
        Ok(match &mut bound {
            Some(bound) => bound.run()?.as_secs_f64(),
            None => {
                let begin = Instant::now();
                executable.run(inputs, &RunOptions::default())?;
                begin.elapsed().as_secs_f64()
            }
        })
    };
    for _ in 0..2 {
        run()?;
    }
    let (mut seconds, begin) = (Vec::new(), Instant::now());
    while seconds.len() < LEAST || (begin.elapsed() < BUDGET && seconds.len() < MOST) {
        seconds.push(run()?);
    }
    Summary::of_rounds(&[seconds]).ok_or_else(|| Error::NotPossible("a run took no time".to_owned()))
}

/// The kernels of a run and their median milliseconds.
fn profiled(executable: &dyn Executable, inputs: &[Tensor]) -> Result<Vec<(String, f64)>> {
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let mut names: Vec<String> = Vec::new();
    let mut times: Vec<Vec<f64>> = Vec::new();
    for _ in 0..PROFILED {
        let profile = executable.run(inputs, &options)?.profile;
        let kernels = profile.events.into_iter().filter(|event| event.category == "kernel");
        for (at, event) in kernels.enumerate() {
            if at == times.len() {
                names.push(event.name.clone());
                times.push(Vec::new());
            }
            times[at].push(event.duration.as_secs_f64() * 1e3);
        }
    }
    let medians = times.iter().map(|times| stats::median(times).unwrap_or(0.0));
    Ok(names.into_iter().zip(medians).collect())
}
