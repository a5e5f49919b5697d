//! `warpt benchmark compare` on records made up for it: verdicts, formats and exit codes.

use serde_json::{Value, json};

use crate::warpt::Warpt;

/// A record of one benchmark with one metric, of which less is better, around the value, on a machine with that CPU.
fn record(value: f64, cpu: &str) -> Value {
    let rounds: Vec<Vec<f64>> =
        (0..5).map(|round| (0..5).map(|i| value * (1.0 + 0.001 * f64::from(round + i))).collect()).collect();
    json!({
        "schema_version": 1, "run_id": "", "tool_version": "0.1.0", "suite": "micro", "components": ["ram"],
        "metadata": null,
        "benchmarks": [{
            "spec": {
                "id": {"suite": "micro", "name": "mem_latency"}, "components": ["ram"], "kind": "synthetic",
                "description": null, "default_duration_seconds": 10, "external_tool": null, "params": null
            },
            "metrics": [{
                "name": "latency", "value": value, "unit": "ns", "higher_is_better": false, "tags": {"level": "L1"},
                "statistics": {
                    "sample_count": 25, "round_count": 5, "mean": value, "mad": 0.0, "min": value, "max": value,
                    "ci_low": value, "ci_high": value, "confidence": 0.95,
                    "outliers": {"low_severe": 0, "low_mild": 0, "high_mild": 0, "high_severe": 0},
                    "rounds": rounds
                }
            }],
            "success": true, "error_message": null,
            "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:10Z",
            "system": {"hardware": {"cpu": {"model": cpu}}, "software": {}}
        }]
    })
}

/// A home with a run, one that is slower by a fifth, the first on another machine, and one without samples.
fn home() -> Warpt {
    let warpt = Warpt::new();
    let mut bare = record(100.0, "A");
    bare["benchmarks"][0]["metrics"][0].as_object_mut().unwrap().remove("statistics");
    let mut failed = record(100.0, "A");
    failed["benchmarks"][0]["metrics"] = json!([]);
    failed["benchmarks"][0]["success"] = json!(false);
    failed["benchmarks"][0]["error_message"] = json!("out of memory");
    let files = [
        ("base.json", record(100.0, "A")),
        ("slow.json", record(120.0, "A")),
        ("other.json", record(100.0, "B")),
        ("bare.json", bare),
        ("failed.json", failed),
    ];
    for (name, record) in files {
        std::fs::write(warpt.path(name), record.to_string()).unwrap();
    }
    warpt
}

#[test]
fn exit_codes_follow_the_verdict() {
    let warpt = home();
    for (arguments, code, verdict) in [
        (&["base.json", "base.json"][..], 0, "UNCHANGED"),
        (&["base.json", "slow.json"], 0, "REGRESSED"),
        (&["base.json", "slow.json", "--fail-on-regression"], 1, "REGRESSED"),
        (&["slow.json", "base.json", "--fail-on-regression"], 0, "IMPROVED"),
        (&["base.json", "slow.json", "--fail-on-regression", "--noise-threshold", "30"], 0, "UNCHANGED"),
        (&["base.json", "bare.json"], 0, "INCONCLUSIVE"),
        (&["base.json", "bare.json", "--fail-on-regression"], 4, "INCONCLUSIVE"),
        (&["base.json", "failed.json", "--fail-on-regression"], 1, "REGRESSED"),
        (&["failed.json", "failed.json"], 4, "INCONCLUSIVE"),
        (&["base.json", "other.json", "--force"], 0, "UNCHANGED"),
    ] {
        let done = warpt.run(&[&["benchmark", "compare"], arguments].concat());
        assert_eq!(done.code, code, "{arguments:?}: {}{}", done.stdout, done.stderr);
        let last = done.stdout.lines().last().unwrap_or_default();
        assert!(last.starts_with(verdict), "{arguments:?}: {}", done.stdout);
    }
}

/// The record with the speed of the core around each sample.
fn at_speed(mut record: Value, speed: f64) -> Value {
    let statistics = &mut record["benchmarks"][0]["metrics"][0]["statistics"];
    statistics["core_speeds"] = json!(vec![vec![speed; 5]; 5]);
    record
}

#[test]
fn a_change_at_equal_speed_stands_beside_that_of_the_values() {
    let warpt = Warpt::new();
    // Ten percent slower on a core that is ten percent slower. What the samples of a record scatter, the speeds explain.
    let mut slow = at_speed(record(110.0, "A"), 1.0 / 1.1);
    let mut base = at_speed(record(100.0, "A"), 1.0);
    for record in [&mut slow, &mut base] {
        let statistics = &mut record["benchmarks"][0]["metrics"][0]["statistics"];
        let samples = statistics["rounds"].clone();
        for (round, samples) in samples.as_array().unwrap().iter().enumerate() {
            for (at, sample) in samples.as_array().unwrap().iter().enumerate() {
                let speed = 100.0 / sample.as_f64().unwrap();
                statistics["core_speeds"][round][at] = json!(speed * (1.0 + 1e-5 * (round * at) as f64));
            }
        }
    }
    std::fs::write(warpt.path("base.json"), base.to_string()).unwrap();
    std::fs::write(warpt.path("slow.json"), slow.to_string()).unwrap();
    let arguments = ["benchmark", "compare", "base.json", "slow.json"];
    let json = warpt.json(&[&arguments[..], &["--json"]].concat());
    let metric = &json["metrics"][0];
    assert!((metric["values_change_percent"].as_f64().unwrap() - 10.0).abs() < 0.01, "{metric}");
    assert!(metric["change_percent"].as_f64().unwrap().abs() < 0.1, "{metric}");
    assert_eq!(metric["speed_adjusted"], true);
    let text = warpt.run(&arguments).stdout;
    assert!(text.contains("+10.0 %, at equal core speed +0.0 %"), "{text}");
}

#[test]
fn a_value_that_contradicts_its_samples_is_refused() {
    let warpt = home();
    let mut wrong = record(100.0, "A");
    wrong["benchmarks"][0]["metrics"][0]["value"] = json!(50.0);
    std::fs::write(warpt.path("wrong.json"), wrong.to_string()).unwrap();
    let done = warpt.run(&["benchmark", "compare", "base.json", "wrong.json"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(
        done.stderr.contains("the later run cannot be trusted: micro/mem_latency latency is 50 ns"),
        "{}",
        done.stderr
    );
}

#[test]
fn one_sample_has_no_interval() {
    let warpt = Warpt::new();
    let mut one = record(100.0, "A");
    let statistics = &mut one["benchmarks"][0]["metrics"][0]["statistics"];
    (statistics["sample_count"], statistics["rounds"]) = (json!(1), json!([[100.0]]));
    one["run_id"] = json!("one");
    std::fs::write(warpt.path("one.json"), one.to_string()).unwrap();
    let shown = warpt.run(&["benchmark", "history", "show", "one.json"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("±?") && !shown.stdout.contains("±0.0 %"), "{}", shown.stdout);
}

#[test]
fn different_machines_and_bad_thresholds_are_refused() {
    let warpt = home();
    let done = warpt.run(&["benchmark", "compare", "base.json", "other.json"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("CPU: A and B") && done.stderr.contains("--force"), "{}", done.stderr);
    let done = warpt.run(&["benchmark", "compare", "base.json", "slow.json", "--noise-threshold=-1"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("noise threshold of -1 %"), "{}", done.stderr);
    assert_eq!(warpt.run(&["benchmark", "compare", "base.json"]).code, 2);
}

#[test]
fn every_format_goes_to_standard_output_or_a_file() {
    let warpt = home();
    let json = warpt.json(&["benchmark", "compare", "base.json", "slow.json", "--json"]);
    assert_eq!(json["verdict"], "regressed");
    assert!((json["metrics"][0]["change_percent"].as_f64().unwrap() - 20.0).abs() < 0.5, "{json}");

    let page = warpt.run(&["benchmark", "compare", "base.json", "slow.json", "--format", "markdown"]);
    assert!(page.stdout.contains("| micro/mem\\_latency | latency L1 |"), "{}", page.stdout);

    let arguments =
        ["benchmark", "compare", "base.json", "slow.json", "--format", "junit", "--output", "report.xml"];
    let done = warpt.run(&arguments);
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{}", done.stderr);
    let xml = std::fs::read_to_string(warpt.path("report.xml")).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("latency L1"), "{xml}");

    let nowhere = ["benchmark", "compare", "base.json", "slow.json", "--output", "no/such/folder/x"];
    assert_eq!(warpt.run(&nowhere).code, 3);
}
