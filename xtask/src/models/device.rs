//! What PyTorch computes on a GPU, from the archives alone: `xtask/models/on_device.py`, carried inside this program so that
//! it runs where there is no checkout.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The programs of the Python side.
const PROGRAMS: [(&str, &str); 2] = [
    ("on_device.py", include_str!("../../models/on_device.py")),
    ("warpforge_signature.py", include_str!("../../../python/src/warpforge/signature.py")),
];

/// PyTorch's name for all GPUs, AMD's among them.
const NAME: &str = "cuda";

/// A process of PyTorch that runs archives on a GPU.
pub(super) struct OnDevice {
    child: Child,
    archives: ChildStdin,
    answers: BufReader<ChildStdout>,
    _programs: tempfile::TempDir,
}

impl OnDevice {
    /// Starts a Python that has PyTorch with a GPU.
    pub(super) fn start(python: &Path) -> anyhow::Result<Self> {
        let programs = tempfile::tempdir()?;
        for (name, text) in PROGRAMS {
            std::fs::write(programs.path().join(name), text)?;
        }
        let mut child = Command::new(python)
            .arg(programs.path().join(PROGRAMS[0].0))
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let archives = child.stdin.take().context("no pipe to PyTorch")?;
        let answers = BufReader::new(child.stdout.take().context("no pipe from PyTorch")?);
        Ok(Self { child, archives, answers, _programs: programs })
    }

    /// Runs an archive: the file of its results, or why PyTorch does not run it there.
    pub(super) fn run(&mut self, archive: &Path) -> anyhow::Result<Result<PathBuf, String>> {
        let mut line = String::new();
        let asked = writeln!(self.archives, "{}", archive.display()).and_then(|()| self.archives.flush());
        if asked.is_err() || self.answers.read_line(&mut line)? == 0 {
            bail!("the process of PyTorch ended (its message is above)");
        }
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("not an answer of PyTorch: {line}"))?;
        Ok(match answer["failed"].as_str() {
            Some(reason) => Err(reason.to_owned()),
            None => Ok(archive.with_extension(format!("{NAME}.safetensors"))),
        })
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // It ends by itself when the pipe closes; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
