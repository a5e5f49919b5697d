//! Stopping a run half-way.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::warpt::{QUICK, QUICK_SECONDS, Warpt, finished};

fn start(warpt: &Warpt, more: &[&str]) -> Child {
    let long = QUICK.map(|argument| if argument == QUICK_SECONDS { "200" } else { argument });
    let mut command = warpt.command(&[&long[..], &["--rounds", "100"], more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs in the history that have metrics.
fn kept(warpt: &Warpt) -> Vec<Value> {
    let entries = warpt.json(&["benchmark", "history", "--json"]);
    let entries = entries.as_array().unwrap().iter();
    entries.filter(|entry| entry["metric_count"].as_u64() > Some(0)).cloned().collect()
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let warpt = Warpt::new();
    let child = start(&warpt, &["--json", "--export-file", "result.json"]);
    wait_until("a checkpoint", || !kept(&warpt).is_empty());
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let done = finished(child.wait_with_output().unwrap());
    assert_eq!(done.code, 4, "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(run["benchmarks"][0]["verdict"], "INCONCLUSIVE");
    assert!(!run["benchmarks"][0]["metrics"].as_array().unwrap().is_empty());
    let written: Value = serde_json::from_slice(&std::fs::read(warpt.path("result.json")).unwrap()).unwrap();
    assert_eq!(written, run);
    assert_eq!(warpt.json(&["benchmark", "history", "show", "latest", "--json"]), run);
}

#[test]
fn a_killed_run_leaves_its_checkpoint_no_half_file_and_no_process() {
    let warpt = Warpt::new();
    let mut child = start(&warpt, &["--export-file", "result.json"]);
    wait_until("a checkpoint", || !kept(&warpt).is_empty());
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let grandchildren = std::fs::read_to_string(children).unwrap_or_default();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(warpt.files(), Vec::<String>::new());
    let run = warpt.json(&["benchmark", "history", "show", "latest", "--json"]);
    assert_eq!(run["benchmarks"][0]["verdict"], "INCONCLUSIVE");
    for pid in grandchildren.split_whitespace() {
        wait_until("the end of the child", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            status.map_or(true, |status| status.contains(") Z"))
        });
    }
}
