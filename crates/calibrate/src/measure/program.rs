//! A case compiled for a device, and its clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpforge::{CompileOptions, CompiledModel, Model, Outputs, RunOptions, Tensor};
use warpforge_fusion::cluster::Cost;
use warpforge_runtime::{Bound, Executable};

use super::Settings;
use crate::cases::Case;
use crate::error::{Error, Result};

/// A compiled case.
pub(super) struct Prepared {
    compiled: CompiledModel,
    executable: Arc<dyn Executable>,
    inputs: Vec<Tensor>,
    /// Kernels of a run.
    pub(super) kernels: usize,
    /// What they cost.
    pub(super) cost: Cost,
}

impl Prepared {
    /// Compiles a case, fused or not. A case that the device has no kernel for is an error.
    pub(super) fn new(settings: &Settings, case: &Case, unfused: bool) -> Result<Self> {
        let mut model = Model::from_text("case.mlir", case.module.text(unfused))?;
        model.bind_weights(&case.module.weights()?)?;
        let options = CompileOptions {
            device: settings.device,
            precision: case.dtype.precision(),
            threads: settings.threads,
            no_fallback: true,
            ..CompileOptions::default()
        };
        let plan = model.plan(&options)?;
        let compiled = model.compile(&options)?;
        let inputs = case.module.inputs()?;
        let executable = compiled.prepare(&inputs)?;
        let planned = plan.clusters.clusters.len();
        let kernels = executable.counters().map_or(planned, |counters| counters.kernel_launches as usize);
        Ok(Self { kernels, cost: plan.clusters.cost(&plan.graph), compiled, executable, inputs })
    }

    /// Runs once on the host's clock, for the results.
    pub(super) fn outputs(&self) -> Result<Outputs> {
        Ok(self.compiled.run_in_order(&self.inputs, &RunOptions::default())?)
    }

    /// Its clock: the device's own where it has one.
    pub(super) fn clock(&self) -> Result<Clock<'_>> {
        Ok(match self.executable.bind(&self.inputs)? {
            Some(bound) => Clock::Device(bound),
            None => Clock::Host(self.executable.as_ref(), &self.inputs),
        })
    }
}

/// Times runs of a program.
pub(super) enum Clock<'p> {
    /// By the device's clock, inputs on the device.
    Device(Box<dyn Bound + 'p>),
    /// By the host's clock.
    Host(&'p dyn Executable, &'p [Tensor]),
    /// Of several programs in turn; the next one.
    InTurn(Vec<Clock<'p>>, usize),
}

impl Clock<'_> {
    /// Runs so many times: the time of all of them.
    pub(super) fn run(&mut self, iterations: u64) -> Result<Duration> {
        match self {
            Self::Device(bound) => (0..iterations).try_fold(Duration::ZERO, |sum, _| Ok(sum + bound.run()?)),
            Self::Host(executable, inputs) => {
                let begin = Instant::now();
                for _ in 0..iterations {
                    executable.run(inputs, &RunOptions::default()).map_err(Error::from)?;
                }
                Ok(begin.elapsed())
            }
            Self::InTurn(clocks, next) => {
                let mut sum = Duration::ZERO;
                for _ in 0..iterations {
                    sum += clocks[*next].run(1)?;
                    *next = (*next + 1) % clocks.len();
                }
                Ok(sum)
            }
        }
    }
}
