//! `warpt benchmark list`, `describe` and `run`.

use serde_json::Value;

use crate::warpt::{QUICK, Warpt};

fn names(specs: &Value) -> Vec<&str> {
    specs.as_array().unwrap().iter().map(|spec| spec["id"]["name"].as_str().unwrap()).collect()
}

#[test]
fn list_shows_the_micro_suite_and_filters_it() {
    let warpt = Warpt::new();
    let listing = warpt.json(&["benchmark", "list", "--json"]);
    let micro = &listing["suites"][0];
    assert_eq!(micro["name"], "micro");
    let all = [
        "cpu_flops",
        "mem_bandwidth",
        "mem_latency",
        "disk_io",
        "net_bandwidth",
        "gpu_flops",
        "gpu_bandwidth",
    ];
    assert_eq!(names(&micro["benchmarks"]), all);
    let listing =
        warpt.json(&["benchmark", "list", "--suite", "micro", "--component", "gpu,storage", "--json"]);
    assert_eq!(names(&listing["suites"][0]["benchmarks"]), ["disk_io", "gpu_flops", "gpu_bandwidth"]);
    let text = warpt.run(&["benchmark", "list"]).stdout;
    assert!(all.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn describe_shows_the_parameters_that_run_accepts() {
    let warpt = Warpt::new();
    let spec = warpt.json(&["benchmark", "describe", "--suite", "micro", "--benchmark", "disk_io", "--json"]);
    for field in
        ["id", "components", "kind", "description", "default_duration_seconds", "external_tool", "params"]
    {
        assert!(spec.get(field).is_some(), "{field} is missing");
    }
    let text = warpt.run(&["benchmark", "describe", "--benchmark", "disk_io"]).stdout;
    for name in spec["params"].as_object().unwrap().keys() {
        assert!(text.contains(name.as_str()), "{name} is not in\n{text}");
    }
}

#[test]
fn dry_run_prints_what_would_run_and_runs_nothing() {
    let warpt = Warpt::new();
    let specs = warpt.json(&[
        "benchmark",
        "run",
        "--component",
        "cpu,ram",
        "--component",
        "network",
        "--dry-run",
        "--json",
    ]);
    assert_eq!(names(&specs), ["cpu_flops", "mem_bandwidth", "net_bandwidth"]);
    let done = warpt.run(&["benchmark", "run", "--suite", "micro", "--component", "ram", "--dry-run"]);
    assert!(
        done.stdout.contains("micro/mem_latency") && !done.stdout.contains("cpu_flops"),
        "{}",
        done.stdout
    );
    assert!(warpt.json(&["benchmark", "history", "--json"]).as_array().unwrap().is_empty());
}

#[test]
fn a_run_gives_the_whole_record() {
    let warpt = Warpt::new();
    let run = warpt.json(
        &[&QUICK[..], &["--rounds", "2", "--json", "--monitor", "--monitor-interval", "0.05"]].concat(),
    );
    assert_eq!(run["schema_version"], 1);
    assert_eq!(run["components"], serde_json::json!(["cpu"]));
    assert_eq!(run["metadata"]["rounds"], "2");
    let result = &run["benchmarks"][0];
    assert_eq!((&result["success"], &result["verdict"]), (&Value::Bool(true), &Value::from("PASS")));
    assert_eq!(result["spec"]["params"]["dtypes"], "f32");
    assert!(result["start_time"].as_str().unwrap() < result["end_time"].as_str().unwrap());
    assert!(result["system"]["hardware"].is_object());
    assert!(result["conditions"].get("foreign_cpu_percent").is_some());
    assert!(!run["timeline"].as_array().unwrap().is_empty());
    let metrics = result["metrics"].as_array().unwrap();
    assert!(!metrics.is_empty());
    for metric in metrics {
        assert_eq!((&metric["name"], &metric["unit"]), (&Value::from("gflops"), &Value::from("GFLOP/s")));
        assert_eq!(
            (&metric["tags"]["dtype"], &metric["tags"]["kernel"]),
            (&Value::from("f32"), &Value::from("fma"))
        );
        let statistics = &metric["statistics"];
        assert_eq!(statistics["round_count"], 2);
        let number = |name: &str| statistics[name].as_f64().unwrap();
        let value = metric["value"].as_f64().unwrap();
        assert!(value > 0.0 && number("ci_low") <= value && value <= number("ci_high"));
        assert!(number("min") <= value && value <= number("max"));
    }
}

#[test]
fn files_are_written_under_the_names_asked_for() {
    let warpt = Warpt::new();
    let files =
        ["--export", "--export-file", "mine.json", "--monitor-output", "timeline.json", "--rounds", "1"];
    let done = warpt.run(&[&QUICK[..], &files].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(warpt.path(name)).unwrap()).unwrap() };
    let names = warpt.files();
    let own = names.iter().find(|name| name.starts_with("warpt_benchmark_")).expect("a file of its own name");
    assert!(own.starts_with("warpt_benchmark_cpu_flops_2") && own.ends_with(".json"), "{own}");
    assert_eq!(read(own), read("mine.json"));
    let summary = done.stdout.split_once("timeline: ").expect("a summary of the timeline").1;
    assert!(summary.contains("written to timeline.json"), "{summary}");
    for word in ["min", "mean", "max", "CPU utilization", "memory used", "GiB"] {
        assert!(summary.contains(word), "no {word} in {summary}");
    }
    let timeline = read("timeline.json");
    for field in [
        "timestamp",
        "cpu_utilization_percent",
        "total_memory_bytes",
        "memory_utilization_percent",
        "gpu_usage",
    ] {
        assert!(timeline[0].get(field).is_some(), "{field} is missing");
    }
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn the_summary_of_the_timeline_says_where_the_rest_is() {
    let warpt = Warpt::new();
    let monitor = ["--monitor", "--monitor-interval", "0.05", "--rounds", "1"];
    let done = warpt.run(&[&QUICK[..], &monitor].concat());
    let id = done.stderr.split_once("kept in the history as ").unwrap().1.trim();
    assert!(done.stdout.contains(&format!("history show {id} --json")), "{}", done.stdout);
    let shown = warpt.json(&["benchmark", "history", "show", id, "--json"]);
    assert!(!shown["timeline"].as_array().unwrap().is_empty());
    let done = warpt.run(&[&QUICK[..], &monitor, &["--no-history"]].concat());
    assert!(done.stdout.contains("--monitor-output FILE"), "{}", done.stdout);
    let quiet = warpt.run(&[&QUICK[..], &["--rounds", "1"]].concat());
    assert!(!quiet.stdout.contains("timeline"), "{}", quiet.stdout);
}

#[test]
fn what_cannot_run_here_is_skipped_with_its_reason() {
    let warpt = Warpt::new();
    let absent = ["--benchmark", "gpu_flops", "--param", "device=999", "--json"];
    let done = warpt.run(&[&["benchmark", "run"], &absent[..]].concat());
    assert_eq!(done.code, 3, "{}", done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(run["benchmarks"][0]["verdict"], "SKIPPED");
    assert!(run["benchmarks"][0]["error_message"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn the_configuration_file_stands_below_environment_and_flags() {
    let warpt = Warpt::new();
    std::fs::create_dir_all(warpt.path("config/warpt")).unwrap();
    std::fs::write(warpt.path("config/warpt/config.toml"), "[benchmark.run]\nrounds = 3\n").unwrap();
    let plan = ["benchmark", "run", "--component", "cpu", "--dry-run"];
    assert!(warpt.run(&plan).stdout.contains("in 3 rounds"));
    let environment = warpt.command(&plan).env("WARPT_ROUNDS", "4").output().unwrap();
    assert!(String::from_utf8(environment.stdout).unwrap().contains("in 4 rounds"));
    assert!(warpt.run(&[&plan[..], &["--rounds", "2"]].concat()).stdout.contains("in 2 rounds"));

    std::fs::write(warpt.path("config/warpt/config.toml"), "[benchmark.run]\nround = 3\n").unwrap();
    let done = warpt.run(&plan);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("did you mean `rounds`?"), "{}", done.stderr);
}
