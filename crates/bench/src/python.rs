//! The Python that has what a benchmark needs beside the engine.

use std::path::PathBuf;
use std::process::Command;

use crate::benchmark::BenchmarkError;

/// Names another Python than `python3`, as for `warpt golden record`.
pub(crate) const VARIABLE: &str = "WARPFORGE_PYTHON";
const DEFAULT: &str = "python3";

/// Prints the version of each package that arguments name, and `-` for one that is missing.
const VERSIONS: &str = "import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        print(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print('-')";

/// A Python with some packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Python {
    interpreter: PathBuf,
    versions: Vec<(&'static str, String)>,
}

impl Python {
    /// The Python that `WARPFORGE_PYTHON` names, or `python3`, if it has all of these packages of PyPI.
    ///
    /// # Errors
    /// [`BenchmarkError::NotPossible`] where there is no Python, or with the packages that it lacks.
    pub(crate) fn with(packages: &[&'static str]) -> Result<Self, BenchmarkError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        Self::of(named.map_or_else(|| DEFAULT.into(), PathBuf::from), packages)
    }

    fn of(interpreter: PathBuf, packages: &[&'static str]) -> Result<Self, BenchmarkError> {
        let shown = interpreter.display();
        let output = Command::new(&interpreter).args(["-c", VERSIONS]).args(packages).output();
        let output = output.map_err(|error| {
            BenchmarkError::NotPossible(format!(
                "cannot start {shown}: {error}; {VARIABLE} names another Python"
            ))
        })?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || said.lines().count() != packages.len() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(BenchmarkError::NotPossible(format!(
                "{shown} is no Python ({said}); {VARIABLE} names another"
            )));
        }
        let (found, missing): (Vec<_>, Vec<_>) =
            packages.iter().copied().zip(said.lines()).partition(|(_, version)| *version != "-");
        if missing.is_empty() {
            let versions = found.into_iter().map(|(name, version)| (name, version.to_owned())).collect();
            return Ok(Self { interpreter, versions });
        }
        let missing = missing.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
        Err(BenchmarkError::NotPossible(format!(
            "{shown} lacks {missing}: `pip install {missing}`, or name another Python by {VARIABLE}"
        )))
    }

    /// A command of it.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.interpreter)
    }

    /// The version of one of its packages.
    pub(crate) fn version(&self, package: &str) -> &str {
        let known = self.versions.iter().find(|(name, _)| *name == package);
        known.map_or("unknown", |(_, version)| version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stand_in(folder: &std::path::Path, lines: &str) -> PathBuf {
        let path = folder.join("python");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: PathBuf, message: &str| {
            let error = Python::of(path, &["mlcommons-loadgen", "numpy"]).unwrap_err();
            assert!(matches!(&error, BenchmarkError::NotPossible(text) if text.contains(message)), "{error}");
        };
        refused("/no/such/python".into(), VARIABLE);
        refused(stand_in(folder.path(), "exit 1"), "no Python");
        refused(stand_in(folder.path(), "true"), "no Python");
        refused(stand_in(folder.path(), "echo -; echo 2.0"), "pip install mlcommons-loadgen`");
    }

    #[test]
    fn versions_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = stand_in(folder.path(), "echo 6.0; echo 2.1");
        let python = Python::of(path, &["mlcommons-loadgen", "numpy"]).unwrap();
        assert_eq!((python.version("mlcommons-loadgen"), python.version("other")), ("6.0", "unknown"));
    }
}
