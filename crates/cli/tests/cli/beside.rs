//! `warpt benchmark run --beside`: a peer in turn with a benchmark, with programs that are shell scripts.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::warpt::{Finished, Warpt, finished};

/// What HPL prints of a solution that passes.
const RESULT: &str = "echo 'HPLinpack 2.3  --  High-Performance Linpack benchmark'; \
                      echo 'WR11C2R4 64 32 1 1 0.05 1.8e+00'; echo '||Ax-b||_oo/(eps)= 0.01 ...... PASSED'";

/// The smallest system beside HPL, where the search path has a program `xhpl` that does what the script says.
fn beside(script: Option<&str>) -> (Finished, Value) {
    let warpt = Warpt::new();
    let folder = warpt.path("bin");
    std::fs::create_dir(&folder).unwrap();
    if let Some(script) = script {
        let program = folder.join("xhpl");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let arguments = "benchmark run --benchmark linpack_fp64_cpu --param n=64 --param nb=32 --duration 0.1 --rounds 3 \
                     --burnin-seconds 0 --beside xhpl --json";
    let mut command = warpt.command(&arguments.split_whitespace().collect::<Vec<_>>());
    let done = finished(command.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).output().unwrap());
    let run: Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    let result = run["benchmarks"][0].clone();
    assert_eq!(result["verdict"], "PASS", "{result}");
    assert_eq!(result["metrics"][0]["statistics"]["round_count"], 3);
    (done, result["beside"][0].clone())
}

#[test]
fn the_record_has_the_peers_samples_version_and_ratio() {
    let (done, peer) = beside(Some(RESULT));
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        (&peer["peer"], &peer["version"], &peer["verdict"]),
        (&"xhpl".into(), &"2.3".into(), &"PASS".into())
    );
    assert_eq!(peer["metrics"][0]["statistics"]["rounds"], serde_json::json!([[1.8], [1.8], [1.8]]));
    let ratio = &peer["ratios"][0];
    assert_eq!(ratio["name"], "gflops");
    let number = |name: &str| ratio[name].as_f64().unwrap_or_else(|| panic!("{ratio}"));
    assert!(number("ci_low") <= number("ratio") && number("ratio") <= number("ci_high"), "{ratio}");
}

#[test]
fn a_killed_or_failing_peer_loses_nothing() {
    for (script, said) in [
        ("kill -9 $$", "signal"),
        ("echo out of memory >&2; exit 3", "out of memory"),
        ("echo nothing", "no result that can be read"),
    ] {
        let (done, peer) = beside(Some(script));
        assert_eq!(done.code, 4, "{}", done.stderr);
        assert_eq!(peer["verdict"], "FAIL");
        assert!(peer["error_message"].as_str().unwrap().contains(said), "{peer}");
    }
}

#[test]
fn a_missing_peer_is_skipped_with_its_package() {
    let (done, peer) = beside(None);
    assert_eq!((done.code, &peer["verdict"]), (0, &"SKIPPED".into()));
    assert!(peer["error_message"].as_str().unwrap().contains("`hpcc`"), "{peer}");
}

#[test]
fn peers_are_shown_and_unknown_ones_refused() {
    let warpt = Warpt::new();
    let text = warpt.run(&["benchmark", "describe", "--benchmark", "map_reads"]).stdout;
    assert!(text.contains("--beside PEER") && text.contains("minimap2"), "{text}");
    let done = warpt.run(&["benchmark", "run", "--benchmark", "map_reads", "--beside", "bwa"]);
    assert_eq!(done.code, 2);
    assert!(
        done.stderr.contains("there is no peer `bwa`") && done.stderr.contains("minimap2"),
        "{}",
        done.stderr
    );
    let plan =
        warpt.run(&["benchmark", "run", "--benchmark", "map_reads", "--beside", "minimap2", "--dry-run"]);
    assert!(plan.stdout.contains("beside minimap2"), "{}", plan.stdout);
}
