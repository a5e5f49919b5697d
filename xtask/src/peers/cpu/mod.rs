//! Models on the CPU beside PyTorch, ONNX Runtime, OpenVINO and XLA.
//!
//! Each peer is a Python process of its own (`xtask/peers/cpu`); ours is `warpt run`. All have the same weights and
//! inputs, exported by PyTorch, and take turns.

pub(super) mod contest;
mod memory;
pub(super) mod ours;
mod parts;
pub(super) mod peer;
mod plot;
mod roofline;
mod scaling;
pub(super) mod stats;
mod tables;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value};

use super::sides::SidesArgs;
use super::{page, warpt};
use crate::command::{root, run as run_command};
use crate::python::target;
use ours::Ours;
use parts::{PARTS, Part};

/// Arguments of `cargo xtask peers cpu`.
#[derive(Debug, Args)]
pub(crate) struct CpuArgs {
    /// Only these parts: workloads, gemm, bf16, training, memory, scaling
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    part: Vec<String>,
    /// Only workloads whose names have this in them
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only these peers: eager, compile, ort, openvino, xla, and in bf16 eager-bf16, compile-bf16, autocast-bf16,
    /// openvino-bf16
    #[arg(long, value_name = "ENGINE", value_delimiter = ',')]
    engines: Vec<String>,
    /// How often everybody has a turn
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    sides: SidesArgs,
    /// Where the exported workloads are kept [default: target/peers]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Put the figures into docs/performance.md, and the plot beside it
    #[arg(long)]
    update_docs: bool,
}

/// What every part needs.
struct Stage {
    python: PathBuf,
    warpt: PathBuf,
    work: PathBuf,
    threads: usize,
    rounds: usize,
    seconds: f64,
    only: Option<String>,
    engines: Vec<String>,
}

/// What a part found.
struct Findings {
    /// Tables for people.
    text: String,
    json: Value,
    /// A picture beside the page: its name and content.
    picture: Option<(&'static str, String)>,
    /// Results that were wrong or missing.
    wrong: Vec<String>,
}

/// Runs the parts and prints their tables.
pub(super) fn run(args: &CpuArgs) -> anyhow::Result<()> {
    if let Some(name) = args.part.iter().find(|name| PARTS.iter().all(|part| part.name != *name)) {
        bail!("--part {name}: there are {}", PARTS.map(|part| part.name).join(", "));
    }
    args.sides.check()?;
    let stage = Stage::new(args)?;
    let heading = format!("{}; {} in use", warpt::machine(&stage.warpt)?, stage.threads);
    let mut all = Map::new();
    let mut wrong = Vec::new();
    for Part { name, measure } in PARTS {
        if !args.part.is_empty() && !args.part.iter().any(|part| part == name) {
            continue;
        }
        let found = measure(&stage)?;
        if !args.json {
            println!("{name}\n\n{}", found.text);
        }
        if args.update_docs {
            let mut figures = format!("{heading}.\n\n{}", found.text);
            if let Some((file, content)) = found.picture {
                std::fs::write(root().join("docs").join(file), content)?;
                figures += &format!("\n![the same as a plot]({file})\n");
            }
            page::update(&root().join("docs/performance.md"), &format!("peers cpu --part {name}"), &figures)?;
        }
        all.insert(name.to_owned(), found.json);
        wrong.extend(found.wrong);
    }
    if args.json {
        all.insert("machine".to_owned(), heading.into());
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    if !wrong.is_empty() {
        bail!("wrong or missing results of ours:\n{}", wrong.join("\n"));
    }
    Ok(())
}

/// A program of the Python side, which finds the workloads and the zoo.
pub(super) fn program(python: &Path, name: &str) -> Command {
    let folder = root().join("xtask/peers");
    let mut command = Command::new(python);
    command.env("PYTHONPATH", folder.join("zoo")).arg(folder.join("cpu").join(name));
    command
}

impl Stage {
    fn new(args: &CpuArgs) -> anyhow::Result<Self> {
        let work = args.work.clone().unwrap_or_else(|| target().join("peers"));
        Ok(Self {
            python: args.sides.python()?,
            warpt: args.sides.warpt()?,
            work: std::path::absolute(work)?,
            threads: args.sides.threads.into(),
            rounds: args.rounds.into(),
            seconds: args.sides.seconds,
            only: args.only.clone(),
            engines: args.engines.clone(),
        })
    }

    /// Those of the workloads that are asked for.
    fn chosen<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let wanted = |name: &&&str| self.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
        names.iter().filter(wanted).copied().collect()
    }

    /// Exports workloads that are not there yet.
    fn export(&self, names: &[&str], onnx: bool) -> anyhow::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut command = program(&self.python, "export.py");
        command.arg(&self.work).args(names);
        if !onnx {
            command.arg("--no-onnx");
        }
        run_command(&mut command)
    }

    /// The folder of a workload.
    fn folder(&self, workload: &str) -> PathBuf {
        self.work.join(workload)
    }

    /// Our side of a workload.
    fn ours<'s>(&'s self, workload: &str, precision: &'s str, threads: usize) -> Ours<'s> {
        Ours { warpt: &self.warpt, folder: self.folder(workload), device: "cpu", threads, precision }
    }
}
