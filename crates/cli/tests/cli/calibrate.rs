//! `warpt calibrate`: measuring, showing, drawing, predicting, and what is refused.

use std::os::unix::fs::FileTypeExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::warpt::{Finished, MLP, Warpt, finished};

/// A calibration of tiny sizes; on a busy machine it may be inconclusive.
fn calibrated(warpt: &Warpt, more: &[&str]) -> Value {
    let done = warpt.run(&[&["calibrate", "--smoke", "--output", "p.json"], more].concat());
    assert!([0, 4].contains(&done.code), "{} {}", done.code, done.stderr);
    read(warpt)
}

fn read(warpt: &Warpt) -> Value {
    serde_json::from_slice(&std::fs::read(warpt.path("p.json")).unwrap()).unwrap()
}

fn write(warpt: &Warpt, profile: &Value) {
    std::fs::write(warpt.path("p.json"), serde_json::to_string_pretty(profile).unwrap()).unwrap();
}

fn refused(warpt: &Warpt, arguments: &[&str], code: i32, words: &[&str]) -> Finished {
    let done = warpt.run(arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}", done.stderr);
    for word in words {
        assert!(done.stderr.contains(word), "{arguments:?} lacks {word}: {}", done.stderr);
    }
    done
}

#[test]
fn a_profile_has_limits_operations_and_patterns() {
    let warpt = Warpt::new();
    let profile =
        calibrated(&warpt, &["--hardware", "bench", "--peak-gflops", "100", "--peak-bandwidth", "20"]);
    assert_eq!((&profile["schema_version"], &profile["complete"]), (&json!(1), &json!(true)));
    assert_eq!(profile["machine"]["hardware_name"], "bench");
    assert_eq!(profile["theoretical"], json!({"peak_gflops": 100.0, "peak_bandwidth_gbps": 20.0}));
    for list in ["peaks", "bandwidth", "overheads", "operations", "fusion_profiles"] {
        assert!(!profile[list].as_array().unwrap().is_empty(), "{list}");
    }
    let levels: Vec<&str> =
        profile["bandwidth"].as_array().unwrap().iter().filter_map(|found| found["level"].as_str()).collect();
    assert!(levels.contains(&"L1") && levels.contains(&"DRAM"), "{levels:?}");
    let patterns = profile["fusion_profiles"].as_array().unwrap();
    let names: Vec<&str> = patterns.iter().filter_map(|entry| entry["fusion_pattern"].as_str()).collect();
    for name in ["Linear_Bias_GELU", "Conv2d_BatchNorm_ReLU", "QK^T", "FullAttention", "Add_LayerNorm"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for entry in patterns {
        assert!(entry["unfused_kernels"].as_u64() > entry["fused_kernels"].as_u64(), "{entry}");
        assert!(entry["memory_reduction"].as_f64() > Some(0.0), "{entry}");
        let (low, high) = (entry["speedup_ci"][0].as_f64(), entry["speedup_ci"][1].as_f64());
        assert!(
            low <= entry["speedup_factor"].as_f64() && entry["speedup_factor"].as_f64() <= high,
            "{entry}"
        );
    }
    // Two sizes of one pattern are two entries.
    assert!(patterns.iter().any(|entry| entry["dtype"] == "bf16"));
}

#[test]
fn one_family_alone_is_measured_where_that_is_asked_for() {
    let warpt = Warpt::new();
    let profile =
        calibrated(&warpt, &["--fusion-patterns", "linear", "--precision", "model", "--threads", "1"]);
    for entry in profile["fusion_profiles"].as_array().unwrap() {
        let name = entry["fusion_pattern"].as_str().unwrap();
        assert!(name.starts_with("Linear") || name.starts_with("Add"), "{name}");
        assert_eq!((&entry["dtype"], &entry["threads"]), (&json!("f32"), &json!(1)));
    }
}

#[test]
fn a_profile_is_shown_in_the_width_there_is_and_drawn() {
    let warpt = Warpt::new();
    calibrated(&warpt, &["--svg", "now.svg"]);
    for columns in ["60", "100"] {
        let shown = warpt.command(&["calibrate", "show", "p.json"]).env("COLUMNS", columns).output().unwrap();
        let shown = finished(shown);
        assert_eq!(shown.code, 0, "{}", shown.stderr);
        let width: usize = columns.parse().unwrap();
        for line in shown.stdout.lines() {
            assert!(line.chars().count() <= width, "{columns}: {line}");
        }
        for word in ["Linear_Bias", "verdict", "DRAM", "self-check"] {
            assert!(shown.stdout.contains(word), "{word}\n{}", shown.stdout);
        }
        assert!(shown.stdout.chars().any(|c| ('⠁'..='⣿').contains(&c)), "{}", shown.stdout);
    }
    assert_eq!(warpt.json(&["calibrate", "show", "p.json", "--json"]), read(&warpt));
    let plotted = warpt.run(&["calibrate", "plot", "p.json", "-o", "later.svg"]);
    assert_eq!(plotted.code, 0, "{}", plotted.stderr);
    let (now, later) =
        (std::fs::read(warpt.path("now.svg")).unwrap(), std::fs::read(warpt.path("later.svg")).unwrap());
    assert!(now.starts_with(b"<svg ") && now == later);
    let page = warpt.run(&["calibrate", "plot", "p.json", "-o", "page.html"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    let page = std::fs::read_to_string(warpt.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg "), "{page}");
    for word in [
        "Linear_Bias_GELU",
        "verdict",
        "<td>DRAM</td>",
        "dispatch",
        "self-check",
        "fingerprint",
        "load average",
    ] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn other_commands_find_the_profile_at_its_default_place() {
    let warpt = Warpt::new();
    refused(
        &warpt,
        &["calibrate", "show"],
        2,
        &["there is no profile of this machine", "run `warpt calibrate`"],
    );
    let done = warpt.run(&["calibrate", "--smoke", "--fusion-patterns", "linear"]);
    assert!([0, 4].contains(&done.code), "{}", done.stderr);
    assert!(warpt.path("data/warpt/machine.json").exists());
    let history = warpt.json(&["benchmark", "history", "--json"]);
    assert!(history.to_string().contains("\"calibrate\""), "{history}");
    assert_eq!(warpt.run(&["calibrate", "show"]).code, 0);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let run = warpt.run(&["run", "m.mlir", "--seed", "1", "--profile", "t.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let trace = std::fs::read_to_string(warpt.path("t.json")).unwrap();
    assert!(trace.contains("\"bound_by\"") && trace.contains("\"of_roofline\""), "{trace}");
    assert!(!run.stderr.contains("measuring the limits"), "{}", run.stderr);
    // One thread has limits of its own.
    let arithmetic = |threads: &str| {
        let name = format!("t{threads}.json");
        let run = ["run", "m.mlir", "--seed", "1", "--threads", threads, "--profile", &name];
        let run = warpt.run(&run);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(std::fs::read_to_string(warpt.path(&name)).unwrap().contains("\"bound_by\""));
        run.stderr.contains("measuring the limits of")
    };
    assert!(!arithmetic("1"), "one thread was calibrated");
    let more = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    assert!(arithmetic(&more.to_string()), "{more} threads were not");
}

#[test]
fn models_are_predicted_and_the_error_is_said() {
    let warpt = Warpt::new();
    calibrated(&warpt, &["--fusion-patterns", "linear"]);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let checked = warpt.json(&[
        "calibrate",
        "check",
        "m.mlir",
        "--machine",
        "p.json",
        "--precision",
        "model,bf16",
        "--json",
    ]);
    let models = checked["models"].as_array().unwrap();
    assert_eq!(models.len(), 2);
    for model in models {
        let (predicted, measured) =
            (model["predicted_ms"].as_f64().unwrap(), model["measured_ms"].as_f64().unwrap());
        assert!(predicted > 0.0 && measured > 0.0);
        assert!((model["error"].as_f64().unwrap() - (predicted / measured - 1.0)).abs() < 1e-9);
        assert_eq!(model["kernels"].as_array().unwrap().len(), 1);
        assert!(model["kernels"][0]["bound"]["resource"].is_string());
    }
    assert!(checked["worst_error"].as_f64() >= checked["geometric_mean_error"].as_f64());
    let text = warpt.run(&["calibrate", "check", "m.mlir", "--machine", "p.json"]);
    assert!(text.stdout.contains("in the geometric mean"), "{}", text.stdout);
    refused(
        &warpt,
        &["calibrate", "check", "m.mlir", "--machine", "p.json", "--fail-above", "0.0000001"],
        1,
        &["% off, more than"],
    );
}

#[test]
fn a_processor_that_is_slower_than_it_was_calibrated_is_waited_for_and_no_error_of_the_prediction() {
    let warpt = Warpt::new();
    let mut profile = calibrated(&warpt, &["--fusion-patterns", "linear"]);
    profile["self_check"]["pace_gflops"] = json!(1e9);
    write(&warpt, &profile);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let check = ["calibrate", "check", "m.mlir", "--machine", "p.json", "--patience", "0.1"];
    let text = warpt.run(&check);
    assert_eq!(text.code, 4, "{}", text.stderr);
    assert!(text.stderr.contains("1 of 1 runs are INCONCLUSIVE"), "{}", text.stderr);
    assert!(text.stdout.contains("no run was at the pace of the calibration"), "{}", text.stdout);
    let json = warpt.run(&[&check[..], &["--json", "--fail-above", "0.0000001"]].concat());
    assert_eq!(json.code, 4, "an error that is not the prediction's fails nothing: {}", json.stderr);
    let checked: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&checked["worst_error"], &checked["models"][0]["steady"]), (&Value::Null, &json!(false)));
    assert!(checked["models"][0]["pace"].as_f64().unwrap() < 1e-3, "{checked}");
}

#[test]
fn a_plan_shows_predicted_times_and_takes_the_machines_answer() {
    let warpt = Warpt::new();
    let mut profile = calibrated(&warpt, &["--fusion-patterns", "linear"]);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let plan =
        |warpt: &Warpt| warpt.json(&["opt", "m.mlir", "--emit", "fusion", "--machine", "p.json", "--json"]);
    for entry in profile["fusion_profiles"].as_array_mut().unwrap() {
        entry["verdict"] = json!("strong");
    }
    write(&warpt, &profile);
    let fused = plan(&warpt);
    assert_eq!(fused["clusters"].as_array().unwrap().len(), 1);
    let [before, after] = ["before", "after"].map(|when| fused[when]["predicted_ms"].as_f64().unwrap());
    assert!(before > after && after > 0.0, "{before} {after}");
    assert!(fused["clusters"][0]["predicted"]["bound"].is_string());
    let text = warpt.run(&["opt", "m.mlir", "--emit", "fusion", "--machine", "p.json"]).stdout;
    assert!(text.contains("predicted") && text.contains("bound by"), "{text}");
    assert!(!warpt.run(&["opt", "m.mlir", "--emit", "fusion"]).stdout.contains("predicted"));
    for entry in profile["fusion_profiles"].as_array_mut().unwrap() {
        entry["verdict"] = json!("slower");
    }
    write(&warpt, &profile);
    let apart = plan(&warpt);
    assert_eq!(apart["clusters"].as_array().unwrap().len(), 2);
    assert_eq!(apart, plan(&warpt));
    // The result is the same however it is planned.
    for (machine, outputs) in [(None, "a.safetensors"), (Some("p.json"), "b.safetensors")] {
        let mut arguments = vec!["run", "m.mlir", "--seed", "3", "--outputs", outputs];
        arguments.extend(machine.iter().flat_map(|machine| ["--machine", machine]));
        assert_eq!(warpt.run(&arguments).code, 0);
    }
    let bytes = |name: &str| std::fs::read(warpt.path(name)).unwrap();
    assert_eq!(bytes("a.safetensors"), bytes("b.safetensors"));
    refused(
        &warpt,
        &["opt", "m.mlir", "--machine", "p.json"],
        2,
        &["--machine has an effect with --emit fusion"],
    );
    let cuda = ["opt", "m.mlir", "--emit", "fusion", "--machine", "p.json", "--device", "cuda"];
    refused(&warpt, &cuda, 2, &["nothing about cuda:0; it is about cpu"]);
}

#[test]
fn profiles_that_cannot_be_used_are_refused_with_the_reason() {
    let warpt = Warpt::new();
    let good = calibrated(&warpt, &["--fusion-patterns", "linear"]);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let show = ["calibrate", "show", "p.json"];

    let mut newer = good.clone();
    newer["schema_version"] = json!(99);
    write(&warpt, &newer);
    refused(&warpt, &show, 2, &["p.json", "version 99", "use a newer warpt"]);

    let text = serde_json::to_string_pretty(&good).unwrap();
    std::fs::write(warpt.path("p.json"), &text[..text.len() * 2 / 3]).unwrap();
    refused(&warpt, &show, 2, &["p.json", "cut off at line"]);

    let at = text.find("\"gops\": ").unwrap() + 8;
    let end = at + text[at..].find(',').unwrap();
    std::fs::write(warpt.path("p.json"), format!("{}NaN{}", &text[..at], &text[end..])).unwrap();
    refused(&warpt, &show, 2, &["p.json", "NaN is no measurement", "line "]);
    std::fs::write(warpt.path("p.json"), format!("{}0{}", &text[..at], &text[end..])).unwrap();
    refused(&warpt, &show, 2, &["peaks[0].gops"]);
    std::fs::write(warpt.path("p.json"), "[]").unwrap();
    refused(&warpt, &show, 2, &["not a profile of `warpt calibrate`"]);
    refused(&warpt, &["calibrate", "show", "nowhere.json"], 2, &["nowhere.json"]);

    let mut stopped = good.clone();
    stopped["self_check"]["pace_gflops"] = json!(0.0);
    write(&warpt, &stopped);
    refused(&warpt, &show, 2, &["self_check.pace_gflops"]);

    let mut other = good;
    other["machine"]["cpu"] = json!("Z80");
    other["machine"]["threads"] = json!(7);
    write(&warpt, &other);
    for arguments in [
        vec!["calibrate", "check", "m.mlir", "--machine", "p.json"],
        vec!["run", "m.mlir", "--seed", "1", "--machine", "p.json"],
        vec!["calibrate", "--smoke", "--resume", "--output", "p.json"],
    ] {
        refused(&warpt, &arguments, 2, &["another machine", "CPU: Z80 and", "threads: 7 and"]);
    }
    // Another machine's profile can be looked at and planned for.
    assert_eq!(warpt.run(&show).code, 0);
    assert_eq!(warpt.run(&["opt", "m.mlir", "--emit", "fusion", "--machine", "p.json"]).code, 0);
}

#[test]
fn nonsense_on_the_command_line_is_refused() {
    let warpt = Warpt::new();
    for zero in ["0", "-1", "nan", "inf", "x"] {
        let option = format!("--peak-gflops={zero}");
        refused(&warpt, &["calibrate", &option], 2, &["--peak-gflops", "expected a number above 0"]);
        let option = format!("--peak-bandwidth={zero}");
        refused(&warpt, &["calibrate", &option], 2, &["--peak-bandwidth"]);
    }
    refused(
        &warpt,
        &["calibrate", "--fusion-patterns", "gemm"],
        2,
        &["--fusion-patterns gemm", "linear, conv and attention"],
    );
    refused(&warpt, &["calibrate", "--device", "tpu"], 2, &["tpu"]);
    refused(&warpt, &["calibrate", "--threads", "0"], 2, &["--threads"]);
    refused(
        &warpt,
        &["calibrate", "--threads", "100000"],
        2,
        &["100000 threads", "give fewer with --threads"],
    );
    refused(&warpt, &["calibrate", "--resume", "--output", "none.json"], 2, &["none.json"]);
    refused(&warpt, &["calibrate", "--output", "no/such/folder/p.json"], 3, &["cannot write"]);
    refused(&warpt, &["calibrate", "check"], 2, &["MODEL"]);
    for percent in ["0", "-3", "nan"] {
        let option = format!("--fail-above={percent}");
        refused(&warpt, &["calibrate", "check", "m.mlir", &option], 2, &["--fail-above"]);
    }
    for option in ["--patience=-1", "--patience=NaN", "--patience=soon"] {
        refused(&warpt, &["calibrate", "check", "m.mlir", option], 2, &["--patience", "seconds"]);
    }
    let absent = warpt.run(&["calibrate", "--smoke", "--device", "hip:7", "--output", "p.json"]);
    assert_eq!(absent.code, 3, "{}", absent.stderr);
    assert!(absent.stderr.contains("hip:7"), "{}", absent.stderr);
    assert!(!warpt.path("p.json").exists());
}

#[test]
fn a_pipe_gets_the_profile_once_and_whole() {
    let warpt = Warpt::new();
    let tiny = ["calibrate", "--smoke", "--fusion-patterns", "linear", "--precision", "model", "-o"];
    let done = warpt.run(&[&tiny[..], &["-"]].concat());
    assert!([0, 4].contains(&done.code), "{} {}", done.code, done.stderr);
    let profile: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(profile["complete"], true);
    assert!(done.stderr.contains("Linear_Bias"), "{}", done.stderr);

    let fifo = warpt.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || std::fs::read(fifo).unwrap())
    };
    let done = warpt.run(&[&tiny[..], &["fifo"]].concat());
    assert!([0, 4].contains(&done.code), "{} {}", done.code, done.stderr);
    let profile: Value = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    assert_eq!((&profile["schema_version"], &profile["complete"]), (&json!(1), &json!(true)));
    // The pipe is still one, and no file took its place.
    assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
    refused(&warpt, &["calibrate", "--smoke", "--resume", "-o", "-"], 2, &["not standard output"]);
}

#[test]
fn noise_makes_a_calibration_inconclusive_and_is_named() {
    let warpt = Warpt::new();
    let arguments = [
        "calibrate",
        "--smoke",
        "--output",
        "p.json",
        "--fusion-patterns",
        "linear",
        "--inject-noise",
        "1.5",
    ];
    refused(&warpt, &arguments, 4, &["warpt: ", "run on a machine"]);
    let profile = read(&warpt);
    assert_eq!(profile["self_check"]["verdict"], "INCONCLUSIVE");
    assert!(!profile["self_check"]["disturbances"].as_array().unwrap().is_empty());
    assert_eq!(profile["complete"], true);
    // What is predicted of such a profile is no better, and says so.
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let checked = warpt.run(&["calibrate", "check", "m.mlir", "--machine", "p.json", "--json"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(checked.stderr.contains("p.json: measured on a machine too noisy to say"), "{}", checked.stderr);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert!(checked["disturbances"][0].as_str().unwrap().contains("too noisy"), "{checked}");
}

#[test]
fn an_interrupted_calibration_keeps_what_it_has_and_goes_on() {
    let warpt = Warpt::new();
    let whole = calibrated(&warpt, &["--fusion-patterns", "linear", "--precision", "model"]);
    let said = ["--hardware", "bench", "--peak-gflops", "100"];
    let mut command = warpt.command(&[&["calibrate", "--quick", "--output", "p.json"], &said[..]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !warpt.path("p.json.partial").exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "nothing was kept");
        std::thread::sleep(Duration::from_millis(50));
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let done = finished(child.wait_with_output().unwrap());
    assert_eq!(done.code, 4, "{}", done.stderr);
    assert!(done.stderr.contains("--resume goes on"), "{}", done.stderr);
    // The whole profile of before stays, and nothing is predicted from the other.
    assert_eq!(read(&warpt), whole);
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let partial = ["opt", "m.mlir", "--emit", "fusion", "--machine", "p.json.partial"];
    refused(&warpt, &partial, 2, &["p.json.partial", "is not complete", "--resume"]);
    let kept: Value = serde_json::from_slice(&std::fs::read(warpt.path("p.json.partial")).unwrap()).unwrap();
    assert_eq!(kept["complete"], false);
    assert!(!kept["overheads"].as_array().unwrap().is_empty());
    let resumed = calibrated(&warpt, &["--resume", "--fusion-patterns", "linear"]);
    assert_eq!((&resumed["complete"], &resumed["overheads"]), (&json!(true), &kept["overheads"]));
    assert_eq!(resumed["created"], kept["created"]);
    assert_eq!(
        (&resumed["machine"]["hardware_name"], &resumed["theoretical"]["peak_gflops"]),
        (&json!("bench"), &json!(100.0))
    );
    assert!(!warpt.path("p.json.partial").exists());
    refused(&warpt, &["calibrate", "--resume", "--output", "p.json"], 2, &["begun with --quick", "without"]);
}
