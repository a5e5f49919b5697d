//! `cargo xtask test`: everything the tests need, then all the tests.

use std::path::Path;
use std::process::Command;

use anyhow::bail;
use clap::Args;

use crate::command::{cargo, root, run};
use crate::python::{TESTS, environment};

/// Names the Python for those tests of the workspace that compare with JAX, PyTorch or pysam.
const PYTHON: &str = "WARPT_PYTHON";
/// Where Python is, for its style.
const PYTHON_FOLDERS: [&str; 6] =
    ["python", "xtask", "crates/bench", "crates/cli", "crates/detection", "examples"];
/// Asks tests for runs of full length.
const SLOW: &str = "WARPT_SLOW_TESTS";
/// Names the program to the tests of the Python package.
const WARPT: &str = "WARPT";

/// Arguments of `cargo xtask test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Leave out what needs Python: the tests of the package, and comparisons with JAX and PyTorch
    #[arg(long)]
    no_python: bool,
    /// Train for as many steps as presets have, which takes minutes more
    #[arg(long)]
    slow: bool,
    /// Passed on to `cargo test`, such as the name of a test; then only the workspace is tested
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs all tests, those of the Python package included. What cannot run here is reported as skipped.
pub(crate) fn run_tests(args: &TestArgs) -> anyhow::Result<()> {
    let python =
        if args.no_python { Err("--no-python asks for it".to_owned()) } else { environment(&TESTS)? };
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]).args(&args.arguments);
    if let Ok(python) = &python {
        tests.env(PYTHON, python);
    }
    if args.slow {
        tests.env(SLOW, "1");
    }
    let mut failed: Vec<String> = run(&mut tests).err().iter().map(ToString::to_string).collect();
    match &python {
        Ok(python) if args.arguments.is_empty() => {
            failed.extend(package(python));
            failed.extend(crate::jax::run_all(python).err().map(|error| error.to_string()));
        }
        Ok(_) => {}
        Err(reason) => {
            eprintln!("SKIPPED: the Python package, and comparisons with JAX and PyTorch: {reason}");
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

/// Tests the Python package, its style and that of the models; returns what failed.
fn package(python: &Path) -> Vec<String> {
    let module = |arguments: &[&str]| {
        let mut command = Command::new(python);
        command.current_dir(root()).arg("-m").args(arguments);
        command
    };
    let commands = [
        module(&[&["ruff", "check"], PYTHON_FOLDERS.as_slice()].concat()),
        module(&[&["ruff", "format", "--check"], PYTHON_FOLDERS.as_slice()].concat()),
        {
            let mut tests = module(&["pytest", "-q", "python"]);
            // The workspace's tests have just built it beside this program.
            tests.envs(std::env::current_exe().ok().map(|own| (WARPT, own.with_file_name("warpt"))));
            tests
        },
    ];
    commands
        .into_iter()
        .filter_map(|mut command| run(&mut command).err())
        .map(|error| error.to_string())
        .collect()
}
