//! Whole folders of conformance files.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use warpforge_snakeburger::{bytecode, text};

use super::{Case, Judge, Mode, Status, run_artifact, run_chunk};

/// The outcome for a folder.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Number of files all of whose chunks passed.
    pub passed: usize,
    /// Number of files with a chunk that failed.
    pub failed: usize,
    /// Number of files with a chunk that could not be judged, and none that failed.
    pub skipped: usize,
    /// Every chunk, in the order of file names.
    pub cases: Vec<Case>,
}

/// The `.mlir` and `.bc` files below a folder, sorted; a file is its own list.
///
/// # Errors
///
/// When a folder cannot be read.
pub fn files_below(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    if root.is_file() {
        return Ok(vec![root.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            // Links are not followed: they could lead around in a circle.
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "mlir" || extension == "bc") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Judges all chunks of a file.
#[must_use]
pub fn run_file(path: &Path, judge: &Judge) -> Vec<Case> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| error.to_string()).and_then(|bytes| {
        if bytecode::is_bytecode(&bytes) {
            return Ok(Err(bytes));
        }
        String::from_utf8(bytes).map(Ok).map_err(|error| error.to_string())
    });
    match text {
        Ok(Err(bytes)) => vec![run_artifact(&name, bytes, judge)],
        Ok(Ok(whole)) => {
            let chunks = text::chunks(&whole);
            let some = chunks.into_iter().filter(|chunk| !is_blank(chunk.text));
            some.map(|chunk| run_chunk(&name, &whole, chunk, judge)).collect()
        }
        Err(error) => vec![Case {
            file: name,
            line: 1,
            operation: "-".to_owned(),
            mode: Mode::RoundTrip,
            status: Status::Failed,
            reason: Some(error),
        }],
    }
}

/// Whether there is nothing but comments.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with("//"))
}

/// Judges all files below a folder, several at a time.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn run_folder(root: &Path, judge: &Judge, threads: usize) -> std::io::Result<Summary> {
    let files = files_below(root)?;
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Vec<Case>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((index, path)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    files.get(index).map(|path| (index, path))
                } {
                    let cases = run_file(path, judge);
                    found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, cases));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    let mut summary = Summary { passed: 0, failed: 0, skipped: 0, cases: Vec::new() };
    for (_, cases) in found {
        let any = |status: Status| cases.iter().any(|case| case.status == status);
        if any(Status::Failed) {
            summary.failed += 1;
        } else if any(Status::Skipped) {
            summary.skipped += 1;
        } else {
            summary.passed += 1;
        }
        summary.cases.extend(cases);
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> Vec<(Mode, Status)> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("case.mlir");
        std::fs::write(&path, text).expect("writable");
        run_file(&path, &Judge::default()).iter().map(|case| (case.mode, case.status)).collect()
    }

    #[test]
    fn checks_are_executed_and_can_fail() {
        let module = |expected: &str| {
            format!(
                "func.func @main() {{\n  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n  \
                 %b = stablehlo.add %a, %a : tensor<2xi32>\n  \
                 check.expect_eq_const %b, dense<{expected}> : tensor<2xi32>\n  func.return\n}}\n"
            )
        };
        let both = format!("{}// -----\n{}", module("[2, 4]"), module("[2, 5]"));
        assert_eq!(judge(&both), [(Mode::Execute, Status::Passed), (Mode::Execute, Status::Failed)]);
    }

    #[test]
    fn modules_without_checks_make_a_round_trip() {
        let text =
            "func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {\n  func.return %a : tensor<?xf32>\n}\n";
        assert_eq!(judge(text), [(Mode::RoundTrip, Status::Passed)]);
        assert_eq!(judge("func.func @f(\n"), [(Mode::RoundTrip, Status::Failed)]);
    }

    #[test]
    fn expected_errors_must_occur() {
        assert_eq!(judge("// expected-error\nfunc.func @f(\n"), [(Mode::Refuse, Status::Passed)]);
        let invalid = "// expected-error\nfunc.func @f(%a: tensor<2xf32>) -> tensor<3xf32> {\n  \
                       %0 = stablehlo.reshape %a : (tensor<2xf32>) -> tensor<3xf32>\n  \
                       func.return %0 : tensor<3xf32>\n}\n";
        assert_eq!(judge(invalid), [(Mode::Refuse, Status::Passed)]);
        assert_eq!(
            judge("// expected-error\nfunc.func @f() {\n  func.return\n}\n"),
            [(Mode::Refuse, Status::Failed)]
        );
    }
}
