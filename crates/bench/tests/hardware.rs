//! Benchmarks that need something of the machine. Where it is missing the tests are ignored, and a line on standard error
//! says why.

use std::collections::BTreeSet;

use libtest_mimic::{Arguments, Failed, Trial};
use warpforge_bench::benchmark::{Benchmark, BenchmarkError, Event, Round, RunContext};
use warpforge_bench::record::{ParamValue, Params};
use warpforge_bench::suites::get_suite;

fn main() {
    let arguments = Arguments::from_args();
    let missing = no_direct_io();
    if let Some(reason) = &missing {
        eprintln!("ignored, all of disk_io: {reason}");
    }
    let trials = [
        ("disk_io reports every workload and leaves nothing", every_workload as fn() -> Result<(), Failed>),
        ("disk_io stops when it is asked to", stops),
    ];
    let trials = trials.map(|(name, test)| Trial::test(name, test).with_ignored_flag(missing.is_some()));
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn disk_io() -> Result<&'static dyn Benchmark, Failed> {
    get_suite("micro").and_then(|suite| suite.get_benchmark("disk_io")).ok_or_else(|| "no disk_io".into())
}

/// A small file in this folder.
fn params(benchmark: &dyn Benchmark, folder: &tempfile::TempDir) -> Params {
    let mut params = benchmark.spec().params.unwrap_or_default();
    params.extend([
        ("directory".to_owned(), ParamValue::Text(folder.path().display().to_string())),
        ("file_bytes".to_owned(), ParamValue::Int(1 << 20)),
        ("queue_depth".to_owned(), ParamValue::Int(2)),
    ]);
    params
}

fn round(benchmark: &dyn Benchmark, folder: &tempfile::TempDir) -> Round {
    let params = params(benchmark, folder);
    // No time at all: a round takes what it needs for its figures, however busy the machine is.
    Round { id: benchmark.spec().id, params, seconds: 0.0, burn_in_seconds: 0.0, beside: None }
}

/// Why the folder for temporary files cannot be measured.
fn no_direct_io() -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    let benchmark = disk_io().ok()?;
    match benchmark.prepare(&params(benchmark, &folder)) {
        Err(BenchmarkError::NotPossible(reason)) => Some(reason),
        _ => None,
    }
}

fn every_workload() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let benchmark = disk_io()?;
    let round = round(benchmark, &folder);
    let (mut metrics, mut wrong) = (BTreeSet::new(), Vec::new());
    let mut report = |event| {
        if let Event::Metric { key, values } = event {
            let tag = |name: &str| key.tags.get(name).cloned().unwrap_or_default();
            let workload = format!("{} {} {}", tag("pattern"), tag("operation"), tag("queue_depth"));
            let positive = values.iter().all(|&value| value > 0.0);
            if !metrics.insert((key.name.clone(), workload)) || !positive {
                wrong.push(format!("{key:?}: {values:?}"));
            }
        }
    };
    benchmark.run(&mut RunContext::new(&round, &|| false, &mut report))?;
    let of = |name: &str| metrics.iter().filter(|(metric, _)| metric == name).count();
    let counts = (of("throughput"), of("iops"), of("latency_p50"));
    if counts != (6, 4, 6) || !wrong.is_empty() {
        return Err(format!("{counts:?} metrics; wrong: {wrong:?}").into());
    }
    match std::fs::read_dir(folder.path())?.next() {
        None => Ok(()),
        Some(entry) => Err(format!("{entry:?} is left").into()),
    }
}

fn stops() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let benchmark = disk_io()?;
    let round = round(benchmark, &folder);
    match benchmark.run(&mut RunContext::new(&round, &|| true, &mut |_| {})) {
        Err(BenchmarkError::Stopped) => Ok(()),
        outcome => Err(format!("{outcome:?}").into()),
    }
}
