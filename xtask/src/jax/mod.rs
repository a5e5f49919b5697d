//! `cargo xtask jax`: programs that JAX lowered, run by the reference and compared with what JAX itself gives.

mod case;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{anyhow, bail};
use clap::Args;

use crate::command::{root, run};
use crate::python::{TESTS, environment, target};
use case::{Case, Form, Verdict};

/// Arguments of `cargo xtask jax`.
#[derive(Debug, Args)]
pub(crate) struct JaxArgs {
    /// A Python that has jax [default: one of our own, installed under target/]
    #[arg(long)]
    python: Option<PathBuf>,
    /// Where the cases are written [default: target/jax]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Use the cases that are in the folder already
    #[arg(long)]
    keep: bool,
    /// Only programs whose name contains this
    #[arg(default_value = "")]
    name: String,
}

/// Lowers the programs, runs them both ways and prints a table; a difference is an error.
pub(crate) fn run_jax(args: &JaxArgs) -> anyhow::Result<()> {
    let folder = args.folder.clone().unwrap_or_else(|| target().join("jax"));
    if !args.keep {
        let python = match &args.python {
            Some(python) => python.clone(),
            None => environment(&TESTS)?.map_err(|reason| anyhow!("there is no jax: {reason}"))?,
        };
        write_cases(&python, &folder)?;
    }
    judge_all(&folder, &args.name)
}

/// Lowers the programs of `xtask/jax` and writes them to a folder.
fn write_cases(python: &Path, folder: &Path) -> anyhow::Result<()> {
    run(Command::new(python).arg(root().join("xtask/jax/write_cases.py")).arg(folder))
}

/// Judges the programs in a folder whose name contains `name`, and prints a table.
fn judge_all(folder: &Path, name: &str) -> anyhow::Result<()> {
    let (version, cases) = Case::list(folder)?;
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.name.contains(name)).collect();
    if cases.is_empty() {
        bail!("no program has `{name}` in its name");
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
                passed += 1;
            } else {
                failed += 1;
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

/// Runs all programs with a Python that has jax.
pub(crate) fn run_all(python: &Path) -> anyhow::Result<()> {
    let folder = target().join("jax");
    write_cases(python, &folder)?;
    judge_all(&folder, "")
}
