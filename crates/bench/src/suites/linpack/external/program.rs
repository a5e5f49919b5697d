//! The programs that contain HPL: where they are and how they are called.

use std::path::Path;
use std::process::Command;

use super::input;
use super::output::{self, Outcome};
use crate::benchmark::BenchmarkError;
use crate::external::Tool;

/// A program that contains HPL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// The HPC Challenge, which runs HPL last.
    Hpcc,
    /// HPL itself.
    Xhpl,
    /// Intel's LINPACK for shared memory.
    Xlinpack,
}

/// What they are called on the path, the first that is there is taken.
const NAMES: [&str; 3] = ["hpcc", "xhpl", "xlinpack_xeon64"];

/// The Debian package that has one of them.
const PACKAGE: &str = "hpcc";

impl Program {
    /// The program at this path, or the first on the search path where it is empty.
    pub(super) fn find(path: &str) -> Result<(Tool, Self), BenchmarkError> {
        let tool = Tool::find(path, &NAMES, PACKAGE)?;
        let name =
            tool.path().file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let program = match name.as_str() {
            name if name.contains("hpcc") => Self::Hpcc,
            name if name.contains("hpl") => Self::Xhpl,
            name if name.contains("linpack") => Self::Xlinpack,
            _ => {
                return Err(BenchmarkError::BadInput(format!(
                    "path={path}: the name says neither hpcc, hpl nor linpack"
                )));
            }
        };
        Ok((tool, program))
    }

    /// This program on the search path.
    pub(super) fn on_path(self) -> Result<Tool, BenchmarkError> {
        let name = match self {
            Self::Hpcc => NAMES[0],
            Self::Xhpl => NAMES[1],
            Self::Xlinpack => NAMES[2],
        };
        // Debian has HPL as a part of hpcc alone.
        Tool::on_path(&[name], PACKAGE)
    }

    /// The name used in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hpcc => "hpcc",
            Self::Xhpl => "xhpl",
            Self::Xlinpack => "xlinpack",
        }
    }

    /// The name and the text of its input file.
    pub(super) fn input(self, order: usize, block: usize, ranks: usize) -> (&'static str, String) {
        match self {
            Self::Hpcc => ("hpccinf.txt", input::hpcc(order, block, ranks)),
            Self::Xhpl => ("HPL.dat", input::hpl(order, block, ranks)),
            Self::Xlinpack => (XLINPACK_INPUT, input::xlinpack(order)),
        }
    }

    /// How it is called, by `mpirun` where it has several ranks.
    pub(super) fn command(self, tool: &Tool, ranks: usize) -> Result<Command, BenchmarkError> {
        let mut command = if ranks > 1 {
            let launcher = Tool::find("", &["mpirun", "mpiexec"], "openmpi-bin")?;
            let mut command = Command::new(launcher.path());
            command.args(["-n", &ranks.to_string()]).arg(tool.path());
            command
        } else {
            Command::new(tool.path())
        };
        if self == Self::Xlinpack {
            command.arg(XLINPACK_INPUT);
        }
        Ok(command)
    }

    /// What came of it: hpcc writes a file, the others print.
    pub(super) fn parse(self, folder: &Path, printed: &str) -> Result<Outcome, BenchmarkError> {
        let parsed = match self {
            Self::Hpcc => {
                let file = folder.join("hpccoutf.txt");
                let text = std::fs::read_to_string(&file)
                    .map_err(|error| BenchmarkError::Failed(format!("hpcc wrote no result: {error}")))?;
                output::hpl(&text)
            }
            Self::Xhpl => output::hpl(printed),
            Self::Xlinpack => output::xlinpack(printed),
        };
        parsed.ok_or_else(|| {
            BenchmarkError::Failed(format!("{} printed no result that can be read", self.name()))
        })
    }
}

const XLINPACK_INPUT: &str = "lininput";
