//! `warpt run`: inputs, outputs, traces and what is refused.

use serde_json::Value;

use crate::warpt::Warpt;

/// Doubles its input.
const DOUBLE: &str = "func.func @main(%x: tensor<2x3xf32> {warpforge.name = \"x\"}) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
";

fn with_model(text: &str) -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), text).unwrap();
    warpt
}

#[test]
fn a_run_says_where_how_and_what() {
    let warpt = with_model(DOUBLE);
    let record = warpt.json(&["run", "model.mlir", "--seed", "1", "--repeat", "3", "--json"]);
    assert_eq!((&record["device"], &record["tier"]), (&Value::from("cpu"), &Value::from("production")));
    assert_eq!(record["times_ms"].as_array().map(Vec::len), Some(3));
    for number in ["compile_ms", "median_ms", "min_ms", "peak_memory_bytes"] {
        assert!(record[number].is_number(), "{number} in {record}");
    }
    assert!(record["min_ms"].as_f64() <= record["median_ms"].as_f64());
    let (input, output) = (&record["inputs"][0], &record["outputs"][0]);
    assert_eq!((&input["name"], &output["name"]), (&Value::from("x"), &Value::from("out0")));
    assert_eq!((&output["type"], &output["shape"]), (&Value::from("f32"), &Value::from(vec![2, 3])));
    assert_eq!(output["max"].as_f64().unwrap(), 2.0 * input["max"].as_f64().unwrap());
}

#[test]
fn outputs_of_one_run_are_inputs_of_the_next() {
    let warpt = with_model(DOUBLE);
    let first = warpt.json(&["run", "model.mlir", "--seed", "1", "--outputs", "out.npy", "--json"]);
    let second =
        warpt.json(&["run", "model.mlir", "--input", "x=out.npy", "--outputs", "o.safetensors", "--json"]);
    assert_eq!(first["outputs"][0]["hash"], second["inputs"][0]["hash"]);
    let text = "func.func @main(%a: tensor<2x3xf32> {warpforge.name = \"out0\"}) -> tensor<2x3xf32> {
      func.return %a : tensor<2x3xf32>\n}";
    std::fs::write(warpt.path("same.mlir"), text).unwrap();
    let third = warpt.json(&["run", "same.mlir", "--inputs", "o.safetensors", "--json"]);
    assert_eq!(second["outputs"][0]["hash"], third["outputs"][0]["hash"]);
    assert_eq!(
        warpt.json(&["run", "model.mlir", "--input", "arg0=out.npy", "--json"])["runs"],
        Value::from(1)
    );
}

#[test]
fn replicas_have_inputs_and_outputs_of_their_own() {
    let text = "module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<2xf32> {warpforge.name = \"x\"}) -> tensor<2xf32> {
    %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }\n}";
    let record = with_model(text).json(&["run", "model.mlir", "--seed", "1", "--json"]);
    let names = |of: &str| [0, 1].map(|at| record[of][at]["name"].as_str().unwrap_or_default().to_owned());
    assert_eq!(
        (names("inputs"), names("outputs")),
        (["x@0.0", "x@1.0"].map(String::from), ["out0@0.0", "out0@1.0"].map(String::from))
    );
    let mean = |of: &str, at: usize| record[of][at]["mean"].as_f64().unwrap();
    assert_eq!(record["outputs"][0]["hash"], record["outputs"][1]["hash"]);
    assert!((mean("outputs", 0) - mean("inputs", 0) - mean("inputs", 1)).abs() < 1e-6, "{record}");
    assert_eq!(record["fallbacks"][0], "interpreter.run_parallel");
}

#[test]
fn a_model_without_inputs_says_what_it_wants() {
    let warpt = with_model(DOUBLE);
    let done = warpt.run(&["run", "model.mlir"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("x: tensor<2x3xf32>") && done.stderr.contains("--seed"), "{}", done.stderr);
}

#[test]
fn everything_wrong_with_the_inputs_is_told_at_once() {
    let warpt = with_model(DOUBLE);
    warpt.json(&["run", "model.mlir", "--seed", "1", "--outputs", "o.safetensors", "--json"]);
    let text = "func.func @main(%a: tensor<2xf32>, %b: tensor<2x3xi32> {warpforge.name = \"out0\"}) {
      func.return\n}";
    std::fs::write(warpt.path("other.mlir"), text).unwrap();
    let done = warpt.run(&["run", "other.mlir", "--inputs", "o.safetensors"]);
    assert_eq!(done.code, 2);
    for expected in ["`out0` is tensor<2x3xf32>, not tensor<2x3xi32>", "`arg0` is missing: tensor<2xf32>"] {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
}

#[test]
fn what_there_is_not_here_is_exit_3_with_what_there_is() {
    let warpt = with_model(DOUBLE);
    for flags in [["--device", "cuda:1"], ["--device", "hip"]] {
        let done = warpt.run(&[&["run", "model.mlir", "--seed", "0"], flags.as_slice()].concat());
        assert_eq!(done.code, 3, "{flags:?}");
        assert!(done.stderr.contains("there is cpu at tier production"), "{}", done.stderr);
        // Either there is no driver, and what was tried is named, or there is no such device.
        let reasons = ["libcuda.so.1", "libamdhip64.so", "there is no device"];
        assert!(reasons.iter().any(|reason| done.stderr.contains(reason)), "{}", done.stderr);
    }
    let done = warpt.run(&["run", "model.mlir", "--seed", "0", "--precision", "f16"]);
    assert_eq!(done.code, 3);
    assert!(done.stderr.contains("it has model, bf16"), "{}", done.stderr);
    let done = warpt.run(&["run", "model.mlir", "--seed", "0", "--precision", "f4"]);
    assert_eq!(done.code, 2);
    for name in ["model", "tf32", "bf16", "f16"] {
        assert!(done.stderr.contains(name), "{}", done.stderr);
    }
    assert_eq!(warpt.run(&["run", "model.mlir", "--device", "gpu"]).code, 2);
}

#[test]
fn an_operation_that_nobody_can_run_is_named_before_the_run() {
    let warpt = with_model(
        "func.func @main() -> tensor<f32> {
          %0 = stablehlo.custom_call @mystery() : () -> tensor<f32>
          func.return %0 : tensor<f32>\n}",
    );
    let done = warpt.run(&["run", "model.mlir"]);
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    assert!(done.stderr.contains("@mystery"), "{}", done.stderr);
}

/// A training step of one parameter, with the nodes that it was traced from.
const STEP: &str = "func.func @main(%w: tensor<f32> {warpforge.name = \"w\", warpforge.role = \"parameter\"}, \
     %x: tensor<f32> {warpforge.name = \"x\"}) -> (tensor<f32> {warpforge.name = \"loss\", warpforge.role = \"loss\"}, \
     tensor<f32> {warpforge.name = \"grad.w\", warpforge.role = \"gradient\", warpforge.of = \"w\"}) {
  %0 = stablehlo.multiply %w, %x : tensor<f32> loc(\"mul\"(\"net.py\":4:0))
  %1 = stablehlo.log %0 : tensor<f32> loc(\"log\"(\"net.py\":5:0))
  func.return %1, %x : tensor<f32>, tensor<f32>
}
";

/// `STEP` with files of its parameter and its input.
fn step(w: f32, x: f32) -> Warpt {
    let warpt = with_model(STEP);
    for (name, value) in [("w", w), ("x", x)] {
        let text = format!(
            "func.func @main() -> (tensor<f32> {{warpforge.name = \"{name}\"}}) {{
              %0 = stablehlo.constant dense<0x{:08X}> : tensor<f32>
              func.return %0 : tensor<f32>\n}}",
            value.to_bits()
        );
        std::fs::write(warpt.path("constant.mlir"), text).unwrap();
        let file = format!("{name}.safetensors");
        warpt.json(&["run", "constant.mlir", "--outputs", &file, "--json"]);
    }
    warpt
}

const FROM_FILES: [&str; 6] =
    ["run", "model.mlir", "--weights", "w.safetensors", "--inputs", "x.safetensors"];

#[test]
fn a_trace_has_every_value_with_its_place() {
    let warpt = step(2.0, 3.0);
    let files = [
        "--trace",
        "t.jsonl",
        "--trace-tensors",
        "t.safetensors",
        "--trace-filter",
        "log",
        "--profile",
        "p.json",
    ];
    let done = warpt.run(&[&FROM_FILES[..], &files].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines: Vec<Value> = std::fs::read_to_string(warpt.path("t.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    let (product, log) = (&lines[0], &lines[1]);
    assert_eq!((&product["mean"], &product["line"]), (&Value::from(6.0), &Value::from(2)));
    assert_eq!((&log["node"], &log["source"]), (&Value::from("log"), &Value::from("net.py:5")));
    let kept = std::fs::read(warpt.path("t.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&kept);
    assert!(header.contains("main/1:0/0") && !header.contains("main/0:0/0"), "{header}");
    let profile: Value = serde_json::from_slice(&std::fs::read(warpt.path("p.json")).unwrap()).unwrap();
    let names: Vec<&str> = profile["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["process_name", "thread_name", "stablehlo.multiply", "stablehlo.log"]);
}

#[test]
fn the_observable_tier_says_what_each_kernel_did() {
    let warpt = step(2.0, -3.0);
    let options = ["--tier", "observable", "--profile", "p.json", "--json"];
    let done = warpt.run(&[&FROM_FILES[..], &options].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    let kernels = record["kernels"].as_array().unwrap();
    assert_eq!((&record["tier"], kernels.len()), (&Value::from("observable"), 1));
    // The logarithm of a negative number.
    assert_eq!(kernels[0]["nan"], kernels[0]["values_seen"]);
    let profile: Value = serde_json::from_slice(&std::fs::read(warpt.path("p.json")).unwrap()).unwrap();
    let events = profile["traceEvents"].as_array().unwrap();
    let of = |kind: &str| events.iter().find(|event| event["cat"] == kind).unwrap();
    assert!(of("kernel")["args"]["of_roofline"].is_number(), "{}", of("kernel"));
    assert!(of("tile")["tid"].as_u64().unwrap() >= 1);
    let done = warpt.run(&[&FROM_FILES[..], &["--tier", "observable"]].concat());
    assert!(done.stdout.contains("slowest kernels"), "{}", done.stdout);
}

#[test]
fn the_first_nan_stops_the_run_with_its_place() {
    let warpt = step(2.0, -3.0);
    assert_eq!(warpt.run(&FROM_FILES).code, 0);
    let done = warpt.run(&[&FROM_FILES[..], &["--break-on", "nan", "--trace", "t.jsonl"]].concat());
    assert_eq!((done.code, done.stdout.as_str()), (1, ""));
    for expected in ["model.mlir:3:", "stablehlo.log", "node `log`", "net.py:5", "^"] {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
    let trace = std::fs::read_to_string(warpt.path("t.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 2, "what was seen until then is written");
    let warpt = step(2.0, f32::NAN);
    let done = warpt.run(&[&FROM_FILES[..], &["--break-on", "nan"]].concat());
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("input `x` has 1 NaN"), "{}", done.stderr);
}

#[test]
fn a_saved_run_has_what_a_golden_one_has() {
    let warpt = step(2.0, 3.0);
    let save = [&FROM_FILES[..], &["--save", "candidate", "--json"]].concat();
    warpt.json(&save);
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(warpt.path("candidate/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["nodes"][1]["name"], "log");
    assert_eq!(manifest["nodes"][1]["tensors"][0], "log");
    let mut files: Vec<&String> = manifest["files"].as_object().unwrap().keys().collect();
    files.sort();
    let all = [
        "activations.safetensors",
        "gradients.safetensors",
        "inputs.safetensors",
        "losses.json",
        "outputs.safetensors",
    ];
    assert_eq!(files, all);
    let losses: Value =
        serde_json::from_slice(&std::fs::read(warpt.path("candidate/losses.json")).unwrap()).unwrap();
    assert!((losses["loss"][0].as_f64().unwrap() - 6f64.ln()).abs() < 1e-6);
    warpt.json(&save);
    std::fs::write(warpt.path("candidate/manifest.json"), "{").unwrap();
    assert_ne!(warpt.run(&save).code, 0, "a folder that is no run's is not written over");
}

/// An archive that PyTorch wrote: `relu(x [[1, 2, 3], [4, 5, 6]]ᵀ + [0.5, -0.5])` for 1 to 64 rows.
const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linear.pt2");

#[test]
fn an_archive_of_pytorch_runs_with_its_weights() {
    let warpt = Warpt::new();
    let text = "func.func @main() -> tensor<2x3xf32> {
      %0 = stablehlo.constant dense<[[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]> : tensor<2x3xf32>
      func.return %0 : tensor<2x3xf32>\n}";
    std::fs::write(warpt.path("x.mlir"), text).unwrap();
    warpt.json(&["run", "x.mlir", "--outputs", "x.npy", "--json"]);
    let record =
        warpt.json(&["run", ARCHIVE, "--input", "x=x.npy", "--save", "run", "--save-weights", "--json"]);
    let output = &record["outputs"][0];
    assert_eq!((&output["name"], &output["shape"]), (&Value::from("out0"), &Value::from(vec![2, 2])));
    assert_eq!((&output["min"], &output["max"], &output["mean"]), (&0.0.into(), &14.5.into(), &5.25.into()));
    assert_eq!(record["inputs"].as_array().map(Vec::len), Some(1), "weights are no inputs");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(warpt.path("run/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["nodes"][1]["source"], "make.py:28");
    assert!(manifest["files"]["weights.safetensors"].is_object());
}

#[test]
fn rows_that_only_the_inputs_tell() {
    let warpt = Warpt::new();
    for rows in [1u64, 5, 64] {
        let shape = format!("x={rows}x3");
        let record = warpt.json(&["run", ARCHIVE, "--seed", "1", "--shape", &shape, "--json"]);
        assert_eq!(record["outputs"][0]["shape"], Value::from(vec![rows, 2]));
    }
    for (shape, expected) in [("x=65x3", "1 to 64"), ("x=2x4", "tensor<?x3xf32>"), ("y", "NAME=DIMS")] {
        let done = warpt.run(&["run", ARCHIVE, "--seed", "1", "--shape", shape]);
        assert_eq!(done.code, 2);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
    let done = warpt.run(&["run", ARCHIVE, "--seed", "1"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("--shape x="), "{}", done.stderr);
}

#[test]
fn a_file_that_is_not_there_is_named_once() {
    let warpt = with_model(DOUBLE);
    for arguments in [&["run", "nowhere.mlir"][..], &["run", "model.mlir", "--inputs", "nowhere.safetensors"]]
    {
        let done = warpt.run(arguments);
        assert_eq!(done.code, 2);
        assert_eq!(done.stderr.matches("No such file").count(), 1, "{}", done.stderr);
        assert_eq!(done.stderr.matches("nowhere").count(), 1, "{}", done.stderr);
    }
}
