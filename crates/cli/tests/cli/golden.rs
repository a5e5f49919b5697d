//! `warpt run --save` and `warpt validate` on what the Python package left of a real training step.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use warpforge::Tensor;
use warpforge::io::safetensors;

use crate::warpt::{Warpt, finished};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/step.pt2");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/step.golden");

/// Runs the step with its own weights, or with those of a file, and saves it as `candidate`.
fn run(warpt: &Warpt, model: &str, weights: &[&str]) {
    let inputs = format!("{GOLDEN}/inputs.safetensors");
    let arguments = ["run", model, "--inputs", &inputs, "--tier", "correctness", "--save", "candidate"];
    let done = warpt.run(&[&arguments, weights].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
}

/// Leaves the weights of `w.safetensors` as `other.safetensors` with the first number of one of them changed.
fn alter(warpt: &Warpt, name: &str) {
    let mut weights = safetensors::read(&warpt.path("w.safetensors")).unwrap();
    let weight = weights.get_mut(name).unwrap();
    let mut bytes = weight.bytes().to_vec();
    let first = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) + 0.125;
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    *weight = Tensor::from_bytes(weight.element_type(), weight.shape().clone(), &bytes).unwrap();
    let named = weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
    safetensors::write(&warpt.path("other.safetensors"), named).unwrap();
}

/// A home with a run in which a weight of the second layer is not PyTorch's.
fn perturbed() -> Warpt {
    let warpt = Warpt::new();
    let done = warpt.run(&["import", MODEL, "-o", "step.mlir", "--weights", "w.safetensors"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    alter(&warpt, "second.weight");
    run(&warpt, "step.mlir", &["--weights", "other.safetensors"]);
    warpt
}

fn validate(flags: &[&str]) -> Vec<String> {
    let folders = ["validate", "--golden", GOLDEN, "--candidate", "candidate"];
    folders.iter().chain(flags).map(|&flag| flag.to_owned()).collect()
}

fn judged(warpt: &Warpt, flags: &[&str]) -> crate::warpt::Finished {
    let arguments = validate(flags);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    warpt.run(&arguments)
}

#[test]
fn a_run_of_the_archive_matches_pytorchs() {
    let warpt = Warpt::new();
    run(&warpt, MODEL, &[]);
    let done = judged(&warpt, &["--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&report["verdict"], &report["first_operation"]), (&json!("PASS"), &Value::Null));
    for class in ["inputs", "activations", "gradients", "losses", "outputs"] {
        let found = report["classes"].as_array().unwrap().iter().find(|found| found["class"] == class);
        let counts = &found.unwrap_or_else(|| panic!("no {class} in {report}"))["counts"];
        assert!(counts["compared"].as_u64() > Some(0), "{class}: {counts}");
        assert_eq!((&counts["failed"], &counts["missing"]), (&json!(0), &json!(0)), "{class}");
    }
}

#[test]
fn a_wrong_weight_is_found_at_the_first_operation_that_has_it() {
    let warpt = perturbed();
    let done = judged(&warpt, &["--json"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let first = &report["first_operation"];
    assert_eq!(first["source"], "make.py:44", "{first}");
    assert_eq!(first["module"], "second", "{first}");
    let worst = &first["figures"]["worst"];
    let value = |side: &str| worst[side].as_str().unwrap().parse::<f64>().unwrap();
    assert!((value("golden") - value("candidate")).abs() > 1e-3, "{worst}");
    assert!(!first["figures"]["histogram"].as_array().unwrap().is_empty());
    assert_eq!(first["origin"]["verdict"], "arose_here", "{first}");
    let later = report["operations"].as_array().unwrap();
    assert!(
        later.len() > 1 && later.iter().skip(1).any(|one| one["origin"]["verdict"] == "inherited"),
        "{later:?}"
    );

    let text = judged(&warpt, &[]).stdout;
    for expected in [
        "first operation out of tolerance",
        "make.py:44",
        "golden",
        "arose here",
        "difference  elements",
        "FAIL",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

/// Runs an encoder with its own weights, or with those of a file, and compares it with PyTorch's run.
fn encoder(warpt: &Warpt, form: &str, weights: &[&str]) -> Value {
    let (model, golden) = (format!("{DATA}/{form}.pt2"), format!("{DATA}/{form}.golden"));
    let inputs = format!("{golden}/inputs.safetensors");
    let arguments = ["run", &model, "--inputs", &inputs, "--tier", "correctness", "--save", form];
    let done = warpt.run(&[&arguments, weights].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    warpt.json(&["validate", "--golden", &golden, "--candidate", form, "--report-only", "--json"])
}

/// The tensors that go by the names of modules, with their status.
fn by_module(report: &Value) -> BTreeMap<&str, &str> {
    let tensors = report["tensors"].as_array().unwrap().iter();
    let named = tensors.map(|one| (one["name"].as_str().unwrap(), one["status"].as_str().unwrap()));
    named.filter_map(|(name, status)| Some((name.strip_prefix("modules/")?, status))).collect()
}

#[test]
fn what_modules_return_is_compared_by_their_names() {
    let warpt = Warpt::new();
    // Decomposed, nothing computes the weights of attention, which the model does not use.
    for (form, skipped) in
        [("encoder", &["given"][..]), ("encoder_decomposed", &["attention@2[1]", "attention[1]", "given"])]
    {
        // Twice: the folder of an earlier run is replaced.
        for _ in 0..2 {
            let report = encoder(&warpt, form, &[]);
            assert_eq!(
                (&report["verdict"], &report["counts"]["missing"]),
                (&json!("PASS"), &json!(0)),
                "{form}"
            );
            let found = by_module(&report);
            assert_eq!(found.len(), 19, "{found:?}");
            let others: Vec<&str> =
                found.iter().filter(|(_, status)| **status != "passed").map(|(name, _)| *name).collect();
            assert_eq!(others, skipped, "{found:?}");
            assert!(skipped.iter().all(|name| found[name] == "skipped"), "{found:?}");
        }
        let golden = format!("{DATA}/{form}.golden");
        let text = warpt.run(&["validate", "--golden", &golden, "--candidate", form]).stdout;
        assert!(
            text.contains("modules/given (the module has no operation of its own in the graph)"),
            "{text}"
        );
    }
}

#[test]
fn a_wrong_weight_is_found_in_its_module_and_inherited_by_the_later_ones() {
    let warpt = Warpt::new();
    for form in ["encoder", "encoder_decomposed"] {
        let model = format!("{DATA}/{form}.pt2");
        let done = warpt.run(&["import", &model, "-o", "unused.mlir", "--weights", "w.safetensors"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        alter(&warpt, "feed.2.bias");
        let report = encoder(&warpt, form, &["--weights", "other.safetensors"]);
        let first = &report["first_operation"];
        assert_eq!((&first["module"], &first["source"]), (&json!("feed.2"), &json!("make.py:75")), "{first}");
        assert_eq!(first["origin"]["verdict"], "arose_here", "{first}");
        let worst = &first["figures"]["worst"];
        assert!(worst["golden"] != worst["candidate"], "{worst}");
        let next = &report["operations"][1];
        assert_eq!(next["origin"]["verdict"], "inherited", "{next}");
        let found = by_module(&report);
        for (name, status) in [
            ("feed.1", "passed"),
            ("norm", "passed"),
            ("feed.2", "out_of_tolerance"),
            ("feed", "out_of_tolerance"),
            ("norm@2", "out_of_tolerance"),
        ] {
            assert_eq!(found[name], status, "{form}, {name}: {found:?}");
        }
    }
}

#[test]
fn build_servers_get_their_files() {
    let warpt = perturbed();
    let page = warpt.path("summary.md");
    let arguments = validate(&["--junit", "report.xml", "--summary"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = finished(warpt.command(&arguments).env("GITHUB_STEP_SUMMARY", &page).output().unwrap());
    assert_eq!(done.code, 1, "{}", done.stderr);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.starts_with("## Validation: FAIL") && page.contains("make.py:44"), "{page}");
    let xml = std::fs::read_to_string(warpt.path("report.xml")).unwrap();
    assert!(xml.contains("<testsuite") && xml.contains("<failure"), "{xml}");
}

#[test]
fn nothing_to_compare_is_neither_right_nor_wrong() {
    let warpt = Warpt::new();
    std::fs::create_dir(warpt.path("candidate")).unwrap();
    let inputs = "inputs.safetensors";
    std::fs::copy(Path::new(GOLDEN).join(inputs), warpt.path("candidate").join(inputs)).unwrap();
    assert_eq!(judged(&warpt, &[]).code, 4);
    assert!(Path::new(GOLDEN).join("manifest.json").is_file());
}
