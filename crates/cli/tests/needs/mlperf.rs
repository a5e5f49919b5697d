//! The suite mlperf with the real LoadGen, on small generated models.
//!
//! `WARPT_PYTHON` names a Python with `mlcommons-loadgen`; `cargo xtask test` makes one and sets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::trial;
use crate::warpt::{Finished, Warpt, finished};

const PYTHON: &str = "WARPT_PYTHON";
/// Something that did not happen by then will not.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    let Some(python) = std::env::var_os(PYTHON) else {
        return Some(format!("{PYTHON} names no Python with mlcommons-loadgen; `cargo xtask test` does"));
    };
    match Command::new(&python).args(["-c", "import mlperf_loadgen"]).output() {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or_default().to_owned()),
        Err(error) => Some(format!("{} cannot be started: {error}", python.display())),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 6] = [
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
            "a_killed_loadgen_is_a_failure_that_keeps_the_queries",
            a_killed_loadgen_is_a_failure_that_keeps_the_queries,
        ),
        ("ctrl_c_keeps_the_queries_and_leaves_no_loadgen", ctrl_c_keeps_the_queries_and_leaves_no_loadgen),
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
    command.env("WARPFORGE_PYTHON", std::env::var_os(PYTHON).unwrap());
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

/// Runs until LoadGen's main test is under way, and gives the process to `end`.
fn while_under_way(warpt: &Warpt, end: impl FnOnce(u32)) -> (i32, Value) {
    let mut command = command(warpt, &["scenario=SingleStream"], "200");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let under_way = || {
        let rounds = warpt.path("logs/llama_infer");
        let round = std::fs::read_dir(rounds).ok()?.next()?.ok()?.path();
        std::fs::metadata(round.join("performance/mlperf_log_detail.txt")).ok().filter(|file| file.len() > 0)
    };
    while under_way().is_none() {
        assert!(began.elapsed() < PATIENCE, "LoadGen did not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    end(child.id());
    let done = finished(child.wait_with_output().unwrap());
    let record =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    (done.code, record)
}

/// The processes whose command line has a text, with it.
fn processes(text: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    let names =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).filter(has).collect()
}

/// The LoadGen below a process of ours: its working folder is that of the round's logs.
fn loadgen(warpt: &Warpt) -> Vec<u32> {
    let own = warpt.path("logs").canonicalize().unwrap();
    let inside =
        |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&own));
    processes("mlperf_loadgen").into_iter().filter(inside).collect()
}

fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(status.success());
}

fn a_killed_loadgen_is_a_failure_that_keeps_the_queries() {
    let warpt = Warpt::new();
    let (code, record) = while_under_way(&warpt, |_| {
        let [pid] = loadgen(&warpt)[..] else { panic!("{:?}", loadgen(&warpt)) };
        signal("KILL", pid);
    });
    let result = &record["benchmarks"][0];
    assert_eq!((code, &result["verdict"]), (1, &Value::from("FAIL")));
    let message = result["error_message"].as_str().unwrap();
    assert!(message.contains("LoadGen's process ended") && message.contains("signal: 9"), "{message}");
    assert!(values(&record, "query_time").len() > 20);
}

fn ctrl_c_keeps_the_queries_and_leaves_no_loadgen() {
    let warpt = Warpt::new();
    let (code, record) = while_under_way(&warpt, |pid| signal("INT", pid));
    let result = &record["benchmarks"][0];
    assert_eq!(result["verdict"], "INCONCLUSIVE", "{code}: {}", result["error_message"]);
    assert!(values(&record, "query_time").len() > 20);
    let began = Instant::now();
    while !loadgen(&warpt).is_empty() {
        assert!(began.elapsed() < PATIENCE, "LoadGen goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn a_python_without_loadgen_is_skipped_with_the_packages_name() {
    let warpt = Warpt::new();
    let mut command = command(&warpt, &[], "1");
    // Without its packages a Python has only its own.
    let wrapper = warpt.path("python");
    let python = std::env::var(PYTHON).unwrap();
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec '{python}' -S \"$@\"\n")).unwrap();
    std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let done = finished(command.env("WARPFORGE_PYTHON", &wrapper).output().unwrap());
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    let result = &record["benchmarks"][0];
    assert_eq!(result["verdict"], "SKIPPED", "{}", done.stderr);
    let message = result["error_message"].as_str().unwrap();
    assert!(message.contains("pip install mlcommons-loadgen"), "{message}");
}
