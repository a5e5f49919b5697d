//! The benchmark with programs that are shell scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::benchmark::{Event, Round};

/// A program of this name that does what the script says.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn params(path: &Path) -> Params {
    let mut params = External.spec().params.unwrap();
    params.insert("path".to_owned(), ParamValue::Text(path.display().to_string()));
    params.insert("n".to_owned(), ParamValue::Int(512));
    params
}

/// Metrics with their samples.
type Metrics = Vec<(MetricKey, Vec<f64>)>;

fn run(params: Params) -> (Result<(), BenchmarkError>, Metrics) {
    let round = Round { id: External.spec().id, params, seconds: 1.0, burn_in_seconds: 0.0, beside: None };
    let mut metrics = Vec::new();
    let mut report = |event| {
        if let Event::Metric { key, values } = event {
            metrics.push((key, values));
        }
    };
    let outcome = External.run(&mut RunContext::new(&round, &|| false, &mut report));
    (outcome, metrics)
}

#[test]
fn the_result_that_hpcc_writes_is_recorded_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("sample.txt");
    std::fs::write(&sample, include_str!("samples/hpccoutf.txt")).unwrap();
    // It fails unless it finds its input with the order that was asked for.
    let script = format!("grep -q '^512 ' hpccinf.txt && cp {} hpccoutf.txt", sample.display());
    let (outcome, metrics) = run(params(&program(folder.path(), "hpcc", &script)));
    outcome.unwrap();
    let found: Vec<_> = metrics.iter().map(|(key, values)| (key.name.as_str(), values[0])).collect();
    assert_eq!(found, [("gflops", 1.843), ("seconds", 0.05), ("residual", 0.006_426_7)]);
    assert_eq!(
        (metrics[0].0.tags["tool"].as_str(), metrics[0].0.tags["version"].as_str()),
        ("hpcc", "1.5.0")
    );
}

#[test]
fn a_failed_check_a_failed_program_and_nonsense_have_no_rate() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = "echo 'WR11C2R4 512 64 1 1 0.05 1.8e+00'; echo '||Ax-b||_oo/(eps)= 99.5 ...... FAILED'";
    for (script, expected) in [
        (wrong, "own check failed"),
        ("echo hello", "no result that can be read"),
        ("echo no licence >&2; exit 1", "no licence"),
    ] {
        let (outcome, metrics) = run(params(&program(folder.path(), "xhpl", script)));
        let error = outcome.unwrap_err();
        assert!(matches!(&error, BenchmarkError::Failed(text) if text.contains(expected)), "{error}");
        assert!(metrics.is_empty(), "{metrics:?}");
    }
}

#[test]
fn programs_that_are_not_hpl_and_bad_parameters_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = program(folder.path(), "true", "exit 0");
    for (name, value) in [("n", 1), ("nb", 0), ("ranks", 0), ("ranks", 1 << 40)] {
        let mut params = params(&program(folder.path(), "xhpl", "exit 0"));
        params.insert(name.to_owned(), ParamValue::Int(value));
        let error = External.prepare(&params).unwrap_err();
        assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains(name)), "{error}");
    }
    let error = External.prepare(&params(&other)).unwrap_err();
    assert!(matches!(&error, BenchmarkError::BadInput(text) if text.contains("neither hpcc")), "{error}");
    assert!(External.prepare(&params(Path::new("/no/such/hpcc"))).is_err());
}
