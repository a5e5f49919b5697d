//! The peaks and bandwidths of a calibration beside likwid-bench, STREAM and a register-only loop in C, in turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::contests::{self, Destination, Named};
use super::paced::{Sample, Samples};
use super::table::{Bound, Contest, Figures, Row, Statistic};
use super::tools;
use crate::command::output;

/// Each of STREAM's arrays: far more than any cache.
const ARRAY_BYTES: u64 = 256 << 20;

/// How often likwid-bench goes round in a working set of L1, and about how many bytes it then moves: some hundredths of a second, short enough
/// that some of the runs are not disturbed.
const RUNS_IN_L1: usize = 9;
const BYTES_IN_L1: u64 = 24 << 30;

/// How many turns of the loop in C there are for each of the others': they are short.
const TURNS_OF_LOOP: usize = 3;

/// How long a look at the pace is, in seconds.
const LOOK_SECONDS: f64 = 0.05;

const UNIT: &str = "GFLOP/s, GB/s";

/// The part by which figures may differ.
const BOUND: Bound = Bound::Within(0.10);

/// Arguments of `cargo xtask peers limits`.
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    /// Only these: likwid, fma, stream
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// The warpt to measure [default: built here in release]
    #[arg(long, value_name = "PROGRAM")]
    warpt: Option<PathBuf>,
    /// Put the figures into docs/calibrate.md
    #[arg(long)]
    update_docs: bool,
}

/// What the contests need.
struct Stage {
    warpt: PathBuf,
    /// For compiled programs and profiles; gone when the contests are over.
    folder: tempfile::TempDir,
    alternations: usize,
    threads: usize,
}

const CONTESTS: [Named<Stage>; 3] = [("likwid", likwid), ("fma", fma), ("stream", stream)];

/// Runs the comparisons and prints their ratios.
pub(super) fn run(args: &LimitsArgs) -> anyhow::Result<()> {
    contests::check(&CONTESTS, &args.only)?;
    let warpt = match &args.warpt {
        Some(warpt) => std::path::absolute(warpt)?,
        None => tools::build_warpt()?,
    };
    let stage = Stage {
        warpt,
        folder: tempfile::tempdir()?,
        alternations: args.alternations.into(),
        threads: std::thread::available_parallelism()?.get(),
    };
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers limits",
        page: "docs/calibrate.md",
        method: &format!(
            "the largest of {} runs of each side or more, in turn, of those at the fastest pace that both sides had; likwid-bench in the faster of two widths of vectors, in L1 by the slope of the time over four working sets, without the start of a pass; the loop in C three times as often",
            args.alternations
        ),
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

/// A figure of both sides: what a profile calls it, and the test of likwid-bench.
#[derive(Debug, Clone)]
enum Limit {
    Peak { dtype: &'static str, isa: String, test: String },
    Bandwidth { level: String, access: &'static str, stores: &'static str, bytes: u64, test: String },
}

impl Limit {
    fn label(&self, threads: usize) -> String {
        match self {
            Self::Peak { dtype, isa, .. } => format!("{dtype} {isa}, {threads} threads"),
            Self::Bandwidth { level, access, stores, .. } if *stores == "none" => {
                format!("{level} {access}, {threads} threads")
            }
            Self::Bandwidth { level, access, stores, .. } => {
                format!("{level} {access}, {stores} stores, {threads} threads")
            }
        }
    }

    /// Our figure and its pace, from a profile.
    fn ours(&self, profile: &Value, threads: usize) -> anyhow::Result<Sample> {
        let of = |list: &str, field: &str, fits: &dyn Fn(&Value) -> bool| {
            let entries = profile[list].as_array().into_iter().flatten();
            let found = entries.filter(|entry| entry["threads"] == threads).find(|entry| fits(entry))?;
            Some(Sample { value: found[field].as_f64()?, pace: found["pace"].as_f64()? })
        };
        let found = match self {
            Self::Peak { dtype, isa, .. } => of("peaks", "gops", &|entry| {
                entry["dtype"] == *dtype && entry["isa"] == *isa && entry["mode"] == "burst"
            }),
            Self::Bandwidth { level, access, stores, .. } => of("bandwidth", "gbps", &|entry| {
                entry["level"] == *level && entry["access"] == *access && entry["stores"] == *stores
            }),
        };
        found.with_context(|| format!("the profile has no {}", self.label(threads)))
    }

    /// The figure of likwid-bench, with its pace.
    fn theirs(&self, threads: usize, gauge: &Path) -> anyhow::Result<Sample> {
        at_pace(gauge, threads, || match self {
            Self::Peak { test, .. } => {
                Ok(printed(&likwid_bench(test, 16 << 10, threads, None)?, "MFlops/s:")? / 1e3)
            }
            Self::Bandwidth { level, test, bytes, .. } => {
                let rate = |test: &String| match level.as_str() {
                    "L1" => bandwidth_without_starts(test, *bytes, threads),
                    _ => bandwidth(test, *bytes, threads),
                };
                let all = by_width(test).iter().map(rate).collect::<anyhow::Result<Vec<f64>>>()?;
                Ok(all.into_iter().fold(0.0, f64::max))
            }
        })
    }
}

/// A figure, and the pace of a loop in C that runs before and after it.
fn at_pace(
    gauge: &Path,
    threads: usize,
    measure: impl FnOnce() -> anyhow::Result<f64>,
) -> anyhow::Result<Sample> {
    let before = pace(gauge, threads, LOOK_SECONDS)?;
    let value = measure()?;
    let after = pace(gauge, threads, LOOK_SECONDS)?;
    Ok(Sample { value, pace: before.min(after) })
}

/// What likwid-bench prints of a test whose threads go round in so many bytes each, so often or for a second at least.
fn likwid_bench(test: &str, bytes: u64, threads: usize, rounds: Option<u64>) -> anyhow::Result<String> {
    // The working set is divided among the threads.
    let set = format!("S0:{}kB:{threads}", bytes * threads as u64 / 1000);
    let mut command = Command::new("likwid-bench");
    if let Some(rounds) = rounds {
        command.args(["-i", &rounds.to_string()]);
    }
    output(command.args(["-t", test, "-w", &set]))
}

/// GB/s of likwid-bench in a working set of so many bytes for each thread.
fn bandwidth(test: &str, bytes: u64, threads: usize) -> anyhow::Result<f64> {
    Ok(printed(&likwid_bench(test, bytes, threads, None)?, "MByte/s:")? / 1e3)
}

/// The same without the start of a pass, which takes longer than a small part of one.
fn bandwidth_without_starts(test: &str, bytes: u64, threads: usize) -> anyhow::Result<f64> {
    let sets = [bytes / 4, bytes / 2, bytes, bytes * 3 / 2];
    let passes: anyhow::Result<Vec<Pass>> =
        sets.into_iter().map(|bytes| Pass::fastest(test, bytes, threads)).collect();
    Ok(threads as f64 / nanoseconds_per_byte(&passes?))
}

/// One pass of a thread over its working set.
#[derive(Debug, Clone, Copy)]
struct Pass {
    bytes: f64,
    nanoseconds: f64,
}

impl Pass {
    /// The fastest of some runs of likwid-bench: what disturbs one makes it slower.
    fn fastest(test: &str, bytes: u64, threads: usize) -> anyhow::Result<Self> {
        let runs = (0..RUNS_IN_L1).map(|_| Self::of(test, bytes, threads));
        let runs = runs.collect::<anyhow::Result<Vec<Self>>>()?;
        runs.into_iter().min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds)).context("no run")
    }

    fn of(test: &str, bytes: u64, threads: usize) -> anyhow::Result<Self> {
        let rounds = BYTES_IN_L1 / bytes / threads as u64;
        let text = likwid_bench(test, bytes, threads, Some(rounds))?;
        let bytes = printed(&text, "Size per thread:")?;
        let gigabytes_per_second = printed(&text, "MByte/s:")? / 1e3;
        Ok(Self { bytes, nanoseconds: bytes * threads as f64 / gigabytes_per_second })
    }
}

/// The slope of the line through passes over several working sets: what a pass takes to start is not in it.
fn nanoseconds_per_byte(passes: &[Pass]) -> f64 {
    let mean = |of: &dyn Fn(&Pass) -> f64| passes.iter().map(of).sum::<f64>() / passes.len() as f64;
    let (bytes, nanoseconds) = (mean(&|pass| pass.bytes), mean(&|pass| pass.nanoseconds));
    let rise = mean(&|pass| (pass.bytes - bytes) * (pass.nanoseconds - nanoseconds));
    rise / mean(&|pass| (pass.bytes - bytes).powi(2))
}

/// GFLOP/s of f32 in registers by a loop in C.
fn pace(gauge: &Path, threads: usize, seconds: f64) -> anyhow::Result<f64> {
    let text = output(Command::new(gauge).args([threads.to_string(), seconds.to_string()]))?;
    printed(&text, "f32")
}

/// The number behind a name in the output of a peer.
fn printed(text: &str, name: &str) -> anyhow::Result<f64> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok());
    value.with_context(|| format!("no line `{name} NUMBER` in:\n{text}"))
}

/// The tests of likwid-bench in the vectors of a processor with the widest: those, and half as wide, which may be faster.
fn by_width(test: &str) -> Vec<String> {
    let mut tests = vec![test.to_owned()];
    if test.contains("avx512") {
        tests.push(test.replace("avx512", "avx"));
    }
    tests
}

/// The widest instructions that both sides have.
fn widest(profile: &Value) -> anyhow::Result<(&'static str, String)> {
    let isa = |name: &str| {
        let peaks = profile["peaks"].as_array().into_iter().flatten();
        let all = peaks.filter_map(|peak| peak["isa"].as_str());
        let mut own = all.filter(|isa| isa.to_lowercase().replace(['-', '_'], "").starts_with(name));
        own.next().map(str::to_owned)
    };
    for (name, suffix) in [("avx512", "avx512"), ("avx2", "avx")] {
        if let Some(isa) = isa(name) {
            return Ok((suffix, isa));
        }
    }
    bail!("likwid-bench and the profile have no instructions in common")
}

/// What is compared: peaks of f32 and f64, and every level by every access.
fn limits(profile: &Value) -> anyhow::Result<Vec<Limit>> {
    let (suffix, isa) = widest(profile)?;
    let peak =
        |dtype, name: &str| Limit::Peak { dtype, isa: isa.clone(), test: format!("{name}_{suffix}_fma") };
    let mut all = vec![peak("f32", "peakflops_sp"), peak("f64", "peakflops")];
    for entry in profile["bandwidth"].as_array().into_iter().flatten() {
        let (access, stores, test) = match (entry["access"].as_str(), entry["stores"].as_str()) {
            (Some("triad"), Some("ordinary")) => ("triad", "ordinary", format!("stream_{suffix}_fma")),
            // Past the caches is a way to main memory alone.
            (Some("triad"), Some("nontemporal")) if entry["level"] == "DRAM" => {
                ("triad", "nontemporal", format!("stream_mem_{suffix}"))
            }
            (Some("read"), _) => ("read", "none", format!("load_{suffix}")),
            _ => continue,
        };
        let level = entry["level"].as_str().context("a bandwidth without a level")?.to_owned();
        let bytes = entry["working_set_bytes"].as_u64().context("a bandwidth without a working set")?;
        let known = |limit: &Limit| {
            matches!(limit, Limit::Bandwidth { level: l, access: a, stores: s, .. }
                if *l == level && *a == access && *s == stores)
        };
        if !all.iter().any(known) {
            all.push(Limit::Bandwidth { level, access, stores, bytes, test });
        }
    }
    Ok(all)
}

/// A quick calibration of ours.
fn calibrated(stage: &Stage) -> anyhow::Result<Value> {
    let profile = stage.folder.path().join("profile.json");
    measured(&stage.warpt, &profile)?;
    Ok(serde_json::from_slice(&std::fs::read(&profile)?)?)
}

/// Writes a quick calibration to a file.
pub(super) fn measured(warpt: &Path, profile: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(warpt);
    command.args(["calibrate", "--quick", "--fusion-patterns", "linear", "--precision", "model", "--output"]);
    let done = command.arg(profile).output().with_context(|| warpt.display().to_string())?;
    // A machine too noisy to say has figures as well.
    if matches!(done.status.code(), Some(0 | 4)) {
        return Ok(());
    }
    bail!("warpt ended with {}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim())
}

fn likwid(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("likwid-bench", "likwid")?;
    tools::require("gcc", "gcc")?;
    let gauge = tools::compile("fma", &["-pthread"], stage.folder.path())?;
    let known = limits(&calibrated(stage)?)?;
    let threads = stage.threads;
    let theirs =
        || known.iter().map(|limit| Ok((limit.label(threads), limit.theirs(threads, &gauge)?))).collect();
    let ours = || {
        let profile = calibrated(stage)?;
        known.iter().map(|limit| Ok((limit.label(threads), limit.ours(&profile, threads)?))).collect()
    };
    let contest = Contest {
        name: "calibrate",
        peer: "likwid-bench",
        unit: UNIT,
        bound: BOUND,
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold_at_one_pace(stage.alternations)
}

fn fma(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("gcc", "gcc")?;
    let gauge = tools::compile("fma", &["-pthread"], stage.folder.path())?;
    let threads = stage.threads;
    let label = format!("f32, {threads} threads");
    let theirs = || Ok(Figures::from([(label.clone(), pace(&gauge, threads, 1.0)?)]));
    let ours = || {
        let profile = calibrated(stage)?;
        let (_, isa) = widest(&profile)?;
        let peak = Limit::Peak { dtype: "f32", isa, test: String::new() };
        Ok(Figures::from([(label.clone(), peak.ours(&profile, threads)?.value)]))
    };
    let contest = Contest {
        name: "calibrate",
        peer: "FMA loop in C",
        unit: UNIT,
        bound: BOUND,
        theirs: &theirs,
        ours: &ours,
    };
    // What tells the pace is compared itself: its fastest, which others only take away from.
    contest.hold_by(Statistic::Largest, stage.alternations * TURNS_OF_LOOP)
}

fn stream(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    tools::require("gcc", "gcc")?;
    let gauge = tools::compile("fma", &["-pthread"], stage.folder.path())?;
    let stream = tools::compile("stream", &["-fopenmp"], stage.folder.path())?;
    let threads = stage.threads;
    let triad = Limit::Bandwidth {
        level: "DRAM".to_owned(),
        access: "triad",
        stores: "ordinary",
        bytes: ARRAY_BYTES,
        test: String::new(),
    };
    let theirs = || {
        let sample = at_pace(&gauge, threads, || {
            let mut command = Command::new(&stream);
            command.arg(ARRAY_BYTES.to_string()).env("OMP_NUM_THREADS", threads.to_string());
            printed(&output(command.env("OMP_PROC_BIND", "true"))?, "triad_median_gbps")
        })?;
        Ok(Samples::from([(triad.label(threads), sample)]))
    };
    let ours = || Ok(Samples::from([(triad.label(threads), triad.ours(&calibrated(stage)?, threads)?)]));
    let contest = Contest {
        name: "calibrate",
        peer: "STREAM in C",
        unit: UNIT,
        bound: BOUND,
        theirs: &theirs,
        ours: &ours,
    };
    contest.hold_at_one_pace(stage.alternations)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile() -> Value {
        let bandwidth = |level: &str, access: &str, stores: &str, gbps: f64| json!({"level": level, "access": access, "stores": stores, "threads": 2, "working_set_bytes": 16384, "gbps": gbps, "pace": 170.0});
        json!({
            "peaks": [
                {"dtype": "f32", "isa": "avx2", "threads": 2, "mode": "burst", "gops": 90.0, "pace": 160.0},
                {"dtype": "f32", "isa": "avx512", "threads": 2, "mode": "burst", "gops": 170.0, "pace": 170.0},
            ],
            "bandwidth": [
                bandwidth("L1", "triad", "ordinary", 300.0),
                bandwidth("L1", "triad", "nontemporal", 10.0),
                bandwidth("L1", "read", "none", 400.0),
                bandwidth("DRAM", "triad", "nontemporal", 20.0),
                bandwidth("DRAM", "triad", "nontemporal", 20.0),
            ],
        })
    }

    #[test]
    fn every_level_is_compared_once_with_the_test_of_the_same_access() {
        let all = limits(&profile()).unwrap();
        let labels: Vec<String> = all.iter().map(|limit| limit.label(2)).collect();
        let expected = [
            "f32 avx512, 2 threads",
            "f64 avx512, 2 threads",
            "L1 triad, ordinary stores, 2 threads",
            "L1 read, 2 threads",
            "DRAM triad, nontemporal stores, 2 threads",
        ];
        assert_eq!(labels, expected);
        assert_eq!(all[0].ours(&profile(), 2).unwrap(), Sample { value: 170.0, pace: 170.0 });
        assert_eq!(all[3].ours(&profile(), 2).unwrap().value, 400.0);
        assert!(all[1].ours(&profile(), 2).unwrap_err().to_string().contains("no f64 avx512"));
        assert!(limits(&json!({"peaks": []})).is_err());
    }

    #[test]
    fn narrower_vectors_are_tried_too() {
        assert_eq!(by_width("stream_mem_avx512"), ["stream_mem_avx512", "stream_mem_avx"]);
        assert_eq!(by_width("load_avx"), ["load_avx"]);
    }

    #[test]
    fn what_a_pass_takes_to_start_is_not_in_its_rate() {
        let passes = [4e3, 8e3, 16e3, 24e3].map(|bytes| Pass { bytes, nanoseconds: 9.0 + bytes / 320.0 });
        assert!((1.0 / nanoseconds_per_byte(&passes) - 320.0).abs() < 1e-9);
    }

    #[test]
    fn figures_of_likwid_bench_are_read() {
        let text = "Time:\t\t1.0 sec\nMFlops/s:\t\t2210.33\nMByte/s:\t\t35365.29\n";
        assert_eq!(printed(text, "MByte/s:").unwrap(), 35365.29);
        assert!(printed(text, "GByte/s:").is_err());
    }
}
