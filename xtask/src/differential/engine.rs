//! A tier of an engine, judged as XLA is.

use std::sync::Arc;

use warpforge::{CompileOptions, Device, RunOptions, Tier, backends};
use warpforge_runtime::{Program, Weights, choose};
use warpforge_tensor::Tensor;

use super::Other;
use super::program::Ty;

/// A tier of the engine of a device.
pub(crate) struct Engine {
    pub(crate) device: Device,
    pub(crate) tier: Tier,
}

impl Other for Engine {
    fn run(
        &mut self,
        module: &str,
        inputs: &[Tensor],
        _: &[&Ty],
    ) -> anyhow::Result<Result<Vec<Tensor>, String>> {
        let module = match super::parse(module) {
            Ok(module) => module,
            Err(error) => return Ok(Err(error)),
        };
        let options =
            CompileOptions { device: self.device, tier: Some(self.tier), ..CompileOptions::default() };
        let choice = choose(backends(), &options)?;
        let program = Program::new(Arc::new(module), "main", Weights::default())?;
        let executable = choice.backend.compile(&program, &choice.target)?;
        Ok(Ok(executable.run(inputs, &RunOptions::default())?.outputs))
    }
}
