//! `disk_io` beside fio at the same settings.

use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::{Stage, find_mean};
use crate::command::output;
use crate::peers::table::{Bound, Contest, Figures, Row};
use crate::peers::tools;

const FILE_BYTES: u64 = 512 << 20;
const SECONDS_EACH: f64 = 2.0;

/// One workload under both tools' names.
struct Workload {
    label: &'static str,
    pattern: &'static str,
    operation: &'static str,
    queue_depth: &'static str,
    fio: [&'static str; 2],
}

const WORKLOADS: [Workload; 6] = [
    Workload {
        label: "sequential read",
        pattern: "sequential",
        operation: "read",
        queue_depth: "32",
        fio: ["read", "128k"],
    },
    Workload {
        label: "sequential write",
        pattern: "sequential",
        operation: "write",
        queue_depth: "32",
        fio: ["write", "128k"],
    },
    Workload {
        label: "random 4K read, depth 1",
        pattern: "random",
        operation: "read",
        queue_depth: "1",
        fio: ["randread", "4k"],
    },
    Workload {
        label: "random 4K read, depth 32",
        pattern: "random",
        operation: "read",
        queue_depth: "32",
        fio: ["randread", "4k"],
    },
    Workload {
        label: "random 4K write, depth 1",
        pattern: "random",
        operation: "write",
        queue_depth: "1",
        fio: ["randwrite", "4k"],
    },
    Workload {
        label: "random 4K write, depth 32",
        pattern: "random",
        operation: "write",
        queue_depth: "32",
        fio: ["randwrite", "4k"],
    },
];

/// Throughput of every workload.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("fio", "fio")?;
    let theirs = || {
        let rates = WORKLOADS.iter().map(|workload| Ok((workload.label.to_owned(), fio(stage, workload)?)));
        rates.collect::<anyhow::Result<Figures>>()
    };
    let ours = || {
        let params = [format!("directory={}", stage.directory.display()), format!("file_bytes={FILE_BYTES}")];
        let metrics = stage.measure("disk_io", SECONDS_EACH * WORKLOADS.len() as f64, &params)?;
        let rate = |workload: &Workload| {
            let tags = [
                ("pattern", workload.pattern),
                ("operation", workload.operation),
                ("queue_depth", workload.queue_depth),
            ];
            Ok((workload.label.to_owned(), find_mean(&metrics, "throughput", &tags)?))
        };
        WORKLOADS.iter().map(rate).collect()
    };
    let contest = Contest {
        name: "disk_io",
        peer: "fio",
        unit: "MB/s",
        bound: Bound::Within(0.15),
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold(stage.alternations)
}

/// The throughput that fio gives: the mean over its run.
fn fio(stage: &Stage, workload: &Workload) -> anyhow::Result<f64> {
    let [pattern, block] = workload.fio;
    let file = tempfile::Builder::new().prefix("fio-").tempfile_in(&stage.directory)?;
    let command = |pattern: &str, block: &str, depth: &str| {
        let mut command = Command::new("fio");
        command.args(["--name=warpt", "--direct=1", "--ioengine=io_uring", "--output-format=json"]);
        command.arg(format!("--filename={}", file.path().display()));
        command.arg(format!("--size={FILE_BYTES}"));
        command.args([format!("--rw={pattern}"), format!("--bs={block}"), format!("--iodepth={depth}")]);
        command
    };
    // Blocks that were never written are read without touching the disk and slow to write, so both tools write first.
    output(&mut command("write", "1M", "8"))?;
    let mut command = command(pattern, block, workload.queue_depth);
    command.args(["--randrepeat=0", "--norandommap", "--time_based", "--ramp_time=200ms"]);
    command.arg(format!("--runtime={SECONDS_EACH}"));
    let report: Value = serde_json::from_str(&output(&mut command)?)?;
    let bytes =
        report["jobs"][0][workload.operation]["bw_bytes"].as_f64().context("fio gave no bandwidth")?;
    Ok(bytes / 1e6)
}
