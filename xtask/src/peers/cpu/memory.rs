//! What a process needs: its peak of memory beside PyTorch's, and the time to import and compile.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::ours::{Ours, parse};
use super::program;
use super::stats::{figure, median};
use crate::command::output;

/// Runs in the process whose memory is measured.
const RUNS: usize = 5;
/// Processes whose import is timed.
const IMPORTS: usize = 7;

/// Peaks of two processes, in bytes.
#[derive(Debug)]
pub(super) struct Peak {
    workload: String,
    /// PyTorch, nothing but imported.
    idle: f64,
    theirs: f64,
    ours: f64,
}

/// Peaks of PyTorch as it is and of ours on one workload.
pub(super) fn peak(python: &Path, workload: &str, ours: &Ours<'_>) -> anyhow::Result<Peak> {
    eprintln!("{workload}: memory");
    let measure = |command: &mut Command| -> anyhow::Result<f64> {
        let mut peak = program(python, "peak.py");
        peak.arg(command.get_program()).args(command.get_args());
        let text = output(&mut peak)?;
        text.trim().parse().with_context(|| format!("no number of bytes: {text}"))
    };
    let mut eager = program(python, "eager.py");
    eager.arg(workload).arg(RUNS.to_string()).arg(ours.threads.to_string());
    Ok(Peak {
        workload: workload.to_owned(),
        idle: measure(Command::new(python).args(["-c", "import torch"]))?,
        theirs: measure(&mut eager)?,
        ours: measure(&mut ours.command(RUNS))?,
    })
}

impl Peak {
    fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }

    /// The peaks for programs.
    pub(super) fn json(&self) -> Value {
        let Self { workload, idle, theirs, ours } = self;
        json!({ "workload": workload, "torch_imported_bytes": idle, "eager_bytes": theirs, "ours_bytes": ours,
                "ratio": self.ratio() })
    }
}

/// The table of peaks.
pub(super) fn table(peaks: &[Peak]) -> String {
    let mut out = "| MiB | torch imported | torch eager | ours | ours / eager |\n".to_owned();
    out += "| --- | ---: | ---: | ---: | ---: |\n";
    let mebibytes = |bytes: f64| format!("{:.0}", bytes / f64::from(1 << 20));
    for peak in peaks {
        let [idle, theirs, ours] = [peak.idle, peak.theirs, peak.ours].map(mebibytes);
        let _ = writeln!(out, "| {} | {idle} | {theirs} | {ours} | {:.2} |", peak.workload, peak.ratio());
    }
    out
}

/// Reading an archive and compiling it, medians over fresh processes, in milliseconds.
#[derive(Debug)]
pub(super) struct Start {
    workload: String,
    load_ms: f64,
    compile_ms: f64,
}

/// Times the import and the compilation of one workload.
pub(super) fn start(workload: &str, ours: &Ours<'_>) -> anyhow::Result<Start> {
    let (mut load, mut compile) = (Vec::new(), Vec::new());
    for turn in 1..=IMPORTS {
        eprintln!("{workload}: import and compilation {turn} of {IMPORTS}");
        let run = parse(&output(&mut ours.command(1))?)?;
        load.push(run.load_ms);
        compile.push(run.compile_ms);
    }
    Ok(Start { workload: workload.to_owned(), load_ms: median(&load), compile_ms: median(&compile) })
}

impl Start {
    /// The times for programs.
    pub(super) fn json(&self) -> Value {
        json!({ "workload": self.workload, "import_ms": self.load_ms, "compile_ms": self.compile_ms })
    }

    /// The times as a sentence.
    pub(super) fn text(&self) -> String {
        let [load, compile, both] =
            [self.load_ms, self.compile_ms, self.load_ms + self.compile_ms].map(figure);
        format!("{}: import {load} ms, compilation {compile} ms, together {both} ms.", self.workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_starts_are_written() {
        let mebibyte = f64::from(1 << 20);
        let peak = Peak {
            workload: "w".to_owned(),
            idle: 200.0 * mebibyte,
            theirs: 400.0 * mebibyte,
            ours: 100.0 * mebibyte,
        };
        assert!(table(&[peak]).ends_with("| w | 200 | 400 | 100 | 0.25 |\n"));
        let start = Start { workload: "w".to_owned(), load_ms: 120.4, compile_ms: 80.0 };
        assert_eq!(start.text(), "w: import 120 ms, compilation 80.0 ms, together 200 ms.");
    }
}
