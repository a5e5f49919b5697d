//! `cargo xtask models`: PyTorch's models, exported, imported and run, beside what PyTorch computes.

mod judge;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::command::{cargo, output, root, run};
use crate::python::{MODELS, environment, target};
use judge::judge;
use table::{Row, Verdict};

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
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Exports the models, runs each with the correctness tier, and prints how far its results are from PyTorch's.
pub(crate) fn run_models(args: &ModelsArgs) -> anyhow::Result<()> {
    let archives = args.archives.clone().unwrap_or_else(|| target().join("models"));
    if !args.no_export {
        export(&archives, &args.names)?;
    }
    let warpt = build(&args.profile)?;
    let mut rows = Vec::new();
    for archive in find(&archives, &args.names)? {
        let row = try_model(&warpt, &archives, &archive)?;
        println!("{row}");
        rows.push(row);
    }
    println!("{}", table::summary(&rows));
    if rows.is_empty() {
        bail!("there is no MODEL/FORM/model.pt2 in {}", archives.display());
    }
    if rows.iter().any(|row| !matches!(row.verdict, Verdict::Pass { .. })) {
        bail!("not every model computes what PyTorch computes");
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

fn try_model(warpt: &Path, archives: &Path, archive: &Path) -> anyhow::Result<Row> {
    let folder = archive.parent().unwrap_or(archive);
    let name = folder.strip_prefix(archives).unwrap_or(folder).display().to_string();
    let golden = archive.with_extension("golden");
    let results = tempfile::Builder::new().suffix(".safetensors").tempfile()?;
    let begin = Instant::now();
    let ran = output(
        Command::new(warpt)
            .arg("run")
            .arg(archive)
            .arg("--inputs")
            .arg(golden.join("inputs.safetensors"))
            .arg("--outputs")
            .arg(results.path())
            .args(["--tier", "correctness"]),
    );
    let seconds = begin.elapsed().as_secs_f64();
    let verdict = match ran {
        Ok(_) => judge(&golden, results.path())?,
        Err(error) => Verdict::Refused { message: error.to_string() },
    };
    Ok(Row { name, seconds, verdict })
}
