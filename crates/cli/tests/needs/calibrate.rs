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
