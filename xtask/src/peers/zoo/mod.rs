//! A catalogue of public models at their published sizes beside the peers: which are slow, and in which kernels.
//!
//! What has been measured is kept in the work folder; the same command goes on where it was stopped.

mod kernels;
mod results;
mod table;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use self::results::{Results, Row};
use super::cpu::ours::Ours;
use super::cpu::peer::Peer;
use super::cpu::{contest, program};
use super::sides::SidesArgs;
use super::{page, warpt};
use crate::command::{output, root, run as run_command};
use crate::python::target;

/// Which batch sizes of each model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Batch {
    /// One
    One,
    /// The one for throughput
    Throughput,
    /// Both
    Both,
}

/// Where everybody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Device {
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
}

impl Device {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

/// In which precision everybody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precision {
    F32,
    /// On a GPU
    Tf32,
    Bf16,
    /// On a GPU
    F16,
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// What `warpt run --precision` calls it.
    fn ours(self) -> &'static str {
        match self {
            Self::F32 => "model",
            other => other.name(),
        }
    }

    /// The peers on a device; none where the device has no such precision.
    fn engines(self, device: Device) -> Vec<String> {
        let names: &[&str] = match (device, self) {
            (Device::Cpu, Self::F32) => &["eager", "compile", "ort", "openvino"],
            (Device::Cpu, Self::Bf16) => &["eager-bf16", "compile-bf16", "autocast-bf16", "openvino-bf16"],
            (Device::Cpu, Self::Tf32 | Self::F16) => &[],
            (Device::Cuda, _) => {
                return ["eager", "compile", "graphs"]
                    .map(|way| format!("cuda-{way}-{}", self.name()))
                    .into();
            }
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// How far our outputs may be from PyTorch's f32, as a part of their scale.
    fn bound(self) -> f64 {
        match self {
            Self::F32 => 1e-5,
            Self::Tf32 | Self::F16 => 1e-2,
            Self::Bf16 => 5e-2,
        }
    }
}

/// Arguments of `cargo xtask peers zoo`.
#[derive(Debug, Args)]
pub(crate) struct ZooArgs {
    /// Where everybody runs
    #[arg(long, value_enum, default_value = "cpu")]
    device: Device,
    /// In which precision everybody runs
    #[arg(long, value_enum, default_value = "f32")]
    precision: Precision,
    /// Only models whose names have one of these in them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Which batch sizes
    #[arg(long, value_enum, default_value = "both")]
    batch: Batch,
    /// Only these peers
    #[arg(long, value_name = "ENGINE", value_delimiter = ',')]
    engines: Vec<String>,
    /// How often everybody has a turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    rounds: u16,
    #[command(flatten)]
    sides: SidesArgs,
    /// Where results and exported models are [default: target/zoo]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Keep the exported models: up to 3 GB each
    #[arg(long)]
    keep: bool,
    /// Measure again what has been measured
    #[arg(long)]
    again: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Put the table into docs/performance.md
    #[arg(long)]
    update_docs: bool,
}

/// A model and its two batch sizes, as `zoo.py` lists them.
#[derive(Debug, Deserialize)]
struct Model {
    name: String,
    batches: [usize; 2],
}

impl Model {
    /// The workloads that are asked for: NAME_bBATCH.
    fn workloads(&self, batch: Batch) -> Vec<String> {
        let [one, throughput] = self.batches;
        let mut batches = match batch {
            Batch::One => vec![one],
            Batch::Throughput => vec![throughput],
            Batch::Both => vec![one, throughput],
        };
        batches.dedup();
        batches.iter().map(|batch| format!("{}_b{batch}", self.name)).collect()
    }
}

/// What every model needs.
struct Stage {
    python: PathBuf,
    warpt: PathBuf,
    work: PathBuf,
    engines: Vec<String>,
}

/// Measures what has not been, and prints the table.
pub(super) fn run(args: &ZooArgs) -> anyhow::Result<()> {
    args.sides.check()?;
    let stage = Stage::new(args)?;
    let workloads = stage.workloads(args)?;
    std::fs::create_dir_all(&stage.work)?;
    let mut results = Results::open(&stage.work.join(args.results()))?;
    let mut peers = Vec::new();
    for (at, workload) in workloads.iter().enumerate() {
        if results.has(workload) && !args.again {
            continue;
        }
        eprintln!("{workload}: {} of {}", at + 1, workloads.len());
        if peers.is_empty() {
            peers = stage.start_peers(args)?;
        }
        let row = stage.contest(args, workload, &mut peers).unwrap_or_else(|error| {
            // A peer that ended, for want of memory say, is started again for the next model.
            peers.clear();
            Row::failed(workload, format!("{error:#}"))
        });
        eprintln!("{}", row.line());
        results.keep(row)?;
        if !args.keep {
            remove(&stage.work.join(workload))?;
        }
    }
    let rows: Vec<&Row> = workloads.iter().filter_map(|workload| results.row(workload)).collect();
    let text = table::table(&rows, args.precision.bound());
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("{text}");
    }
    if args.update_docs {
        let heading = stage.heading(args)?;
        let task = format!("peers zoo --device {} --precision {}", args.device.name(), args.precision.name());
        page::update(&root().join("docs/performance.md"), &task, &format!("{heading}.\n\n{text}"))?;
    }
    let wrong: Vec<String> = rows.iter().filter_map(|row| row.wrong(args.precision.bound())).collect();
    if !wrong.is_empty() {
        bail!("wrong or missing results of ours:\n{}", wrong.join("\n"));
    }
    Ok(())
}

impl ZooArgs {
    /// The file that results are kept in.
    fn results(&self) -> String {
        format!("{}-{}.json", self.device.name(), self.precision.name())
    }
}

impl Stage {
    fn new(args: &ZooArgs) -> anyhow::Result<Self> {
        let all = args.precision.engines(args.device);
        let (device, precision) = (args.device.name(), args.precision.name());
        if all.is_empty() {
            bail!("--precision {precision}: not on --device {device}");
        }
        if let Some(name) = args.engines.iter().find(|name| !all.contains(name)) {
            bail!("--engines {name}: on {device} in {precision} there are {}", all.join(", "));
        }
        let asked = |engine: &String| args.engines.is_empty() || args.engines.contains(engine);
        let work = std::path::absolute(args.work.clone().unwrap_or_else(|| target().join("zoo")))?;
        let engines = all.into_iter().filter(asked).collect();
        Ok(Self { python: args.sides.python()?, warpt: args.sides.warpt()?, work, engines })
    }

    /// The workloads that are asked for, in the catalogue's order.
    fn workloads(&self, args: &ZooArgs) -> anyhow::Result<Vec<String>> {
        let text = output(Command::new(&self.python).arg(root().join("xtask/peers/zoo/zoo.py")))?;
        let models: Vec<Model> = serde_json::from_str(&text).context("the list of models")?;
        let asked =
            |name: &String| args.only.is_empty() || args.only.iter().any(|only| name.contains(only.as_str()));
        let found: Vec<String> =
            models.iter().flat_map(|model| model.workloads(args.batch)).filter(asked).collect();
        if found.is_empty() {
            bail!("--only {}: no model of the catalogue has that in its name", args.only.join(","));
        }
        Ok(found)
    }

    /// The day and the hardware.
    fn heading(&self, args: &ZooArgs) -> anyhow::Result<String> {
        let machine = warpt::machine(&self.warpt)?;
        Ok(match args.device {
            Device::Cpu => format!("{machine}; {} in use", args.sides.threads),
            Device::Cuda => format!("{machine}; {}", warpt::gpu(&self.warpt)?),
        })
    }

    fn start_peers(&self, args: &ZooArgs) -> anyhow::Result<Vec<Peer>> {
        let start =
            |engine: &String| Peer::start(&self.python, engine, &self.work, args.sides.threads.into());
        self.engines.iter().map(start).collect()
    }

    /// Exports one model, lets everybody run it in turn, and looks at our kernels where a peer is faster.
    fn contest(&self, args: &ZooArgs, workload: &str, peers: &mut [Peer]) -> anyhow::Result<Row> {
        let mut export = program(&self.python, "export.py");
        export.arg(&self.work).arg(workload);
        if !self.engines.iter().any(|engine| engine.starts_with("ort") || engine.starts_with("openvino")) {
            export.arg("--no-onnx");
        }
        run_command(&mut export).context("not exported")?;
        let folder = self.work.join(workload);
        let threads = args.sides.threads.into();
        let (device, precision) = (args.device.name(), args.precision.ours());
        let ours = Ours { warpt: &self.warpt, folder, device, threads, precision };
        let row = contest::hold(workload, peers, &ours, args.rounds.into(), args.sides.seconds)?;
        let mut row = Row::of(&row);
        if row.ratio.is_some_and(|ratio| ratio < 1.0) {
            row.kernels = kernels::slowest(&ours)?;
        }
        Ok(row)
    }
}

fn remove(folder: &std::path::Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| folder.display().to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_every_precision_and_a_cpu_two() {
        let all = |device| Precision::value_variants().iter().map(move |precision| precision.engines(device));
        assert!(all(Device::Cuda).all(|engines| engines.len() == 3));
        assert_eq!(all(Device::Cpu).filter(|engines| !engines.is_empty()).count(), 2);
        assert_eq!(Precision::Tf32.engines(Device::Cuda)[2], "cuda-graphs-tf32");
    }

    #[test]
    fn a_model_has_a_workload_for_each_batch_size() {
        let model = |batches| Model { name: "gcn".to_owned(), batches };
        assert_eq!(model([1, 8]).workloads(Batch::Both), ["gcn_b1", "gcn_b8"]);
        assert_eq!(model([1, 8]).workloads(Batch::Throughput), ["gcn_b8"]);
        assert_eq!(model([1, 1]).workloads(Batch::Both), ["gcn_b1"]);
    }
}
