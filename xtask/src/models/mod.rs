//! `cargo xtask models`: PyTorch's models, exported, imported and run, beside what PyTorch computes.

mod device;
mod judge;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use warpforge_runtime::Tier;

use crate::command::{cargo, output, root, run};
use crate::python::{MODELS, environment, target};
use device::OnDevice;
use judge::{golden, judge};
use table::{Row, Verdict};
use warpforge_tensor::io::safetensors;

/// Arguments of `cargo xtask models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Models of the catalogue in `xtask/models` [default: all]
    names: Vec<String>,
    /// Where the archives are, or are to be: MODEL/FORM/model.pt2 [default: target/models]
    #[arg(long, value_name = "DIR")]
    archives: Option<PathBuf>,
    /// Take the archives that are there; export nothing
    #[arg(long)]
    no_export: bool,
    /// The profile of cargo to build warpt with
    #[arg(long, default_value = "release", conflicts_with = "warpt")]
    profile: String,
    /// The warpt to run, where nothing is to be built
    #[arg(long, value_name = "PROGRAM")]
    warpt: Option<PathBuf>,
    /// Where warpt runs; beside a GPU's results stand those of PyTorch on the same GPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// The tiers to run with [default: correctness on the CPU, all on a GPU]
    #[arg(long, value_name = "TIER", value_delimiter = ',')]
    tier: Vec<Tier>,
    /// A Python that has PyTorch with the GPU, and safetensors
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: PathBuf,
}

/// Where and how a model is run.
struct Runs<'a> {
    warpt: &'a Path,
    archives: &'a Path,
    device: &'a str,
    tiers: &'a [Tier],
}

/// Exports the models, runs each, and prints how far its results are from PyTorch's.
pub(crate) fn run_models(args: &ModelsArgs) -> anyhow::Result<()> {
    let archives = args.archives.clone().unwrap_or_else(|| target().join("models"));
    if !args.no_export {
        export(&archives, &args.names)?;
    }
    let warpt = match &args.warpt {
        Some(warpt) => std::path::absolute(warpt)?,
        None => build(&args.profile)?,
    };
    let on_cpu = args.device == "cpu";
    let tiers = match args.tier.as_slice() {
        [] if on_cpu => &[Tier::Correctness],
        [] => Tier::ALL.as_slice(),
        tiers => tiers,
    };
    let runs = Runs { warpt: &warpt, archives: &archives, device: &args.device, tiers };
    let mut peer = if on_cpu { None } else { Some(OnDevice::start(&args.python)?) };
    let mut rows = Vec::new();
    for archive in find(&archives, &args.names)? {
        for row in runs.try_model(&archive, peer.as_mut())? {
            println!("{row}");
            rows.push(row);
        }
    }
    println!("{}", table::summary(&rows));
    if rows.is_empty() {
        bail!("there is no MODEL/FORM/model.pt2 in {}", archives.display());
    }
    if rows.iter().any(|row| !matches!(row.verdict, Verdict::Pass { .. } | Verdict::Skipped { .. })) {
        bail!("not every model computes what PyTorch computes");
    }
    if rows.iter().all(|row| matches!(row.verdict, Verdict::Skipped { .. })) {
        bail!("nothing was compared");
    }
    Ok(())
}

fn export(archives: &Path, names: &[String]) -> anyhow::Result<()> {
    let python = match environment(&MODELS)? {
        Ok(python) => python,
        Err(reason) => bail!("the models cannot be exported: {reason}"),
    };
    let script = root().join("xtask/models/export.py");
    run(Command::new(python).arg(script).arg(archives).args(names).arg("--keep"))
}

fn build(profile: &str) -> anyhow::Result<PathBuf> {
    run(cargo().args(["build", "--package", "warpt", "--profile", profile]))?;
    // Cargo calls the folder of its first profile by another name.
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target().join(folder).join("warpt"))
}

/// The archives of the models asked for, in order of their names.
fn find(archives: &Path, names: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for model in entries(archives)? {
        let asked = names.is_empty() || names.iter().any(|name| model.ends_with(name));
        if asked {
            found.extend(
                entries(&model)?.into_iter().map(|form| form.join("model.pt2")).filter(|file| file.is_file()),
            );
        }
    }
    Ok(found)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listing = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = listing.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

impl Runs<'_> {
    /// Runs a model in every tier.
    fn try_model(&self, archive: &Path, peer: Option<&mut OnDevice>) -> anyhow::Result<Vec<Row>> {
        let folder = archive.parent().unwrap_or(archive);
        let name = folder.strip_prefix(self.archives).unwrap_or(folder).display().to_string();
        let beside = archive.with_extension("golden");
        let expected = match peer {
            None => golden(&beside)?,
            Some(peer) => match peer.run(&std::path::absolute(archive)?)? {
                Ok(file) => safetensors::read(&file)?,
                Err(reason) => {
                    return Ok(vec![Row { name, seconds: 0.0, verdict: Verdict::Skipped { reason } }]);
                }
            },
        };
        let mut rows = Vec::new();
        for tier in self.tiers {
            let results = tempfile::Builder::new().suffix(".safetensors").tempfile()?;
            let begin = Instant::now();
            let ran = output(
                Command::new(self.warpt)
                    .arg("run")
                    .arg(archive)
                    .arg("--inputs")
                    .arg(beside.join("inputs.safetensors"))
                    .arg("--outputs")
                    .arg(results.path())
                    .args(["--device", self.device, "--tier", tier.name()]),
            );
            let seconds = begin.elapsed().as_secs_f64();
            let verdict = match ran {
                Ok(_) => judge(&expected, results.path())?,
                Err(error) => Verdict::Refused { message: error.to_string() },
            };
            let name = format!("{name} {} {tier}", self.device);
            rows.push(Row { name, seconds, verdict });
        }
        Ok(rows)
    }
}
