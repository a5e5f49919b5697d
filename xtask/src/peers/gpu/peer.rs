//! PyTorch in a process of its own: `xtask/peers/gpu/serve.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The process and the pipes to it.
pub(super) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the program that lies in the folder of the workloads.
    pub(super) fn start(python: &Path, work: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .arg(work.join("serve.py"))
            .arg(work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let requests = child.stdin.take().context("no pipe to PyTorch")?;
        let answers = BufReader::new(child.stdout.take().context("no pipe from PyTorch")?);
        Ok(Self { child, requests, answers })
    }

    /// Asks, and waits for the answer; one that says it failed is an error.
    pub(super) fn ask(&mut self, request: &Value) -> anyhow::Result<Value> {
        let mut line = String::new();
        let asked = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        if asked.is_err() || self.answers.read_line(&mut line)? == 0 {
            bail!("the process of PyTorch ended (its message is above)");
        }
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("not an answer of PyTorch: {line}"))?;
        match answer["failed"].as_str() {
            Some(reason) => bail!("{reason}"),
            None => Ok(answer),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself when the pipe closes; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
