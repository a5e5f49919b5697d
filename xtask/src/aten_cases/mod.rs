//! `cargo xtask aten-cases`: small cases for every ATen lowering, with PyTorch's own results, kept in the tree.
//!
//! `xtask/aten` makes candidates from PyTorch's test database and from calls that are written there; what the importer
//! takes is kept. Values are not looked at here: that is what the tests of `snakegrinder` do with the cases.

mod family;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::command::{root, run};
use crate::python::{ATEN, environment, target};

/// Where the cases are kept.
const CASES: &str = "crates/snakegrinder/tests/aten/cases";

/// Arguments of `cargo xtask aten-cases`.
#[derive(Debug, Args)]
pub(crate) struct AtenCasesArgs {
    /// A Python that has torch, scipy and expecttest [default: one of our own, installed under target/]
    #[arg(long)]
    python: Option<PathBuf>,
    /// Use the candidates that were made before
    #[arg(long)]
    keep: bool,
    /// Only the files of lowerings whose name, or an operation of which, contains this
    #[arg(default_value = "")]
    name: String,
}

/// Makes the cases of the operations in the table of lowerings.
pub(crate) fn run_aten_cases(args: &AtenCasesArgs) -> anyhow::Result<()> {
    let python = match &args.python {
        Some(python) => python.clone(),
        None => environment(&ATEN)?.map_err(|reason| anyhow!("there is no torch: {reason}"))?,
    };
    let wanted = |family: &String, names: &Vec<String>| {
        family.contains(&args.name) || names.iter().any(|name| name.contains(&args.name))
    };
    let mut families = table::families(&root().join("crates/snakegrinder/src/lower/ops"))?;
    families.retain(|family, names| wanted(family, names));
    if families.is_empty() {
        bail!("no file of lowerings and no operation has `{}` in its name", args.name);
    }
    let candidates = target().join("aten");
    if !args.keep {
        make(&python, &candidates, &families)?;
    }
    keep(&candidates, &families, args.name.is_empty())
}

/// Makes the candidates with PyTorch.
fn make(python: &Path, folder: &Path, families: &BTreeMap<String, Vec<String>>) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).context("cannot remove the candidates of before")?;
    }
    std::fs::create_dir_all(folder)?;
    let listing = folder.join("families.json");
    std::fs::write(&listing, serde_json::to_string(families)?)?;
    let mut write = Command::new(python);
    // The test database walks over sets of strings.
    write.env("PYTHONHASHSEED", "0");
    run(write.arg(root().join("xtask/aten/write_cases.py")).arg(&listing).arg(folder))
}

/// Keeps the candidates that are imported, and writes the manifest.
fn keep(candidates: &Path, families: &BTreeMap<String, Vec<String>>, everything: bool) -> anyhow::Result<()> {
    let cases = root().join(CASES);
    let made = read_json(&candidates.join("made.json"))?;
    let mut hashes = serde_json::Map::new();
    if everything {
        if cases.exists() {
            std::fs::remove_dir_all(&cases)?;
        }
    } else if let Ok(before) = read_json(&cases.join("manifest.json")) {
        if before["torch"] != made["torch"] || before["seed"] != made["seed"] {
            bail!(
                "the other cases are of torch {}, seed {}: make all of them",
                before["torch"],
                before["seed"]
            );
        }
        hashes = before["sha256"].as_object().cloned().unwrap_or_default();
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for (family, names) in families {
        let kept = family::select(candidates, family).with_context(|| family.clone())?;
        for name in names.iter().filter(|name| !kept.has(name)) {
            eprintln!("no case for {name}");
        }
        wrong.extend(kept.refused_by_hand.iter().map(|why| format!("{family}: {why}")));
        count += kept.lines.len();
        hashes.extend(kept.write(&cases, family)?);
    }
    let manifest = json!({"torch": made["torch"], "seed": made["seed"], "sha256": hashes});
    std::fs::write(cases.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    println!("{count} cases of {} operations", families.values().map(Vec::len).sum::<usize>());
    if !wrong.is_empty() {
        bail!("the importer refuses calls that are written in xtask/aten:\n{}", wrong.join("\n"));
    }
    Ok(())
}

fn read_json(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
