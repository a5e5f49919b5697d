//! `cargo xtask jax`: programs that JAX lowered, run by the reference and compared with what JAX itself gives.

mod case;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::command::{output, root, run};
use case::{Case, Form, Verdict};

/// Arguments of `cargo xtask jax`.
#[derive(Debug, Args)]
pub(crate) struct JaxArgs {
    /// A Python that has jax
    #[arg(long, env = "WARPFORGE_PYTHON", default_value = "python3")]
    python: PathBuf,
    /// Where the cases are written
    #[arg(long, default_value = "target/jax")]
    folder: PathBuf,
    /// Use the cases that are in the folder already
    #[arg(long)]
    keep: bool,
    /// Only programs whose name contains this
    #[arg(default_value = "")]
    name: String,
}

/// Lowers the programs, runs them both ways and prints a table; a difference is an error.
pub(crate) fn run_jax(args: &JaxArgs) -> anyhow::Result<()> {
    if !args.keep {
        run(Command::new(&args.python).arg(root().join("xtask/jax/write_cases.py")).arg(&args.folder))?;
    }
    let (version, cases) = Case::list(&args.folder)?;
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.name.contains(&args.name)).collect();
    if cases.is_empty() {
        bail!("no program has `{}` in its name", args.name);
    }
    println!("{:36} {:8} {:>9} {:>9}  verdict", "jax program", "form", "error", "allowed");
    let (mut passed, mut failed) = (0, 0);
    for case in &cases {
        for form in Form::ALL {
            let judged = case.judge(form);
            let (error, allowed) = match &judged {
                Verdict::Judged { error, allowed, .. } => (format!("{error:.1e}"), format!("{allowed:.0e}")),
                Verdict::Failed(_) => ("-".to_owned(), "-".to_owned()),
            };
            let sound = judged.passed();
            if sound {
                passed += 1
            } else {
                failed += 1
            }
            println!("{:36} {form:8} {error:>9} {allowed:>9}  {judged}", case.name);
        }
    }
    println!("{} programs of jax {version}: {passed} passed, {failed} failed", cases.len());
    if failed > 0 {
        bail!("{failed} of {} differ from what JAX gives", passed + failed);
    }
    Ok(())
}

/// Whether a Python has jax.
pub(crate) fn has_jax(python: &Path) -> bool {
    output(Command::new(python).args(["-c", "import jax"])).is_ok()
}

/// Runs all programs with this Python.
pub(crate) fn run_all(python: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let args = JaxArgs {
        python: python.to_owned(),
        folder: folder.path().to_owned(),
        keep: false,
        name: String::new(),
    };
    run_jax(&args)
}
