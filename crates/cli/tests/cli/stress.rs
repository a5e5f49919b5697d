//! `warpt stress`, driven from outside.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::warpt::{Warpt, finished};

/// A short run of one test, as JSON.
fn quick(warpt: &Warpt, test: &str, more: &[&str]) -> (i32, Value) {
    let mut arguments = vec!["stress", "--test", test, "--json"];
    let threads = ["compute", "hashing", "compression", "bandwidth", "latency"].contains(&test);
    let size =
        !["compute", "hashing", "compression", "loopback", "point-to-point", "bidirectional"].contains(&test);
    for (option, value, used) in
        [("--duration", "0.01", true), ("--threads", "2", threads), ("--size", "16M", size)]
    {
        if used && !more.contains(&option) {
            arguments.extend([option, value]);
        }
    }
    let done = warpt.run(&[&arguments[..], more].concat());
    let value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{test}: {error}\n{}\n{}", done.stdout, done.stderr));
    (done.code, value)
}

#[test]
fn every_test_is_listed_with_how_it_is_verified() {
    let done = Warpt::new().run(&["stress", "--list"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for name in [
        "compute",
        "hashing",
        "compression",
        "fp32",
        "fp64",
        "precision",
        "cfd",
        "bandwidth",
        "latency",
        "swap",
    ] {
        assert!(done.stdout.contains(name), "{}", done.stdout);
    }
    for name in ["sequential-read", "random-write", "mixed", "loopback", "point-to-point", "bidirectional"] {
        assert!(done.stdout.contains(name), "{}", done.stdout);
    }
    assert_eq!(done.stdout.lines().filter(|line| line.starts_with("gpu")).count(), 5, "{}", done.stdout);
    let alone = Warpt::new().run(&["stress"]);
    assert_eq!((alone.code, alone.stderr.lines().count()), (2, 1), "{}", alone.stderr);
    assert!(alone.stderr.contains("cpu, gpu, ram, storage, network, all"), "{}", alone.stderr);
}

#[test]
fn results_have_rates_and_no_errors() {
    let warpt = Warpt::new();
    for test in ["hashing", "compression", "bandwidth", "latency", "loopback", "bidirectional"] {
        let (code, run) = quick(&warpt, test, &[]);
        let result = &run["tests"][0];
        assert_eq!(
            (code, result["verdict"].as_str(), result["errors"].as_u64()),
            (0, Some("PASS"), Some(0)),
            "{run}"
        );
        assert!(
            result["iterations"].as_u64() >= Some(1) && result["rate"]["mean"].as_f64() > Some(0.0),
            "{run}"
        );
        assert_eq!(result["rate"]["first"]["name"], "first tenth");
        assert_eq!(result["rate"]["windows"].as_array().unwrap().len(), 20);
        assert!(result["conditions"].is_object() && result.get("timeline").is_none(), "{run}");
    }
}

#[test]
fn a_falsified_result_is_found_in_its_iteration_and_is_exit_1() {
    let warpt = Warpt::new();
    let mut found = 0;
    for test in [
        "compute",
        "hashing",
        "compression",
        "bandwidth",
        "latency",
        "sequential-read",
        "sequential-write",
        "random-read",
        "random-write",
        "mixed",
        "loopback",
        "bidirectional",
    ] {
        // A test that runs for hours ends in the iteration of the fault.
        let more = ["--inject-fault", "2", "--duration", "10000"];
        let (code, run) = quick(&warpt, test, &more);
        let result = &run["tests"][0];
        // A folder without direct I/O skips the storage tests.
        if result["verdict"] == "SKIPPED" {
            assert_eq!((code, result["component"].as_str()), (3, Some("storage")), "{run}");
            continue;
        }
        assert_eq!((code, result["verdict"].as_str()), (1, Some("FAIL")), "{run}");
        assert_eq!(result["iterations"], 2, "{run}");
        let mismatch = &result["mismatches"][0];
        assert_eq!(mismatch["iteration"], 2, "{run}");
        for field in ["what", "location", "expected", "found"] {
            assert!(mismatch[field].as_str().is_some_and(|text| !text.is_empty()), "{test} {field}: {run}");
        }
        assert_ne!(mismatch["expected"], mismatch["found"], "{run}");
        found += 1;
    }
    assert!(found >= 7, "{found}");
}

#[test]
fn the_text_names_the_error_and_its_place() {
    let warpt = Warpt::new();
    let arguments =
        ["stress", "cpu", "--test", "hashing", "--duration", "0.01", "--threads", "1", "--inject-fault", "1"];
    let done = warpt.run(&arguments);
    assert_eq!(done.code, 1, "{}", done.stderr);
    for part in
        ["FAIL  cpu hashing", "error: iteration 1, SHA-256", "core ", "expected cdc76e5c", "throttled"]
    {
        assert!(done.stdout.contains(part), "no {part} in {}", done.stdout);
    }
}

#[test]
fn what_cannot_run_is_skipped_with_the_reason() {
    let warpt = Warpt::new();
    let (code, run) = quick(&warpt, "point-to-point", &[]);
    assert_eq!((code, run["tests"][0]["verdict"].as_str()), (3, Some("SKIPPED")));
    assert!(run["tests"][0]["reason"].as_str().unwrap().contains("--target"), "{run}");
    // More memory than a machine has is refused, not tried.
    let (code, run) = quick(&warpt, "bandwidth", &["--size", "1000T"]);
    assert_eq!(code, 3);
    assert!(run["tests"][0]["reason"].as_str().unwrap().contains("half of what is available"), "{run}");
    // One that can run beside one that cannot is a run that passed.
    let (code, run) = quick(&warpt, "loopback", &["--test", "point-to-point"]);
    let verdicts: Vec<_> =
        run["tests"].as_array().unwrap().iter().map(|test| test["verdict"].as_str().unwrap()).collect();
    assert_eq!((code, verdicts), (0, vec!["PASS", "SKIPPED"]));
}

#[test]
fn a_host_that_was_named_and_does_not_answer_is_a_failure() {
    let warpt = Warpt::new();
    // Bound and not listening: nobody else gets the port, and nobody answers.
    let silent =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    rustix::net::bind(&silent, &any).unwrap();
    let bound = std::net::SocketAddrV4::try_from(rustix::net::getsockname(&silent).unwrap()).unwrap();
    let done = warpt.run(&["stress", "network", "--target", &bound.to_string(), "--duration", "0.01"]);
    assert_eq!(done.code, 1, "{}", done.stdout);
    for part in ["PASS  network loopback", "FAIL  network point-to-point", "cannot connect to 127.0.0.1"] {
        assert!(done.stdout.contains(part), "no {part} in {}", done.stdout);
    }
}

#[test]
fn the_timeline_and_the_result_go_to_files() {
    let warpt = Warpt::new();
    let more = ["--monitor-interval", "0.05", "--monitor-output", "timeline.json", "--export", "result.json"];
    let (code, run) = quick(&warpt, "hashing", &more);
    assert_eq!(code, 0);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(warpt.path(name)).unwrap()).unwrap() };
    assert_eq!(read("result.json"), run);
    let timeline = read("timeline.json");
    assert!(!timeline.as_array().unwrap().is_empty() && timeline[0]["timestamp"].is_string());
    assert_eq!(run["tests"][0]["timeline"], timeline, "--monitor-output implies --monitor");
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let warpt = Warpt::new();
    let arguments = ["stress", "cpu", "--duration", "10000", "--threads", "1", "--json"];
    let mut command = warpt.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The handler is there before the first test is announced.
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("cpu compute (1 of 3)"), "{line}");
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let done = finished(child.wait_with_output().unwrap());
    assert_eq!(done.code, 4, "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    let tests = run["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 1, "the tests after it do not begin: {run}");
    assert_eq!(tests[0]["stopped"], true, "{run}");
}

#[test]
fn bad_arguments_are_exit_2() {
    let warpt = Warpt::new();
    for (arguments, part) in [
        (&["stress", "disk"][..], "storage"),
        (&["stress", "cpu", "--test", "hashng"], "hashing"),
        (&["stress", "cpu", "--duration", "0"], "seconds"),
        (&["stress", "cpu", "--threads", "0"], "threads"),
        (&["stress", "cpu", "--size", "much"], "64K"),
        (&["stress", "gpu", "--device", "cpu"], "names a GPU"),
        (&["stress", "cpu", "--json", "--export", "-"], "standard output"),
        (&["stress", "storage", "--directory", "missing"], "--directory missing: No such file"),
        (&["stress", "network", "--target", "127.0.0.1"], "HOST:PORT"),
        (&["stress", "network", "--target", "127.0.0.1:0"], "no port 0"),
        // What no chosen test uses is not ignored.
        (&["stress", "cpu", "--size", "1G"], "--size is for tests of ram and storage"),
        (&["stress", "ram", "--target", "127.0.0.1:9"], "--target is for tests of network"),
        (&["stress", "ram", "--directory", "."], "--directory is for tests of storage"),
        (&["stress", "network", "--threads", "2"], "--threads is for tests of cpu and ram"),
        (&["stress", "cpu", "--device", "cuda"], "--device is for tests of gpu"),
    ] {
        let done = warpt.run(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(done.stderr.contains(part), "{arguments:?}: {}", done.stderr);
    }
}
