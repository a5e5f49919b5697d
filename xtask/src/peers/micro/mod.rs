//! The micro suite beside a C compiler's loops, fio and iperf3.

mod cpu;
mod disk;
mod memory;
mod network;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::contests::{self, Destination, Named};
use super::tools;
use super::warpt::{self, find, find_metric};

/// Arguments of `cargo xtask peers micro`.
#[derive(Debug, Args)]
pub(crate) struct MicroArgs {
    /// Only these benchmarks: cpu, memory, disk, network
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// The folder for the disk benchmark's file
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// Put the figures into docs/benchmarking.md
    #[arg(long)]
    update_docs: bool,
}

/// What every contest needs.
struct Stage {
    warpt: PathBuf,
    /// For compiled programs; gone when the contests are over.
    folder: tempfile::TempDir,
    directory: PathBuf,
    alternations: usize,
}

const CONTESTS: [Named<Stage>; 4] =
    [("cpu", cpu::hold), ("memory", memory::hold), ("disk", disk::hold), ("network", network::hold)];

/// Runs all comparisons and prints their ratios.
pub(super) fn run(args: &MicroArgs) -> anyhow::Result<()> {
    contests::check(&CONTESTS, &args.only)?;
    let stage = Stage {
        warpt: tools::build_warpt()?,
        folder: tempfile::tempdir()?,
        directory: std::path::absolute(&args.directory)?,
        alternations: args.alternations.into(),
    };
    tools::require("gcc", "gcc")?;
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers micro",
        page: "docs/benchmarking.md",
        method: &contests::medians(args.alternations.into()),
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

impl Stage {
    /// Runs one benchmark of ours in one fresh process, and returns its metrics.
    fn measure(&self, benchmark: &str, seconds: f64, params: &[String]) -> anyhow::Result<Vec<Value>> {
        warpt::measure(&self.warpt, benchmark, seconds, params)
    }
}

/// The mean of its samples, for tools that give a mean.
fn find_mean(metrics: &[Value], name: &str, tags: &[(&str, &str)]) -> anyhow::Result<f64> {
    let metric = find_metric(metrics, name, tags)?;
    metric["statistics"]["mean"].as_f64().with_context(|| format!("{name} has no mean"))
}

/// The number that a program printed behind a name, one pair a line.
fn printed(text: &str, name: &str) -> anyhow::Result<f64> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok());
    value.with_context(|| format!("no line `{name} NUMBER` in:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_is_found_by_its_whole_name() {
        assert_eq!(printed("copy_best 1.5\ntriad_best 2.5\n", "triad_best").unwrap(), 2.5);
        assert!(printed("triad_best_gbps 2.5", "triad_best").is_err());
    }
}
