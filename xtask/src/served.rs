//! A program in a process of its own that answers requests on its standard input with lines of JSON.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The process and the pipes to it.
pub(crate) struct Served {
    name: String,
    child: Child,
    pub(crate) requests: ChildStdin,
    pub(crate) answers: BufReader<ChildStdout>,
}

impl Served {
    /// Starts the program; `name` is what messages call it.
    pub(crate) fn start(command: &mut Command, name: &str) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let requests = child.stdin.take().with_context(|| format!("no pipe to {name}"))?;
        let answers = BufReader::new(child.stdout.take().with_context(|| format!("no pipe from {name}"))?);
        Ok(Self { name: name.to_owned(), child, requests, answers })
    }

    /// Writes a request of one line and waits for the answer.
    pub(crate) fn ask(&mut self, request: &dyn Display) -> anyhow::Result<Value> {
        let asked = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        match asked.ok().map(|()| self.answer()).transpose()?.flatten() {
            Some(answer) => Ok(answer),
            None => bail!("the process of {} ended (its message is above)", self.name),
        }
    }

    /// The next answer; `None` where the process has ended.
    pub(crate) fn answer(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let answer = serde_json::from_str(&line);
        answer.map(Some).with_context(|| format!("not an answer of {}: {line}", self.name))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It ends by itself when the pipe closes; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
