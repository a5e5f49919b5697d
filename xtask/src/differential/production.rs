//! The production tier of the CPU engine, judged as XLA is.

use std::sync::Arc;

use warpforge::{CompileOptions, RunOptions, Tier, backends};
use warpforge_runtime::{Program, Weights, choose};
use warpforge_tensor::Tensor;

use super::Other;
use super::program::Ty;

/// The production tier.
pub(crate) struct Production;

impl Other for Production {
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
        let options = CompileOptions { tier: Some(Tier::Production), ..CompileOptions::default() };
        let choice = choose(backends(), &options)?;
        let program = Program::new(Arc::new(module), "main", Weights::default())?;
        let executable = choice.backend.compile(&program, &choice.target)?;
        Ok(Ok(executable.run(inputs, &RunOptions::default())?.outputs))
    }
}
