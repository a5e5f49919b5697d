//! XLA in a process of its own: modules and inputs in, results out.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use warpforge_tensor::{Shape, Tensor};

use super::Other;
use super::program::Ty;
use crate::command::root;

/// The process and the pipes to it.
pub(crate) struct Xla {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Xla {
    /// Starts a Python that has `jaxlib`.
    pub(crate) fn start(python: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .arg(root().join("xtask/jax/serve_xla.py"))
            // Results rounded where the program says so, and nothing else on the pipe.
            .env("XLA_FLAGS", "--xla_allow_excess_precision=false")
            .env("TF_CPP_MIN_LOG_LEVEL", "3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let requests = child.stdin.take().context("no pipe to XLA")?;
        let answers = BufReader::new(child.stdout.take().context("no pipe from XLA")?);
        Ok(Self { child, requests, answers })
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
        writeln!(self.requests, "{}", json!({ "module": module, "inputs": described }))?;
        for input in inputs {
            self.requests.write_all(input.bytes())?;
        }
        self.requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("XLA's process ended; the module it was given:\n{module}");
        }
        let answer: Value = serde_json::from_str(&line).with_context(|| format!("not an answer: {line}"))?;
        if let Some(error) = answer["error"].as_str() {
            return Ok(Err(error.to_owned()));
        }
        let tensors = outputs.iter().map(|ty| {
            let mut bytes = vec![0; ty.len() * ty.element.byte_width()];
            self.answers.read_exact(&mut bytes)?;
            Ok(Tensor::from_bytes(ty.element, Shape::new(ty.dims.clone())?, &bytes)?)
        });
        tensors.collect::<anyhow::Result<Vec<_>>>().map(Ok)
    }
}

impl Drop for Xla {
    fn drop(&mut self) {
        // It ends by itself when the pipe closes; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
