//! The Python of tests that compare with PyTorch: `WARPT_PYTHON` names it; `cargo xtask test` makes one and sets it.

use std::ffi::OsString;
use std::process::Command;

use crate::warpt::{Finished, Warpt};

const NAMED_BY: &str = "WARPT_PYTHON";

/// Why there is no Python with these modules.
pub(crate) fn missing(modules: &str) -> Option<String> {
    let Some(python) = std::env::var_os(NAMED_BY) else {
        return Some(format!("{NAMED_BY} names no Python with {modules}; `cargo xtask test` does"));
    };
    match Command::new(&python).args(["-c", &format!("import {modules}")]).output() {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or_default().to_owned()),
        Err(error) => Some(format!("{} cannot be started: {error}", python.display())),
    }
}

/// The interpreter.
pub(crate) fn interpreter() -> OsString {
    std::env::var_os(NAMED_BY).expect("the test is ignored without it")
}

/// Pass 1 of a golden benchmark.
pub(crate) fn record(warpt: &Warpt, arguments: &[&str]) -> Finished {
    let mut command = warpt.command(&["golden", "record"]);
    command.args(arguments).env("WARPFORGE_PYTHON", interpreter());
    crate::warpt::finished(command.output().unwrap())
}
