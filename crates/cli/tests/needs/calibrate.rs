//! `warpt calibrate` on a GPU that only pretends: what is measured, shown, and used by other commands.

use libtest_mimic::Trial;
use serde_json::Value;

use crate::warpt::{MLP, Warpt};
use crate::{pretend, trial};

/// The tests on a pretended GPU.
pub(crate) fn pretended() -> Vec<Trial> {
    vec![trial(
        "a_pretended_gpu_is_calibrated_and_its_profile_used",
        a_pretended_gpu_is_calibrated_and_its_profile_used,
    )]
}

fn a_pretended_gpu_is_calibrated_and_its_profile_used() {
    let warpt = Warpt::new();
    let device = ["--device", "cuda"];
    let smoke =
        ["calibrate", "--smoke", "--fusion-patterns", "linear", "--precision", "model", "-o", "p.json"];
    let done = pretend::run(&warpt, &[&smoke[..], &device].concat(), &[]);
    assert!([0, 4].contains(&done.code), "{} {}", done.code, done.stderr);
    let profile: Value = serde_json::from_slice(&std::fs::read(warpt.path("p.json")).unwrap()).unwrap();
    assert_eq!(profile["complete"], true);
    let named = |list: &str, field: &str, name: &str| {
        let found = profile[list].as_array().unwrap().iter();
        found.filter(|entry| entry["device"] == "cuda:0").any(|entry| entry[field] == name)
    };
    for what in ["graph launch", "kernel launch"] {
        assert!(named("overheads", "what", what), "{what}");
    }
    for level in ["L2", "HBM", "PCIe"] {
        assert!(named("bandwidth", "level", level), "{level}");
    }
    assert!(
        named("operations", "op", "linear") && named("fusion_profiles", "fusion_pattern", "Linear_Bias_ReLU")
    );
    for entry in profile["fusion_profiles"].as_array().unwrap() {
        assert!(entry["unfused_kernels"].as_u64() > entry["fused_kernels"].as_u64(), "{entry}");
    }
    let skipped = profile["self_check"]["skipped"].to_string();
    for dtype in ["int8", "e4m3"] {
        assert!(named("operations", "dtype", dtype) || skipped.contains(dtype), "{dtype}: {skipped}");
    }
    goes_on_with_what_is_missing(&warpt, &profile, &[&smoke[..], &device].concat());
    std::fs::write(warpt.path("m.mlir"), MLP).unwrap();
    let run = ["run", "m.mlir", "--seed", "1", "--profile", "t.json", "--machine", "p.json"];
    let done = pretend::run(&warpt, &[&run[..], &device].concat(), &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let trace = std::fs::read_to_string(warpt.path("t.json")).unwrap();
    assert!(trace.contains("\"bound_by\""), "{trace}");
    let plan = warpt.json(&[
        "opt",
        "m.mlir",
        "--emit",
        "fusion",
        "--machine",
        "p.json",
        "--device",
        "cuda",
        "--json",
    ]);
    assert!(plan["after"]["predicted_ms"].as_f64() > Some(0.0), "{plan}");
    let check = ["calibrate", "check", "m.mlir", "--machine", "p.json", "--json"];
    let done = pretend::run(&warpt, &[&check[..], &device].concat(), &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let checked: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(checked["models"][0]["device"], "cuda:0");
}

/// Calibrates again what was taken out of each list, and finds the same entries.
fn goes_on_with_what_is_missing(warpt: &Warpt, whole: &Value, calibrate: &[&str]) {
    let fields = [
        ("peaks", &["dtype", "isa", "mode"][..]),
        ("bandwidth", &["level", "access"]),
        ("overheads", &["what"]),
        ("operations", &["op", "shape", "dtype"]),
        ("cold_weights", &["shape", "dtype"]),
        ("fusion_profiles", &["fusion_pattern", "input_shape", "dtype"]),
    ];
    let entries = |profile: &Value| {
        let of = |(list, fields): &(&str, &[&str])| {
            let name =
                |entry: &Value| fields.iter().map(|&field| entry[field].to_string()).collect::<Vec<_>>();
            let mut names: Vec<Vec<String>> = profile[*list].as_array().unwrap().iter().map(name).collect();
            names.sort_unstable();
            names
        };
        fields.iter().map(of).collect::<Vec<_>>()
    };
    let mut part = whole.clone();
    for (list, _) in &fields {
        let list = part[*list].as_array_mut().unwrap();
        list.truncate(list.len() / 2);
    }
    part["complete"] = Value::Bool(false);
    std::fs::write(warpt.path("p.json.partial"), part.to_string()).unwrap();
    let done = pretend::run(warpt, &[calibrate, &["--resume"]].concat(), &[]);
    assert!([0, 4].contains(&done.code), "{} {}", done.code, done.stderr);
    let resumed: Value = serde_json::from_slice(&std::fs::read(warpt.path("p.json")).unwrap()).unwrap();
    assert_eq!(resumed["complete"], true);
    assert_eq!(entries(&resumed), entries(whole));
    assert!(!warpt.path("p.json.partial").exists());
}
