//! The other tools: found, or installed from Debian's packages, or compiled from the C files beside this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::command::{cargo, output, root, run};

/// Makes sure that a program is there, installing its Debian package if we may.
pub(super) fn require(program: &str, package: &str) -> anyhow::Result<()> {
    if found(program) {
        return Ok(());
    }
    if !found("apt-get") {
        bail!("{program} is needed and not installed; install it and try again");
    }
    let install = || -> anyhow::Result<()> {
        run(Command::new("apt-get").arg("update"))?;
        run(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends", package]))
    };
    install().with_context(|| format!("{program} is needed; install the package {package} and try again"))
}

fn found(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Compiles one of the C programs in `xtask/peers` as its users would: `gcc -O3 -march=native`.
pub(super) fn compile(name: &str, flags: &[&str], folder: &Path) -> anyhow::Result<PathBuf> {
    let source = root().join("xtask/peers").join(format!("{name}.c"));
    let program = folder.join(name);
    let mut command = Command::new("gcc");
    command.args(["-O3", "-march=native"]).args(flags).arg(source).arg("-o").arg(&program).arg("-lm");
    output(&mut command)?;
    Ok(program)
}

/// Builds `warpt` as its users would, and says where it is.
pub(crate) fn build_warpt() -> anyhow::Result<PathBuf> {
    run(cargo().args(["build", "--release", "--package", "warpt"]))?;
    let text = output(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(Path::new(target).join("release/warpt"))
}
