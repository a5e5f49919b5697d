//! fio as a peer of `disk_io`: the same workloads on a file of the same size in the same folder.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use warpforge_probes::disk::{Operation, Pattern, Workload};

use super::{Settings, workloads};
use crate::benchmark::{BenchmarkError, MetricKey, Peer, RunContext};
use crate::external::{LONGEST_RUN, Tool, execute};
use crate::record::Params;

/// The least that fio runs.
const LEAST_SECONDS: f64 = 0.2;

/// The peer.
#[derive(Debug)]
pub(super) struct Fio;

impl Peer for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn description(&self) -> &'static str {
        "the same workloads with io_uring, past the page cache; Debian package fio"
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        tool().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let tool = tool()?;
        context.version(tool.version("--version")?.trim_start_matches("fio-"));
        let file = tempfile::Builder::new().prefix("fio-").tempfile_in(&settings.directory);
        let file = file.map_err(|error| {
            BenchmarkError::NotPossible(format!(
                "no file can be made in {}: {error}",
                settings.directory.display()
            ))
        })?;
        let workloads = workloads(&settings);
        context.plan(workloads.len());
        // Blocks that were never written are read without touching the disk and slow to write, so they are written first.
        let mut lay_out = command(&tool, file.path(), settings.file_bytes);
        lay_out.args(["--rw=write", "--bs=1M", "--iodepth=8"]);
        execute(lay_out, LONGEST_RUN, &|| context.stopped())?;
        for workload in &workloads {
            context.begin(&format!("{} {} {}", workload.pattern, workload.operation, workload.queue_depth));
            let mut command = command(&tool, file.path(), settings.file_bytes);
            command.args(arguments(workload));
            let seconds = context.share().as_secs_f64().max(LEAST_SECONDS);
            command.args(["--time_based".to_owned(), format!("--runtime={}ms", (seconds * 1e3) as u64)]);
            let printed = execute(command, LONGEST_RUN, &|| context.stopped())?;
            let rate = megabytes(&printed, workload.operation)
                .ok_or_else(|| BenchmarkError::Failed("fio printed no bandwidth".to_owned()))?;
            let key = MetricKey::more_is_better("throughput", "MB/s")
                .tag("pattern", workload.pattern)
                .tag("operation", workload.operation)
                .tag("queue_depth", workload.queue_depth);
            context.record(key, vec![rate])?;
        }
        Ok(())
    }
}

fn tool() -> Result<Tool, BenchmarkError> {
    Tool::on_path(&["fio"], "fio")
}

fn command(tool: &Tool, file: &Path, bytes: u64) -> Command {
    let mut command = Command::new(tool.path());
    command.args(["--name=warpt", "--direct=1", "--ioengine=io_uring", "--output-format=json"]);
    command.arg(format!("--filename={}", file.display())).arg(format!("--size={bytes}"));
    command
}

/// What fio calls a workload.
fn arguments(workload: &Workload) -> [String; 5] {
    let random = if workload.pattern == Pattern::Random { "rand" } else { "" };
    [
        format!("--rw={random}{}", name(workload.operation)),
        format!("--bs={}", workload.block_bytes),
        format!("--iodepth={}", workload.queue_depth),
        "--randrepeat=0".to_owned(),
        "--norandommap".to_owned(),
    ]
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
    }
}

/// The mean rate over fio's run.
fn megabytes(printed: &str, operation: Operation) -> Option<f64> {
    // Notes of the engine may come before the report.
    let report: Value = serde_json::from_str(&printed[printed.find('{')?..]).ok()?;
    let bytes = report["jobs"][0][name(operation)]["bw_bytes"].as_f64()?;
    (bytes > 0.0).then_some(bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_fios_names() {
        let workload =
            |pattern, operation| Workload { pattern, operation, block_bytes: 4096, queue_depth: 32 };
        let random = arguments(&workload(Pattern::Random, Operation::Write));
        assert_eq!(random[..3], ["--rw=randwrite", "--bs=4096", "--iodepth=32"]);
        assert_eq!(arguments(&workload(Pattern::Sequential, Operation::Read))[0], "--rw=read");
    }

    #[test]
    fn the_rate_is_that_of_the_operation() {
        let printed = "note: both iodepth >= 1 and synchronous\n{\"jobs\": [{\"read\": {\"bw_bytes\": 2500000}, \
                       \"write\": {\"bw_bytes\": 0}}]}";
        assert_eq!(megabytes(printed, Operation::Read), Some(2.5));
        assert_eq!(megabytes(printed, Operation::Write), None);
        assert_eq!(megabytes("fio: failed", Operation::Read), None);
    }
}
