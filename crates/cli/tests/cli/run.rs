//! `warpt run` on StableHLO text.

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
    assert_eq!((&record["device"], &record["tier"]), (&Value::from("cpu"), &Value::from("correctness")));
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
    for flags in
        [["--device", "cuda:1"], ["--device", "hip"], ["--tier", "production"], ["--tier", "observable"]]
    {
        let done = warpt.run(&[&["run", "model.mlir", "--seed", "0"], flags.as_slice()].concat());
        assert_eq!(done.code, 3, "{flags:?}");
        assert!(done.stderr.contains("there is cpu at tier correctness"), "{}", done.stderr);
    }
    let done = warpt.run(&["run", "model.mlir", "--seed", "0", "--precision", "bf16"]);
    assert_eq!(done.code, 3);
    assert!(done.stderr.contains("it has model"), "{}", done.stderr);
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
