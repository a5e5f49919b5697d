//! Training from the command line: a loss graph with our optimizer, and a step that PyTorch exported with its own. Both follow
//! PyTorch's training of the same model, which `tests/data/training.py` recorded.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use warpforge::io::safetensors;
use warpforge::{Scalar, Tensor};

use crate::warpt::Warpt;

const LOSS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/step.pt2");
const BATCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/step.golden/inputs.safetensors");
const WHOLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/whole_step.pt2");
const PYTORCH: &str = include_str!("../data/training.json");

/// The settings of `training.py`.
const RECIPE: &str = "adamw,lr=0.01,weight-decay=0.1,clip=0.5,schedule=linear,warmup=3,total=20";

fn numbers(record: &Value, name: &str) -> Vec<f64> {
    let steps = record["state"]["steps"].as_array().unwrap();
    steps.iter().map(|step| step["outputs"][name].as_f64().unwrap()).collect()
}

fn close(what: &str, found: &[f64], expected: &Value, tolerance: f64) {
    let expected: Vec<f64> =
        expected.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * scale, "{what}: {found} is not {expected}");
    }
}

fn elements(tensor: &Tensor) -> Vec<f64> {
    tensor.iter().map(Scalar::to_f64).collect()
}

fn state(warpt: &Warpt, file: &str) -> BTreeMap<String, Tensor> {
    safetensors::read(&warpt.path(file)).unwrap()
}

#[test]
fn a_loss_graph_with_our_optimizer_follows_pytorch() {
    let pytorch: Value = serde_json::from_str(PYTORCH).unwrap();
    let warpt = Warpt::new();
    for (file, more) in [("s.safetensors", &[][..]), ("r.safetensors", &["--tier", "correctness"][..])] {
        let run =
            ["run", LOSS, "--train", RECIPE, "--state", file, "--steps", "12", "--inputs", BATCH, "--json"];
        let record = warpt.json(&[&run, more].concat());
        close("loss", &numbers(&record, "loss"), &pytorch["losses"], 1e-6);
        close("norm", &numbers(&record, "grad_norm"), &pytorch["norms"], 1e-5);
        let state = state(&warpt, file);
        assert_eq!(elements(&state["optimizer.step"]), [12.0]);
        for (name, expected) in pytorch["parameters"].as_object().unwrap() {
            close(name, &elements(&state[name]), expected, 1e-5);
        }
    }
}

#[test]
fn a_step_that_computes_its_forward_pass_again_trains_the_same_weights() {
    let pytorch: Value = serde_json::from_str(PYTORCH).unwrap();
    let warpt = Warpt::new();
    let run = ["run", LOSS, "--train", RECIPE, "--steps", "12", "--inputs", BATCH, "--json"];
    let again = ["--gradient-checkpointing", "--state", "s.safetensors"];
    let record = warpt.json(&[&run[..], &again].concat());
    close("loss", &numbers(&record, "loss"), &pytorch["losses"], 1e-6);
    for (name, expected) in pytorch["parameters"].as_object().unwrap() {
        close(name, &elements(&state(&warpt, "s.safetensors")[name]), expected, 1e-5);
    }
    let refused = warpt.run(&[&run[..], &again, &["--tier", "correctness"]].concat());
    assert!(
        refused.code != 0 && refused.stderr.contains("gradient checkpointing in the correctness tier"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_step_is_a_model_like_any_other() {
    let warpt = Warpt::new();
    let done = warpt.run(&["opt", LOSS, "--train", RECIPE, "--weights", "w.safetensors", "-o", "step.mlir"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run = |model: &str, more: &[&str]| {
        let file = format!("{}.safetensors", Path::new(model).file_name().unwrap().to_str().unwrap());
        let arguments = ["run", model, "--state", &file, "--steps", "4", "--inputs", BATCH, "--json"];
        numbers(&warpt.json(&[&arguments[..], more].concat()), "loss")
    };
    let own = run("step.mlir", &["--weights", "w.safetensors"]);
    assert_eq!(own, run(LOSS, &["--train", RECIPE]));
    let refused = warpt.run(&["opt", "step.mlir", "--train", RECIPE]);
    assert!(
        refused.code == 2 && refused.stderr.contains("python -m warpforge.trace --train"),
        "{}",
        refused.stderr
    );
    let refused = warpt.run(&["opt", LOSS, "--train", RECIPE, "-o", "constant.mlir"]);
    assert!(
        refused.code == 2
            && refused.stderr.contains("--weights W.safetensors")
            && !refused.stderr.contains("trace"),
        "{}",
        refused.stderr
    );
    let refused =
        warpt.run(&["run", LOSS, "--train", "adamw", "--state", "s.safetensors", "--inputs", BATCH]);
    assert!(refused.code == 2 && refused.stderr.contains("`lr` is missing"), "{}", refused.stderr);
    let plan = warpt.run(&["opt", LOSS, "--train", "sgd,lr=0.1", "--emit", "fusion"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
}

#[test]
fn a_step_that_pytorch_exported_follows_pytorch() {
    let pytorch: Value = serde_json::from_str(PYTORCH).unwrap();
    let warpt = Warpt::new();
    // The learning rate is an input of this step: one file of inputs for each.
    let mut batch = safetensors::read(Path::new(BATCH)).unwrap();
    let mut arguments: Vec<String> =
        ["run", WHOLE, "--state", "s.safetensors", "--steps", "12", "--json"].map(str::to_owned).into();
    for step in 0..12u8 {
        let factor = if step < 3 { f32::from(step) / 3.0 } else { f32::from(20 - step) / 17.0 };
        batch.insert("rate".to_owned(), Tensor::from_slice(&[], &[0.01 * factor]).unwrap());
        let file = warpt.path(&format!("{step}.safetensors"));
        safetensors::write(&file, batch.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
        arguments.extend(["--inputs".to_owned(), file.display().to_string()]);
    }
    let record = warpt.json(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    close("loss", &numbers(&record, "out0"), &pytorch["losses"], 1e-6);
    close("norm", &numbers(&record, "out1"), &pytorch["norms"], 1e-5);
    let state = state(&warpt, "s.safetensors");
    let names = ["first.weight", "first.bias", "norm.weight", "norm.bias", "second.weight", "second.bias"];
    for (at, name) in names.iter().enumerate() {
        close(name, &elements(&state[&format!("parameter_{at}")]), &pytorch["parameters"][name], 1e-5);
    }
}

#[test]
fn training_goes_on_bit_for_bit_after_it_was_killed() {
    let warpt = Warpt::new();
    let arguments = |file: &'static str, steps: &'static str| {
        let recipe = "adamw,lr=0.01,clip=0.5,accumulate=2,schedule=cosine,warmup=3,total=1000000";
        [
            "run",
            LOSS,
            "--train",
            recipe,
            "--inputs",
            BATCH,
            "--save-every",
            "1",
            "--state",
            file,
            "--steps",
            steps,
            "--json",
        ]
    };
    let mut endless = warpt.command(&arguments("killed.safetensors", "1000000"));
    let mut child = endless.stdout(std::process::Stdio::null()).spawn().unwrap();
    let steps = |file: &str| {
        let state = safetensors::read(&warpt.path(file)).ok()?;
        Some(
            2 * elements(&state["optimizer.step"])[0] as usize
                + elements(&state["optimizer.micro_step"])[0] as usize,
        )
    };
    while steps("killed.safetensors").is_none_or(|steps| steps < 5) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = steps("killed.safetensors").unwrap();
    let all: &'static str = (done + 7).to_string().leak();
    warpt.json(&arguments("killed.safetensors", "7"));
    warpt.json(&arguments("whole.safetensors", all));
    let bytes = |name: &str| std::fs::read(warpt.path(name)).unwrap();
    assert_eq!(bytes("killed.safetensors"), bytes("whole.safetensors"), "after {done} steps");
}
