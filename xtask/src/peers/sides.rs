//! The two sides of a contest of models on the CPU: a Python that has the peers, and our program.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::tools;
use crate::python::{PEERS, Packages, environment};

/// The longest turn, in seconds.
const LONGEST: f64 = 60.0;

/// Who takes part, and how long a turn is.
#[derive(Debug, Args)]
pub(super) struct SidesArgs {
    /// How long a turn is, in seconds
    #[arg(long, default_value_t = 0.4)]
    pub(super) seconds: f64,
    /// The threads that everybody may use
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) threads: u16,
    /// A Python that has the peers [default: one of our own, with the peers from PyPI]
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// The warpt to measure [default: built here in release]
    #[arg(long, value_name = "PROGRAM")]
    warpt: Option<PathBuf>,
}

impl SidesArgs {
    /// Refuses a turn that cannot be.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if !(self.seconds > 0.0 && self.seconds <= LONGEST) {
            bail!("--seconds {}: more than 0 and at most {LONGEST}", self.seconds);
        }
        Ok(())
    }

    /// The Python of the peers of models; made where none is named.
    pub(super) fn python(&self) -> anyhow::Result<PathBuf> {
        self.python_with(&PEERS)
    }

    /// A Python with these packages; made where none is named.
    pub(super) fn python_with(&self, packages: &Packages) -> anyhow::Result<PathBuf> {
        match &self.python {
            Some(python) => Ok(std::path::absolute(python)?),
            None => match environment(packages)? {
                Ok(python) => Ok(python),
                Err(reason) => bail!("there are no peers to compare with: {reason}"),
            },
        }
    }

    /// Our program; built where none is named.
    pub(super) fn warpt(&self) -> anyhow::Result<PathBuf> {
        match &self.warpt {
            Some(warpt) => Ok(std::path::absolute(warpt)?),
            None => tools::build_warpt(),
        }
    }
}
