//! Linear layers with quantized weights on the CPU beside torchao, OpenVINO, ONNX Runtime and llama.cpp, and whole models beside torchao.
//!
//! All have the same weights and inputs and the same recipe, and take turns. Outputs are compared with the layer in f64, those of models
//! with the model in f32.

mod models;
mod tables;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::cpu::contest::{self, Row};
use super::cpu::ours::Ours;
use super::cpu::peer::Peer;
use super::cpu::program;
use super::cpu::stats::median;
use super::sides::SidesArgs;
use super::{limits, page, warpt};
use crate::command::{root, run as run_command};
use crate::python::{QUANT, target};
use tables::{Extra, Judged, Line};

/// Arguments of `cargo xtask peers quant`.
#[derive(Debug, Args)]
pub(crate) struct QuantArgs {
    /// Only these parts: int8dq, decode, accuracy, models
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    part: Vec<String>,
    /// Only layers (ROWSxCOLUMNSxDEPTH) and models whose names have this in them
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// How often everybody has a turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    sides: SidesArgs,
    /// Where the exported layers are kept [default: target/peers]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Put the figures into docs/benchmarks/microbench.md
    #[arg(long)]
    update_docs: bool,
}

/// Rows, columns, depth: the seed file's shapes, then the layers of BERT-base and BERT-large.
const MANY_ROWS: [&str; 10] = [
    "1024x1024x1024",
    "2048x1024x4096",
    "4096x1024x4096",
    "128x768x768",
    "128x2304x768",
    "128x3072x768",
    "128x768x3072",
    "128x1024x1024",
    "128x4096x1024",
    "128x1024x4096",
];
/// One row, as in decoding. The last is larger than caches in 4 bits too.
const ONE_ROW: [&str; 4] = ["1x3072x768", "1x4096x1024", "1x4096x4096", "1x16384x8192"];
/// Layers whose accuracy is compared.
const COMPARED: [&str; 4] = ["1024x1024x1024", "128x3072x768", "128x768x3072", "1x4096x4096"];
const RECIPES: [&str; 7] =
    ["int8wo", "int8dq", "int4wo-128", "int4wo-128-hqq", "float8wo", "float8dq-tensor", "float8dq-row"];

/// What every part needs.
struct Stage {
    python: PathBuf,
    warpt: PathBuf,
    work: PathBuf,
    threads: usize,
    rounds: usize,
    seconds: f64,
    only: Option<String>,
}

/// A part: how it is asked for, and what measures it.
type Part = (&'static str, fn(&Stage) -> anyhow::Result<Judged>);

const PARTS: [Part; 4] =
    [("int8dq", many_rows), ("decode", one_row), ("accuracy", accuracy), ("models", models::models)];

/// Runs the parts and prints their tables; fails where a bound is missed.
pub(super) fn run(args: &QuantArgs) -> anyhow::Result<()> {
    if let Some(name) = args.part.iter().find(|name| PARTS.iter().all(|(part, _)| part != name)) {
        bail!("--part {name}: there are {}", PARTS.map(|(part, _)| part).join(", "));
    }
    args.sides.check()?;
    let work = args.work.clone().unwrap_or_else(|| target().join("peers"));
    let stage = Stage {
        python: args.sides.python_with(&QUANT)?,
        warpt: args.sides.warpt()?,
        work: std::path::absolute(work)?,
        threads: args.sides.threads.into(),
        rounds: args.rounds.into(),
        seconds: args.sides.seconds,
        only: args.only.clone(),
    };
    let heading = format!("{}; {} in use", warpt::machine(&stage.warpt)?, stage.threads);
    let mut missed = Vec::new();
    for (name, measure) in PARTS {
        if !args.part.is_empty() && !args.part.iter().any(|part| part == name) {
            continue;
        }
        let found = measure(&stage)?;
        println!("{name}\n\n{}", found.text);
        if args.update_docs {
            let task = format!("peers quant --part {name}");
            let figures = format!("{heading}.\n\n{}", found.text);
            page::update(&root().join("docs/benchmarks/microbench.md"), &task, &figures)?;
        }
        missed.extend(found.missed);
    }
    if !missed.is_empty() {
        bail!("out of bounds:\n{}", missed.join("\n"));
    }
    Ok(())
}

impl Stage {
    /// Whether a layer or a model is asked for.
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Exports workloads that are not there yet.
    fn export(&self, names: &[String]) -> anyhow::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut command = program(&self.python, "export.py");
        run_command(command.arg(&self.work).args(names).arg("--no-onnx"))
    }

    /// The workloads of layers, exported.
    fn workloads(&self, layers: &[&str]) -> anyhow::Result<Vec<String>> {
        let wanted = layers.iter().filter(|layer| self.wants(layer));
        let names: Vec<String> = wanted.map(|layer| format!("outlier_linear_{layer}")).collect();
        self.export(&names)?;
        Ok(names)
    }

    fn ours<'s>(&'s self, workload: &str, precision: &'s str) -> Ours<'s> {
        Ours {
            warpt: &self.warpt,
            folder: self.work.join(workload),
            device: "cpu",
            threads: self.threads,
            precision,
        }
    }

    /// Layers by every peer of a recipe and by us, so many rounds.
    fn hold(
        &self,
        recipe: &str,
        engines: &[&str],
        layers: &[&str],
        rounds: usize,
    ) -> anyhow::Result<Vec<Row>> {
        let names = self.workloads(layers)?;
        let start = |engine: &&str| {
            let named = format!("{engine}:{recipe}");
            Peer::start(&self.python, &named, &self.work, self.threads)
        };
        let mut peers = engines.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        for peer in &mut peers {
            peer.engine = peer.engine.trim_end_matches(&format!(":{recipe}")).to_owned();
        }
        names
            .iter()
            .map(|name| contest::hold(name, &mut peers, &self.ours(name, recipe), rounds, self.seconds))
            .collect()
    }

    /// How many times as long a layer takes us in bf16, in turn.
    fn against_bf16(&self, workload: &str, recipe: &str) -> anyhow::Result<f64> {
        let (quantized, bf16) = (self.ours(workload, recipe), self.ours(workload, "bf16"));
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..self.rounds {
            for (ours, times) in [&quantized, &bf16].iter().zip(&mut times) {
                let one_ms = times.last().copied().unwrap_or(10.0);
                times.push(median(&ours.times(self.seconds, one_ms)?));
            }
        }
        Ok(median(&times[1]) / median(&times[0]))
    }

    /// What all cores read from main memory, in GB/s.
    fn read_bandwidth(&self) -> anyhow::Result<f64> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("profile.json");
        limits::measured(&self.warpt, &file)?;
        let profile: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        let entries = profile["bandwidth"].as_array().into_iter().flatten();
        let reads = entries.filter(|entry| entry["level"] == "DRAM" && entry["access"] == "read");
        let best = reads.filter_map(|entry| entry["gbps"].as_f64()).reduce(f64::max);
        best.context("the calibration has no bandwidth of reading main memory")
    }
}

/// int8dq of many rows, beside peers and our own bf16.
fn many_rows(stage: &Stage) -> anyhow::Result<Judged> {
    let rows = stage.hold("int8dq", &["torchao", "openvino", "ort"], &MANY_ROWS, stage.rounds)?;
    let lines = rows.iter().map(|row| {
        let extra = stage.against_bf16(&row.workload, "int8dq").map(Extra::TimesBf16)?;
        Ok(Line { recipe: "int8dq", row, extra: Some(extra) })
    });
    let lines = lines.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(tables::speed(&lines, tables::Bounds { each: 0.9, mean: 1.1, extra: 1.4 }))
}

/// Weight-only recipes of one row, beside peers and the bandwidth of main memory.
fn one_row(stage: &Stage) -> anyhow::Result<Judged> {
    let gbps = stage.read_bandwidth()?;
    let mut held = Vec::new();
    for recipe in ["int8wo", "int4wo-128"] {
        let engines = ["torchao", "openvino", "ort", "llama.cpp"];
        held.extend(
            stage.hold(recipe, &engines, &ONE_ROW, stage.rounds)?.into_iter().map(|row| (recipe, row)),
        );
    }
    let line = |(recipe, row): &'_ (&'static str, Row)| {
        let bytes = tables::weight_bytes(recipe, &row.workload);
        // What fits the caches is not read from memory.
        let extra = bytes.filter(|&bytes| bytes > CACHED).zip(row.our_median());
        extra.map(|(bytes, ms)| Extra::OfBandwidth(bytes / (ms * 1e6) / gbps))
    };
    let lines: Vec<Line<'_>> =
        held.iter().map(|held| Line { recipe: held.0, row: &held.1, extra: line(held) }).collect();
    let mut found = tables::speed(&lines, tables::Bounds { each: 1.0, mean: 1.0, extra: 0.75 });
    found.text += &format!("\nReading main memory, all cores: {gbps:.1} GB/s.\n");
    Ok(found)
}

/// Bytes that caches may hold.
const CACHED: f64 = 60e6;

/// Signal to noise of all recipes beside torchao's.
fn accuracy(stage: &Stage) -> anyhow::Result<Judged> {
    let mut held = Vec::new();
    for recipe in RECIPES {
        let rows = stage.hold(recipe, &["torchao"], &COMPARED, 0)?;
        held.extend(rows.into_iter().map(|row| (recipe, row)));
    }
    let lines: Vec<Line<'_>> = held.iter().map(|(recipe, row)| Line { recipe, row, extra: None }).collect();
    Ok(tables::accuracy(&lines))
}
