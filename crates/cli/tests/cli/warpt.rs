//! Starting `warpt` in a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A home folder that no other test shares, and the program run in it.
pub(crate) struct Warpt {
    home: TempDir,
}

/// What a finished program left.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Warpt {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpt"));
        command.args(arguments).current_dir(self.home.path()).env_remove("COLUMNS");
        for (name, folder) in
            [("XDG_DATA_HOME", "data"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")]
        {
            std::fs::create_dir_all(self.path(folder)).unwrap();
            command.env(name, self.path(folder));
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        finished(self.command(arguments).output().unwrap())
    }

    /// Runs to success and reads the JSON on standard output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
        serde_json::from_str(&done.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}", done.stdout))
    }

    /// The names of the files in the home folder itself.
    pub(crate) fn files(&self) -> Vec<String> {
        file_names(self.home.path())
    }
}

pub(crate) fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

pub(crate) fn finished(output: Output) -> Finished {
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The duration of [`QUICK`].
pub(crate) const QUICK_SECONDS: &str = "0.2";

/// The shortest real run: one kernel of `cpu_flops` for a moment.
pub(crate) const QUICK: [&str; 11] = [
    "benchmark",
    "run",
    "--benchmark",
    "cpu_flops",
    "--param",
    "kernels=fma",
    "--param",
    "dtypes=f32",
    "--duration",
    QUICK_SECONDS,
    "--burnin-seconds=0",
];

/// A small model: a product and a ReLU.
pub(crate) const MLP: &str = "func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %z = stablehlo.constant dense<0.0> : tensor<8x64xf32>
  %1 = stablehlo.maximum %0, %z : tensor<8x64xf32>
  func.return %1 : tensor<8x64xf32>
}";

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::write(target, std::fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}
