//! PyTorch in a process of its own: `xtask/peers/gpu/serve.py`.

use std::path::Path;
use std::process::Command;

use anyhow::bail;
use serde_json::Value;

use crate::served::Served;

/// A process of PyTorch.
pub(super) struct Peer(Served);

impl Peer {
    /// Starts the program that lies in the folder of the workloads.
    pub(super) fn start(python: &Path, work: &Path) -> anyhow::Result<Self> {
        Served::start(Command::new(python).arg(work.join("serve.py")).arg(work), "PyTorch").map(Self)
    }

    /// Asks, and waits for the answer; one that says it failed is an error.
    pub(super) fn ask(&mut self, request: &Value) -> anyhow::Result<Value> {
        let answer = self.0.ask(request)?;
        match answer["failed"].as_str() {
            Some(reason) => bail!("{reason}"),
            None => Ok(answer),
        }
    }
}
