//! A peer in a process of its own: `xtask/peers/cpu/serve.py`.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::program;
use crate::served::Served;

/// How far outputs are from the expected ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::peers) struct Accuracy {
    /// The largest difference as a part of the largest magnitude, the worst of the outputs.
    pub(in crate::peers) distance: f64,
    /// The ratio of signal to error in dB, the worst of the outputs; none where there is no error.
    pub(in crate::peers) sqnr_db: Option<f64>,
}

/// What a peer said of a workload that it was to get ready.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::peers) enum Prepared {
    /// Ready after so many seconds, its outputs so far from the expected ones.
    Ready { seconds: f64, accuracy: Accuracy },
    /// There is no program of this workload for the peer.
    Absent,
    /// The peer cannot run it, for this reason.
    Failed(String),
}

/// The process of an engine.
pub(in crate::peers) struct Peer {
    pub(in crate::peers) engine: String,
    served: Served,
}

impl Peer {
    /// Starts an engine that finds its workloads in a folder.
    pub(in crate::peers) fn start(
        python: &Path,
        engine: &str,
        folder: &Path,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let mut command = program(python, "serve.py");
        command.arg(engine).arg(folder).arg(threads.to_string());
        command.env("TF_CPP_MIN_LOG_LEVEL", "3").env("JAX_PLATFORMS", "cpu");
        Ok(Self { engine: engine.to_owned(), served: Served::start(&mut command, engine)? })
    }

    /// Gets a workload ready and runs it once.
    pub(in crate::peers) fn prepare(&mut self, workload: &str) -> anyhow::Result<Prepared> {
        prepared(&self.served.ask(&json!({ "do": "prepare", "workload": workload }))?)
    }

    /// Runs the prepared workload for about so long: the milliseconds of each run.
    pub(in crate::peers) fn times(&mut self, seconds: f64) -> anyhow::Result<Vec<f64>> {
        times(&self.served.ask(&json!({ "do": "time", "seconds": seconds }))?)
            .with_context(|| self.engine.clone())
    }

    /// Lets go of the prepared workload.
    pub(in crate::peers) fn forget(&mut self) -> anyhow::Result<()> {
        self.served.ask(&json!({ "do": "forget" })).map(drop)
    }
}

fn prepared(answer: &Value) -> anyhow::Result<Prepared> {
    if let Some(reason) = answer["failed"].as_str() {
        return Ok(Prepared::Failed(reason.to_owned()));
    }
    if answer["absent"] == true {
        return Ok(Prepared::Absent);
    }
    match (answer["seconds"].as_f64(), answer["distance"].as_f64()) {
        (Some(seconds), Some(distance)) => {
            let accuracy = Accuracy { distance, sqnr_db: answer["sqnr_db"].as_f64() };
            Ok(Prepared::Ready { seconds, accuracy })
        }
        _ => bail!("not an answer: {answer}"),
    }
}

fn times(answer: &Value) -> anyhow::Result<Vec<f64>> {
    if let Some(reason) = answer["failed"].as_str() {
        bail!("{reason}");
    }
    numbers(&answer["times_ms"]).with_context(|| format!("not an answer: {answer}"))
}

/// A list of numbers that is not empty.
pub(in crate::peers) fn numbers(list: &Value) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = list.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let ready = prepared(&json!({ "seconds": 2.5, "distance": 1e-7, "sqnr_db": 140.0 })).unwrap();
        let accuracy = Accuracy { distance: 1e-7, sqnr_db: Some(140.0) };
        assert_eq!(ready, Prepared::Ready { seconds: 2.5, accuracy });
        assert_eq!(prepared(&json!({ "absent": true })).unwrap(), Prepared::Absent);
        assert_eq!(prepared(&json!({ "failed": "no" })).unwrap(), Prepared::Failed("no".to_owned()));
        assert!(prepared(&json!({ "seconds": 2.5 })).is_err());
        assert_eq!(times(&json!({ "times_ms": [1.0, 2.0] })).unwrap(), [1.0, 2.0]);
        assert!(times(&json!({ "times_ms": [] })).is_err());
        assert!(times(&json!({ "times_ms": [1.0, "2"] })).is_err());
        assert!(times(&json!({ "failed": "memory" })).unwrap_err().to_string().contains("memory"));
    }
}
