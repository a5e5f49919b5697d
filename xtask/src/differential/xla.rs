//! XLA in a process of its own: modules and inputs in, results out.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use anyhow::bail;
use serde_json::{Value, json};
use warpforge_tensor::{Shape, Tensor};

use super::Other;
use super::program::Ty;
use crate::command::root;
use crate::served::Served;

/// A process of XLA.
pub(crate) struct Xla(Served);

impl Xla {
    /// Starts a Python that has `jaxlib`.
    pub(crate) fn start(python: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(python);
        command.arg(root().join("xtask/jax/serve_xla.py"));
        // Results rounded where the program says so, and nothing else on the pipe.
        command.env("XLA_FLAGS", "--xla_allow_excess_precision=false").env("TF_CPP_MIN_LOG_LEVEL", "3");
        Served::start(&mut command, "XLA").map(Self)
    }
}

impl Other for Xla {
    fn run(
        &mut self,
        module: &str,
        inputs: &[Tensor],
        outputs: &[&Ty],
    ) -> anyhow::Result<Result<Vec<Tensor>, String>> {
        let described: Vec<Value> = inputs
            .iter()
            .map(|input| json!({ "type": input.element_type().to_string(), "shape": input.dims() }))
            .collect();
        let requests = &mut self.0.requests;
        writeln!(requests, "{}", json!({ "module": module, "inputs": described }))?;
        for input in inputs {
            requests.write_all(input.bytes())?;
        }
        requests.flush()?;
        let Some(answer) = self.0.answer()? else {
            bail!("XLA's process ended; the module it was given:\n{module}");
        };
        if let Some(error) = answer["error"].as_str() {
            return Ok(Err(error.to_owned()));
        }
        let tensors = outputs.iter().map(|ty| {
            let mut bytes = vec![0; ty.len() * ty.element.byte_width()];
            self.0.answers.read_exact(&mut bytes)?;
            Ok(Tensor::from_bytes(ty.element, Shape::new(ty.dims.clone())?, &bytes)?)
        });
        tensors.collect::<anyhow::Result<Vec<_>>>().map(Ok)
    }
}
