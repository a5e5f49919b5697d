//! What PyTorch computes on a GPU, from the archives alone: `xtask/models/on_device.py`, carried inside this program so that
//! it runs where there is no checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::served::Served;

/// The programs of the Python side.
const PROGRAMS: [(&str, &str); 2] = [
    ("on_device.py", include_str!("../../models/on_device.py")),
    ("warpforge_signature.py", include_str!("../../../python/src/warpforge/signature.py")),
];

/// PyTorch's name for all GPUs, AMD's among them.
const NAME: &str = "cuda";

/// A process of PyTorch that runs archives on a GPU.
pub(super) struct OnDevice {
    served: Served,
    _programs: tempfile::TempDir,
}

impl OnDevice {
    /// Starts a Python that has PyTorch with a GPU.
    pub(super) fn start(python: &Path) -> anyhow::Result<Self> {
        let programs = tempfile::tempdir()?;
        for (name, text) in PROGRAMS {
            std::fs::write(programs.path().join(name), text)?;
        }
        let mut command = Command::new(python);
        command.arg(programs.path().join(PROGRAMS[0].0)).arg(NAME);
        Ok(Self { served: Served::start(&mut command, "PyTorch")?, _programs: programs })
    }

    /// Runs an archive: the file of its results, or why PyTorch does not run it there.
    pub(super) fn run(&mut self, archive: &Path) -> anyhow::Result<Result<PathBuf, String>> {
        let answer = self.served.ask(&archive.display())?;
        Ok(match answer["failed"].as_str() {
            Some(reason) => Err(reason.to_owned()),
            None => Ok(archive.with_extension(format!("{NAME}.safetensors"))),
        })
    }
}
