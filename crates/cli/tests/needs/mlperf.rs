//! The suite mlperf with the real LoadGen, on small generated models.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::trial;
use crate::warpt::{Finished, Warpt, finished};

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    crate::python::missing("mlperf_loadgen")
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 5] = [
        (
            "a_killed_loadgen_is_a_failure_and_what_was_measured_is_kept",
            a_killed_loadgen_is_a_failure_and_what_was_measured_is_kept,
        ),
        (
            "loadgen_measures_every_scenario_and_leaves_its_logs",
            loadgen_measures_every_scenario_and_leaves_its_logs,
        ),
        ("accuracy_is_judged_from_loadgens_log", accuracy_is_judged_from_loadgens_log),
        (
            "a_server_rate_is_searched_and_a_hopeless_one_fails",
            a_server_rate_is_searched_and_a_hopeless_one_fails,
        ),
        (
            "a_python_without_loadgen_is_skipped_with_the_packages_name",
            a_python_without_loadgen_is_skipped_with_the_packages_name,
        ),
    ];
    tests.into_iter().map(|(name, test)| trial(name, test)).collect()
}

/// A file of llama2.c: width 8, inner 12, two layers, two heads sharing one of keys and values, 20 words, 40 positions.
fn model(warpt: &Warpt) -> PathBuf {
    let header = [8, 12, 2, 2, 1, 20, 40].into_iter().flat_map(i32::to_le_bytes);
    let values = (0..5_000u32)
        .flat_map(|at| ((at.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 - 0.5).to_le_bytes());
    let path = warpt.path("tiny.bin");
    std::fs::write(&path, header.chain(values).collect::<Vec<u8>>()).unwrap();
    path
}

/// `llama_infer` on a tiny decoder.
fn command(warpt: &Warpt, params: &[&str], seconds: &str) -> Command {
    let model = format!("model={}", model(warpt).display());
    let arguments =
        ["benchmark", "run", "--benchmark", "llama_infer", "--json", "--rounds", "1", "--duration", seconds];
    let mut command = warpt.command(&arguments);
    let own = [model.as_str(), "prompt=8", "tokens=6", "samples=12", "threads=1", "logs=logs", "type=f32"];
    for param in own.iter().chain(params) {
        command.args(["--param", param]);
    }
    command.env("WARPFORGE_PYTHON", crate::python::interpreter());
    command
}

fn run(warpt: &Warpt, params: &[&str], seconds: &str) -> (Finished, Value) {
    let done = finished(command(warpt, params, seconds).output().unwrap());
    let record =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    (done, record)
}

/// The values of a metric, of all rounds.
fn values(record: &Value, name: &str) -> Vec<f64> {
    let metrics = record["benchmarks"][0]["metrics"].as_array().unwrap();
    let metrics = metrics.iter().filter(|metric| metric["name"] == name);
    let rounds = metrics.flat_map(|metric| metric["statistics"]["rounds"].as_array().unwrap());
    rounds.flat_map(|round| round.as_array().unwrap().iter().map(|value| value.as_f64().unwrap())).collect()
}

/// The folders of the tests, all of whose logs are there.
fn logs(warpt: &Warpt, wanted: &str) -> Vec<PathBuf> {
    let folder = |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let tests = folder(&warpt.path("logs/llama_infer")).flat_map(|round| folder(&round).collect::<Vec<_>>());
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(wanted);
    tests.filter(named).collect()
}

fn loadgen_measures_every_scenario_and_leaves_its_logs() {
    for scenario in ["SingleStream", "MultiStream", "Offline"] {
        let warpt = Warpt::new();
        let (done, record) = run(&warpt, &[&format!("scenario={scenario}")], "1");
        assert_eq!(done.code, 0, "{scenario}: {}", done.stderr);
        let result = &record["benchmarks"][0];
        for name in ["samples_per_second", "tokens_per_second", "query_overhead", "loadgen_overhead_percent"]
        {
            assert!(!values(&record, name).is_empty(), "{scenario} has no {name}");
        }
        let queries = values(&record, "query_time").len();
        assert_eq!(queries > 20, scenario != "Offline", "{scenario}: {queries}");
        if scenario != "Offline" {
            assert_eq!(values(&record, "time_to_first_token").len(), queries, "{scenario}");
            assert_eq!(values(&record, "token_time").len(), queries, "{scenario}");
        }
        let division = &result["metrics"][2]["tags"]["division"];
        assert_eq!(division, "unofficial", "{}", result["metrics"][2]);
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("not an MLPerf result"), "{warnings}");
        let [folder] = &logs(&warpt, "performance")[..] else { panic!("no logs") };
        for name in
            ["mlperf_log_summary.txt", "mlperf_log_detail.txt", "mlperf_log_accuracy.json", "user.conf"]
        {
            assert!(folder.join(name).is_file(), "{scenario}: no {name}");
        }
        let summary = std::fs::read_to_string(folder.join("mlperf_log_summary.txt")).unwrap();
        assert!(summary.contains(&format!("Scenario : {scenario}")), "{summary}");
    }
}

fn accuracy_is_judged_from_loadgens_log() {
    for scenario in ["Offline", "Server"] {
        let warpt = Warpt::new();
        let (done, record) = run(&warpt, &["mode=accuracy", &format!("scenario={scenario}")], "1");
        assert_eq!(done.code, 0, "{scenario}: {}", done.stderr);
        assert_eq!(values(&record, "accuracy_percent"), [100.0]);
        let [folder] = &logs(&warpt, "accuracy")[..] else { panic!("no logs") };
        let logged = std::fs::read_to_string(folder.join("mlperf_log_accuracy.json")).unwrap();
        let logged: Vec<Value> = serde_json::from_str(&logged).unwrap();
        assert_eq!(logged.len(), 12);
        // Six tokens of four bytes.
        assert!(logged.iter().all(|answer| answer["data"].as_str().unwrap().len() == 48), "{logged:?}");
    }
}

fn a_server_rate_is_searched_and_a_hopeless_one_fails() {
    let warpt = Warpt::new();
    let (done, record) = run(&warpt, &["scenario=Server", "latency_ms=20"], "4");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let kept = values(&record, "server_rate");
    assert!(!kept.is_empty() && kept.iter().all(|&rate| rate > 1.0), "{kept:?}");
    assert!(logs(&warpt, "server_").len() >= 3);
    assert!(!values(&record, "loadgen_overhead_percent").is_empty());

    // More queries than any machine answers: LoadGen says so, and the queries are kept.
    let warpt = Warpt::new();
    let (done, record) = run(&warpt, &["scenario=Server", "latency_ms=0.001", "target_qps=200"], "1");
    assert_eq!(done.code, 1, "{}", done.stderr);
    let message = record["benchmarks"][0]["error_message"].as_str().unwrap();
    assert!(message.contains("miss the bound") && message.contains("INVALID"), "{message}");
    assert!(values(&record, "query_time").len() > 20);
}

fn a_killed_loadgen_is_a_failure_and_what_was_measured_is_kept() {
    let warpt = Warpt::new();
    let mut command = command(&warpt, &["scenario=SingleStream"], "20");
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    // LoadGen writes its log when its test begins. Its process works in the folder of its logs.
    let process = loop {
        assert!(Instant::now() < deadline, "LoadGen does not begin");
        std::thread::sleep(Duration::from_millis(20));
        let begun = |folder: &PathBuf| folder.join("mlperf_log_detail.txt").exists();
        let Some(folder) = running_tests(&warpt).into_iter().find(begun) else { continue };
        if let Some(process) = process_in(&folder) {
            break process;
        }
    };
    std::thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
    let done = finished(running.wait_with_output().unwrap());
    assert_eq!(done.code, 1, "{}", done.stderr);
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    let result = &record["benchmarks"][0];
    assert_eq!(result["verdict"], "FAIL");
    let message = result["error_message"].as_str().unwrap();
    assert!(message.contains("LoadGen's process ended before its test (signal: 9"), "{message}");
    assert!(values(&record, "query_time").len() > 1, "{result}");
    assert_eq!(values(&record, "query_overhead").len(), 2, "{result}");
    assert!(values(&record, "samples_per_second").is_empty(), "a test that did not end has no rate");
}

/// The folders of the tests of performance that have begun, as the system names them.
fn running_tests(warpt: &Warpt) -> Vec<PathBuf> {
    let folder =
        |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let tests = folder(&warpt.path("logs/llama_infer")).flat_map(|round| folder(&round).collect::<Vec<_>>());
    tests.filter(|path| path.ends_with("performance")).filter_map(|path| path.canonicalize().ok()).collect()
}

/// The process that works in a folder.
fn process_in(folder: &Path) -> Option<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut works_here =
        processes.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
    works_here.next().map(|entry| entry.file_name().into_string().unwrap())
}

fn a_python_without_loadgen_is_skipped_with_the_packages_name() {
    let warpt = Warpt::new();
    let mut command = command(&warpt, &[], "1");
    // Without its packages a Python has only its own.
    let wrapper = warpt.path("python");
    let python = crate::python::interpreter();
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec '{}' -S \"$@\"\n", python.display())).unwrap();
    std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let done = finished(command.env("WARPFORGE_PYTHON", &wrapper).output().unwrap());
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    let result = &record["benchmarks"][0];
    assert_eq!(result["verdict"], "SKIPPED", "{}", done.stderr);
    let message = result["error_message"].as_str().unwrap();
    assert!(message.contains("pip install mlcommons-loadgen"), "{message}");
}
