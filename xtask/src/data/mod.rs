//! `cargo xtask data`: the real data sets of biobench, from Debian's packages, unpacked below `target/data`.
//!
//! Packages are downloaded and unpacked, not installed: that needs no rights, and nothing of them is in the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use sha2::{Digest as _, Sha256};
use warpforge_bio::formats::{read_nucleotides, read_proteins};
use warpforge_bio::sets::{DataSet, SETS};

use crate::command::run as run_command;
use crate::python::target;

/// Arguments of `cargo xtask data`.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The data sets [default: all]
    sets: Vec<String>,
    /// Only say what there is
    #[arg(long)]
    list: bool,
}

/// Fetches the data sets that are not there yet, reads each, and says where it is.
pub(crate) fn run(args: &DataArgs) -> anyhow::Result<()> {
    if let Some(unknown) = args.sets.iter().find(|name| SETS.iter().all(|set| set.name != **name)) {
        let known: Vec<&str> = SETS.iter().map(|set| set.name).collect();
        bail!("there is no data set `{unknown}`: there are {}", known.join(", "));
    }
    for set in SETS.iter().filter(|set| args.sets.is_empty() || args.sets.iter().any(|name| name == set.name))
    {
        if args.list {
            println!("{}: {} (Debian package {}, {})", set.name, set.what, set.package, set.licence);
        } else {
            let path = fetch(set)?;
            println!("{}: {}, {}", set.name, describe(set, &path)?, path.display());
        }
    }
    if !args.list {
        let folder = target().join("data");
        println!("run `warpt` in the repository, or with WARPFORGE_DATA={}", folder.display());
    }
    Ok(())
}

/// The file of a data set, its package downloaded and unpacked if need be.
pub(crate) fn fetch(set: &DataSet) -> anyhow::Result<PathBuf> {
    let folder = target().join("data").join(set.package);
    let path = folder.join(set.file);
    if path.is_file() {
        check(set, &path)?;
        return Ok(path);
    }
    let scratch = tempfile::tempdir()?;
    let mut download = Command::new("apt-get");
    download.current_dir(scratch.path()).args(["download", set.package]);
    run_command(&mut download).with_context(|| {
        format!(
            "apt-get is needed to download the package {}; or unpack it to {} yourself",
            set.package,
            folder.display()
        )
    })?;
    let package = std::fs::read_dir(scratch.path())?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get left no package {}", set.package))?;
    std::fs::create_dir_all(&folder)?;
    run_command(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&folder))?;
    if !path.is_file() {
        bail!("the package {} has no {}", set.package, set.file);
    }
    check(set, &path)?;
    Ok(path)
}

/// Another version of the data would give other figures.
fn check(set: &DataSet, path: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found != set.sha256 {
        bail!("{} has the SHA-256 {found}, expected is {}", path.display(), set.sha256);
    }
    Ok(())
}

/// What is in the file, by reading it.
fn describe(set: &DataSet, path: &Path) -> anyhow::Result<String> {
    let records = if set.name.starts_with("protein") { read_proteins(path) } else { read_nucleotides(path) }?;
    let letters: usize = records.iter().map(|record| record.codes.len()).sum();
    Ok(format!("{} sequences of {letters} letters ({}; {})", records.len(), set.what, set.licence))
}
