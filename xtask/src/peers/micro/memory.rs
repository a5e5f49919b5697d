//! `mem_bandwidth` beside STREAM's kernels in C, `mem_latency` beside a pointer chase in C.

use std::process::Command;

use super::{Stage, find, printed};
use crate::command::output;
use crate::peers::table::{Bound, Contest, Figures, Row};
use crate::peers::tools;

/// Each of the three arrays: far more than any cache.
const ARRAY_BYTES: u64 = 1 << 30;

/// Where the latency is compared: sizes that the levels of common processors serve, and main memory.
const CHASE_BYTES: [u64; 4] = [16 << 10, 256 << 10, 4 << 20, 1 << 30];

/// Main memory's bandwidth, and the latency at a few sizes.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = bandwidth(stage)?;
    rows.extend(latency(stage)?);
    Ok(rows)
}

fn bandwidth(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let stream = tools::compile("stream", &["-fopenmp"], stage.folder.path())?;
    let all = std::thread::available_parallelism()?.to_string();
    let scopes =
        [("one_core", "1", "DRAM triad, one core"), ("all_cores", all.as_str(), "DRAM triad, all cores")];
    let theirs = || {
        let rate = |threads: &str| {
            let mut command = Command::new(&stream);
            command.arg(ARRAY_BYTES.to_string()).env("OMP_NUM_THREADS", threads).env("OMP_PROC_BIND", "true");
            let text = output(&mut command)?;
            printed(&text, "triad_median_gbps")
        };
        scopes.iter().map(|(_, threads, label)| Ok(((*label).to_owned(), rate(threads)?))).collect()
    };
    let ours = || {
        let params =
            ["levels=DRAM".to_owned(), "kernels=triad".to_owned(), format!("dram_bytes={}", 3 * ARRAY_BYTES)];
        let metrics = stage.measure("mem_bandwidth", 6.0, &params)?;
        let rate = |scope| {
            find(&metrics, "bandwidth", &[("kernel", "triad"), ("stores", "ordinary"), ("scope", scope)])
        };
        scopes.iter().map(|(scope, _, label)| Ok(((*label).to_owned(), rate(scope)?))).collect()
    };
    let contest = Contest {
        name: "mem_bandwidth",
        peer: "STREAM kernels in C",
        unit: "GB/s",
        bound: Bound::Within(0.10),
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold(stage.alternations)
}

fn latency(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("taskset", "util-linux")?;
    let chase = tools::compile("chase", &[], stage.folder.path())?;
    let label = |bytes: u64| match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    };
    let theirs = || {
        // Tied to one processor, as our thread is.
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", "0"]).arg(&chase).args(CHASE_BYTES.map(|bytes| bytes.to_string()));
        let text = output(&mut command)?;
        let figure = |bytes| Ok((label(bytes), printed(&text, &format!("latency_{bytes}_ns"))?));
        CHASE_BYTES.into_iter().map(figure).collect::<anyhow::Result<Figures>>()
    };
    let ours = || {
        let metrics = stage.measure("mem_latency", 12.0, &["max_bytes=1073741824".to_owned()])?;
        let figure = |bytes: u64| {
            let size = bytes.to_string();
            Ok((label(bytes), find(&metrics, "latency", &[("size_bytes", &size), ("pages", "default")])?))
        };
        CHASE_BYTES.into_iter().map(figure).collect()
    };
    let contest = Contest {
        name: "mem_latency",
        peer: "pointer chase in C",
        unit: "ns",
        bound: Bound::Within(0.15),
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold(stage.alternations)
}
