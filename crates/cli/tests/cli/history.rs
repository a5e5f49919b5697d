//! `warpt benchmark history` and `compare` on what `run` kept.

use serde_json::Value;

use crate::warpt::{QUICK, Warpt};

#[test]
fn runs_are_kept_listed_shown_and_plotted() {
    let warpt = Warpt::new();
    let first = warpt.json(&[&QUICK[..], &["--rounds", "1", "--json"]].concat());
    let second = warpt.json(&[&QUICK[..], &["--rounds", "1", "--json"]].concat());
    let entries = warpt.json(&["benchmark", "history", "--json"]);
    let ids: Vec<_> = entries.as_array().unwrap().iter().map(|entry| &entry["run_id"]).collect();
    assert_eq!(ids, [&second["run_id"], &first["run_id"]]);

    let text = warpt.run(&["benchmark", "history"]).stdout;
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[3..], ["micro", "cpu_flops"], "{text}");
    assert_eq!(warpt.json(&["benchmark", "history", "show", "latest~1", "--json"]), first);
    let text = warpt.run(&["benchmark", "history", "show", "latest"]).stdout;
    assert!(text.contains("micro/cpu_flops") && text.contains("GFLOP/s"), "{text}");

    let trend = ["benchmark", "history", "trend", "cpu_flops", "gflops", "--tag", "scope=one_core"];
    let points = warpt.json(&[&trend[..], &["--json"]].concat());
    let one_core = |run: &Value| {
        let metrics = run["benchmarks"][0]["metrics"].as_array().unwrap().clone();
        metrics.into_iter().find(|metric| metric["tags"]["scope"] == "one_core").unwrap()["value"].clone()
    };
    let values: Vec<_> = points.as_array().unwrap().iter().map(|point| point["value"].clone()).collect();
    assert_eq!(values, [one_core(&first), one_core(&second)]);
    assert!(warpt.run(&trend).stdout.contains("GFLOP/s"));

    let ambiguous = warpt.run(&["benchmark", "history", "trend", "cpu_flops"]);
    if ambiguous.code != 0 {
        assert!(ambiguous.stderr.contains("--tag"), "{}", ambiguous.stderr);
    }
    let unknown = warpt.run(&["benchmark", "history", "trend", "cpu_flop"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean `cpu_flops`?"), "{}", unknown.stderr);
    assert_eq!(warpt.run(&["benchmark", "history", "show", "nonsense"]).code, 2);
}

#[test]
fn looking_makes_no_files() {
    let warpt = Warpt::new();
    for arguments in [
        &["benchmark", "history"][..],
        &["benchmark", "history", "list", "--json"],
        &["benchmark", "history", "show", "latest"],
        &["benchmark", "history", "trend", "cpu_flops"],
        &["benchmark", "compare", "latest~1", "latest"],
        &["benchmark", "list"],
        &["list"],
    ] {
        warpt.run(arguments);
        for folder in ["data", "cache", "config", ""] {
            let entries = std::fs::read_dir(warpt.path(folder)).unwrap().count();
            assert_eq!(entries, if folder.is_empty() { 3 } else { 0 }, "{arguments:?} made a file");
        }
    }
}

#[test]
fn a_run_that_only_skips_is_not_kept() {
    let warpt = Warpt::new();
    let done = warpt.run(&["benchmark", "run", "--benchmark", "gpu_flops", "--param", "device=99"]);
    assert!(done.stdout.contains("SKIPPED"), "{}{}", done.stdout, done.stderr);
    assert!(!done.stderr.contains("kept in the history"), "{}", done.stderr);
    assert_eq!(warpt.json(&["benchmark", "history", "--json"]), serde_json::json!([]));
}

#[test]
fn no_history_keeps_nothing() {
    let warpt = Warpt::new();
    warpt.json(&[&QUICK[..], &["--rounds", "1", "--json", "--no-history"]].concat());
    assert!(!warpt.path("data/warpt/history.sqlite").exists());
}

#[test]
fn a_history_of_a_newer_version_is_refused_before_anything_runs() {
    let warpt = Warpt::new();
    warpt.json(&[&QUICK[..], &["--rounds", "1", "--json"]].concat());
    let path = warpt.path("data/warpt/history.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    // SQLite keeps `user_version` as a big-endian number at offset 60 of its file.
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    for arguments in [&QUICK[..], &["benchmark", "history"]] {
        let done = warpt.run(arguments);
        assert!([2, 3].contains(&done.code), "{arguments:?}: {}", done.code);
        assert!(
            done.stderr.contains("version 99") && done.stderr.contains("nothing was changed"),
            "{}",
            done.stderr
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_home_that_cannot_be_written_costs_the_history_not_the_result() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("file"), "").unwrap();
    let mut command = warpt.command(&[&QUICK[..], &["--rounds", "1", "--json"]].concat());
    let done = crate::warpt::finished(command.env("XDG_DATA_HOME", warpt.path("file")).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("will not be kept"), "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(run["benchmarks"][0]["success"], true);
}
