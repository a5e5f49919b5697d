//! The biobench suite beside the tools that laboratories run, in turn, on the same files with the same threads.
//!
//! `warpt` exports the inputs of a benchmark once; each turn then runs the peer on those files and `warpt` on the same data.
//! Peers that are libraries run in Python without counting its start; programs count from their start to their end, reading
//! and writing files included, which is how they are used.

mod align;
mod assemble;
mod consensus;
mod kmers;
mod mapping;
mod proteins;
mod variants;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;
use warpforge_bio::sets::SETS;

use super::contests::{self, Destination, Named};
use super::table::Figures;
use super::tools;
use super::warpt::{self, find};
use crate::command::{output, root};
use crate::python;

/// Arguments of `cargo xtask peers bio`.
#[derive(Debug, Args)]
pub(crate) struct BioArgs {
    /// Only these benchmarks: align, map, kmers, variants, assemble, consensus, proteins
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// The size of the workloads: small, medium or large
    #[arg(long, default_value = "small")]
    size: String,
    /// Threads of both sides [default: all]
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Data sets or files instead of the usual data, as BENCHMARK=DATA (see `cargo xtask data`)
    #[arg(long, value_name = "BENCHMARK=DATA")]
    data: Vec<String>,
    /// Put the figures into docs/benchmarks/biobench.md
    #[arg(long)]
    update_docs: bool,
}

/// The data of a contest.
struct Source {
    /// What the table calls it: `generated`, the name of a data set, or that of a file.
    label: String,
    /// The file; none for generated data.
    path: Option<String>,
}

impl Source {
    /// A data set, fetched if need be.
    fn set(name: &str) -> anyhow::Result<Self> {
        let set = SETS.iter().find(|set| set.name == name).with_context(|| format!("no data set {name}"))?;
        Ok(Self { label: name.to_owned(), path: Some(crate::data::fetch(set)?.display().to_string()) })
    }

    /// What `--data` names: a data set or a file.
    fn given(data: &str) -> anyhow::Result<Self> {
        if SETS.iter().any(|set| set.name == data) {
            return Self::set(data);
        }
        let path = std::path::absolute(data)?;
        let label = path.file_name().with_context(|| format!("--data {data} names no file"))?;
        Ok(Self { label: label.to_string_lossy().into_owned(), path: Some(path.display().to_string()) })
    }

    /// The parameters of a benchmark with this data.
    fn with<'a>(&'a self, own: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        own.iter().copied().chain(self.path.iter().map(|path| ("data", path.as_str()))).collect()
    }
}

/// What every contest needs.
struct Stage {
    warpt: PathBuf,
    python: PathBuf,
    /// For exported data; gone when the contests are over.
    folder: tempfile::TempDir,
    alternations: usize,
    size: String,
    threads: usize,
    data: Vec<(String, String)>,
}

const CONTESTS: [Named<Stage>; 7] = [
    ("align", align::hold),
    ("map", mapping::hold),
    ("kmers", kmers::hold),
    ("variants", variants::hold),
    ("assemble", assemble::hold),
    ("consensus", consensus::hold),
    ("proteins", proteins::hold),
];

/// The programs and their Debian packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("minimap2", "minimap2"),
    ("kmc", "kmc"),
    ("jellyfish", "jellyfish"),
    ("bcftools", "bcftools"),
    ("samtools", "samtools"),
    ("megahit", "megahit"),
    ("diamond", "diamond-aligner"),
];

/// Runs all comparisons and prints their ratios.
pub(super) fn run(args: &BioArgs) -> anyhow::Result<()> {
    contests::check(&CONTESTS, &args.only)?;
    for (program, package) in PROGRAMS {
        tools::require(program, package)?;
    }
    let python = match python::environment(&python::BIO)? {
        Ok(python) => python,
        Err(reason) => bail!("the peers from PyPI cannot run: {reason}"),
    };
    let all = std::thread::available_parallelism().map_or(1, Into::into);
    let data = args.data.iter().map(|pair| {
        let (name, data) = pair.split_once('=').with_context(|| format!("--data {pair}: BENCHMARK=DATA"))?;
        Ok((name.to_owned(), data.to_owned()))
    });
    let stage = Stage {
        warpt: tools::build_warpt()?,
        python,
        folder: tempfile::tempdir()?,
        alternations: args.alternations.into(),
        size: args.size.clone(),
        threads: if args.threads == 0 { all } else { args.threads },
        data: data.collect::<anyhow::Result<_>>()?,
    };
    let medians = contests::medians(stage.alternations);
    let method = format!("size {}, {} threads; {medians}", stage.size, stage.threads);
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers bio",
        page: "docs/benchmarks/biobench.md",
        method: &method,
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

impl Stage {
    /// The data of a benchmark: what `--data` says, or generated data and these sets.
    fn sources(&self, benchmark: &str, sets: &[&str]) -> anyhow::Result<Vec<Source>> {
        if let Some((_, data)) = self.data.iter().find(|(name, _)| name == benchmark) {
            return Ok(vec![Source::given(data)?]);
        }
        let generated = Source { label: "generated".to_owned(), path: None };
        std::iter::once(Ok(generated)).chain(sets.iter().map(|name| Source::set(name))).collect()
    }

    /// The parameters of a benchmark: size, threads and its own.
    fn params(&self, own: &[(&str, &str)]) -> Vec<String> {
        let mut params = vec![format!("size={}", self.size), format!("threads={}", self.threads)];
        params.extend(own.iter().map(|(name, value)| format!("{name}={value}")));
        params
    }

    /// Runs one benchmark of ours in one fresh process for about a run, and returns its metrics.
    fn measure(&self, benchmark: &str, own: &[(&str, &str)]) -> anyhow::Result<Vec<Value>> {
        warpt::measure(&self.warpt, benchmark, 1.0, &self.params(own))
    }

    /// One metric of a benchmark of ours, as a figure with this label.
    fn figure(
        &self,
        label: &str,
        benchmark: &str,
        own: &[(&str, &str)],
        metric: &str,
    ) -> anyhow::Result<Figures> {
        Ok(Figures::from([(label.to_owned(), find(&self.measure(benchmark, own)?, metric, &[])?)]))
    }

    /// Has a benchmark write its inputs and results to a folder of its own; with the metrics of that run.
    fn export(&self, benchmark: &str, own: &[(&str, &str)]) -> anyhow::Result<(PathBuf, Vec<Value>)> {
        let folder = tempfile::Builder::new().prefix(benchmark).tempdir_in(self.folder.path())?.keep();
        let mut params = self.params(own);
        params.push(format!("export={}", folder.display()));
        let metrics = warpt::measure(&self.warpt, benchmark, 0.1, &params)?;
        Ok((folder, metrics))
    }

    /// Runs a Python program of `xtask/peers` on a folder; the last line that it prints is a JSON object.
    fn python(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.python);
        command.arg(root().join("xtask/peers").join(program)).args(arguments);
        let text = output(&mut command)?;
        let line = text.lines().last().with_context(|| format!("{program} printed nothing"))?;
        serde_json::from_str(line).with_context(|| format!("{program} printed {line}"))
    }
}

/// Seconds of a program from its start to its end.
fn seconds(command: &mut Command) -> anyhow::Result<f64> {
    let began = Instant::now();
    output(command)?;
    Ok(began.elapsed().as_secs_f64())
}

/// The time of a stage of ours.
fn stage_seconds(metrics: &[Value], stage: &str) -> anyhow::Result<f64> {
    find(metrics, "stage_time", &[("stage", stage)])
}

/// A number of a JSON object.
fn number(value: &Value, name: &str) -> anyhow::Result<f64> {
    value[name].as_f64().with_context(|| format!("no number `{name}` in {value}"))
}

/// Bases of the sequences in a file.
fn letters(path: &Path) -> anyhow::Result<f64> {
    let records = warpforge_bio::formats::read_nucleotides(path)?;
    Ok(records.iter().map(|record| record.codes.len()).sum::<usize>() as f64)
}
