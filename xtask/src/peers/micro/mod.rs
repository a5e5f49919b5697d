//! The micro suite beside a C compiler's loops, fio and iperf3.

mod cpu;
mod disk;
mod memory;
mod network;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::table::{self, Row};
use super::tools;
use crate::command::{output, root};

/// The part of the page that the figures replace.
const MARKS: (&str, &str) = ("<!-- figures of `cargo xtask peers micro` -->", "<!-- end of figures -->");

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

type Contests = fn(&Stage) -> anyhow::Result<Vec<Row>>;
const CONTESTS: [(&str, Contests); 4] =
    [("cpu", cpu::hold), ("memory", memory::hold), ("disk", disk::hold), ("network", network::hold)];

/// Runs all comparisons and prints their ratios.
pub(super) fn run(args: &MicroArgs) -> anyhow::Result<()> {
    if let Some(name) = args.only.iter().find(|name| CONTESTS.iter().all(|(known, _)| known != name)) {
        bail!("--only {name}: there are {}", CONTESTS.map(|(known, _)| known).join(", "));
    }
    let stage = Stage {
        warpt: tools::build_warpt()?,
        folder: tempfile::tempdir()?,
        directory: std::path::absolute(&args.directory)?,
        alternations: args.alternations.into(),
    };
    tools::require("gcc", "gcc")?;
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (name, hold) in CONTESTS {
        if args.only.is_empty() || args.only.iter().any(|only| only == name) {
            match hold(&stage) {
                Ok(more) => rows.extend(more),
                Err(error) => failures.push(format!("{name}: {error:#}")),
            }
        }
    }
    let (table, holds) = table::markdown(&rows);
    println!("{table}");
    if !failures.is_empty() {
        bail!("no figures of {}", failures.join("; "));
    }
    if args.update_docs {
        update_docs(&root().join("docs/benchmarking.md"), &format!("{}\n{table}", stage.heading(args)?))?;
    }
    if !holds {
        bail!("a ratio is out of its bound");
    }
    Ok(())
}

impl Stage {
    /// Runs one benchmark of ours in one fresh process, and returns its metrics.
    fn measure(&self, benchmark: &str, seconds: f64, params: &[String]) -> anyhow::Result<Vec<Value>> {
        let mut command = Command::new(&self.warpt);
        command.args([
            "benchmark",
            "run",
            "--benchmark",
            benchmark,
            "--json",
            "--no-history",
            "--rounds",
            "1",
        ]);
        command.args(["--duration", &seconds.to_string()]);
        for param in params {
            command.args(["--param", param]);
        }
        let run: Value = serde_json::from_str(&output(&mut command)?)?;
        let result = &run["benchmarks"][0];
        match result["metrics"].as_array() {
            Some(metrics) if result["success"] == true => Ok(metrics.clone()),
            _ => bail!("{benchmark} gave no result: {}", result["error_message"]),
        }
    }

    /// The day and the machine that the figures are of.
    fn heading(&self, args: &MicroArgs) -> anyhow::Result<String> {
        let list: Value = serde_json::from_str(&output(Command::new(&self.warpt).args(["list", "--json"]))?)?;
        let day = output(Command::new("date").arg("+%Y-%m-%d"))?;
        let cpu = &list["hardware"]["cpu"];
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(format!(
            "{}, {}, {} threads; medians of {} runs of each side, in turn.\n",
            day.trim(),
            text(&cpu["model"]),
            text(&cpu["threads"]),
            args.alternations
        ))
    }
}

/// The value of the one metric with this name and these tags.
fn find(metrics: &[Value], name: &str, tags: &[(&str, &str)]) -> anyhow::Result<f64> {
    find_metric(metrics, name, tags)?["value"].as_f64().with_context(|| format!("{name} is no number"))
}

/// The mean of its samples, for tools that give a mean.
fn find_mean(metrics: &[Value], name: &str, tags: &[(&str, &str)]) -> anyhow::Result<f64> {
    let metric = find_metric(metrics, name, tags)?;
    metric["statistics"]["mean"].as_f64().with_context(|| format!("{name} has no mean"))
}

fn find_metric<'a>(metrics: &'a [Value], name: &str, tags: &[(&str, &str)]) -> anyhow::Result<&'a Value> {
    let fits = |metric: &&Value| {
        metric["name"] == name && tags.iter().all(|(tag, value)| metric["tags"][tag] == *value)
    };
    let found: Vec<_> = metrics.iter().filter(fits).collect();
    match found[..] {
        [metric] => Ok(metric),
        _ => bail!("{} metrics {name} with {tags:?}", found.len()),
    }
}

/// The number that a program printed behind a name, one pair a line.
fn printed(text: &str, name: &str) -> anyhow::Result<f64> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok());
    value.with_context(|| format!("no line `{name} NUMBER` in:\n{text}"))
}

fn update_docs(path: &Path, figures: &str) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    std::fs::write(path, replace_figures(&page, figures)?)?;
    eprintln!("figures written to {}", path.display());
    Ok(())
}

fn replace_figures(page: &str, figures: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(MARKS.0).context("the page has no place for the figures")?;
    let (_, after) = rest.split_once(MARKS.1).context("the place for the figures has no end")?;
    Ok(format!("{before}{}\n\n{}\n\n{}{after}", MARKS.0, figures.trim(), MARKS.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_only_their_part_of_the_page() {
        let page = format!("# Title\n{}\nold\n{}\nrest\n", MARKS.0, MARKS.1);
        let once = replace_figures(&page, "new").unwrap();
        assert_eq!(once, format!("# Title\n{}\n\nnew\n\n{}\nrest\n", MARKS.0, MARKS.1));
        assert_eq!(replace_figures(&once, "new").unwrap(), once);
        assert!(replace_figures("nothing", "new").is_err());
    }

    #[test]
    fn a_printed_number_is_found_by_its_whole_name() {
        assert_eq!(printed("copy_best 1.5\ntriad_best 2.5\n", "triad_best").unwrap(), 2.5);
        assert!(printed("triad_best_gbps 2.5", "triad_best").is_err());
    }
}
