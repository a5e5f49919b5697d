//! The Python of the peers.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;

const PYTHON: &str = "WARPT_PYTHON";

fn interpreter() -> Option<OsString> {
    std::env::var_os(PYTHON)
}

/// Why the modules cannot be used; none if they can.
pub(crate) fn missing(modules: &[&str]) -> Option<String> {
    let Some(python) = interpreter() else { return Some(format!("{PYTHON} names no Python")) };
    let program = format!("import {}", modules.join(", "));
    let output = Command::new(&python).args(["-c", &program]).output();
    let shown = python.display();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(_) => Some(format!("{shown}, which {PYTHON} names, lacks one of {}", modules.join(", "))),
        Err(error) => Some(format!("{shown}: {error}")),
    }
}

/// What a program prints that reads `input` and must succeed.
pub(crate) fn run(program: &str, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, Failed> {
    let python = interpreter().ok_or("the test is ignored without a Python")?;
    let mut command = Command::new(python);
    command.args(["-c", program]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdin.take().ok_or("no pipe")?;
    // Another thread writes, for a program that answers before it has read everything.
    let input = input.to_vec();
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "the writer failed")??;
    if !output.status.success() {
        return Err(format!("Python ends with {}", output.status).into());
    }
    Ok(output.stdout)
}
