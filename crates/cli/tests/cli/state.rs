//! `warpt run --state`: state from step to step and from run to run.

use serde_json::Value;

use crate::warpt::Warpt;

/// Adds an input to a sum that starts at zero, and gives their mean.
const SUM: &str = "func.func @main(
    %sum: tensor<3xf32> {warpforge.name = \"sum\", warpforge.role = \"state\", tf.aliasing_output = 1 : i32},
    %x: tensor<3xf32> {warpforge.name = \"x\"}
  ) -> (tensor<f32> {warpforge.name = \"mean\"}, tensor<3xf32> {warpforge.name = \"new\"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %0 = stablehlo.add %sum, %x : tensor<3xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.divide %1, %three : tensor<f32>
  func.return %2, %0 : tensor<f32>, tensor<3xf32>
}
";

fn with_model(text: &str) -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), text).unwrap();
    warpt
}

fn steps(record: &Value) -> Vec<f64> {
    let steps = record["state"]["steps"].as_array().unwrap();
    steps.iter().map(|step| step["outputs"]["mean"].as_f64().unwrap()).collect()
}

#[test]
fn a_run_goes_on_where_another_ended() {
    let warpt = with_model(SUM);
    let run = |file: &str, steps: &str| {
        warpt.json(&["run", "model.mlir", "--state", file, "--steps", steps, "--seed", "3", "--json"])
    };
    let all = run("all.safetensors", "6");
    let (first, second) = (run("s.safetensors", "4"), run("s.safetensors", "2"));
    assert_eq!([steps(&first), steps(&second)].concat(), steps(&all));
    assert_eq!(
        (&first["state"]["loaded"], &second["state"]["loaded"]),
        (&Value::from(false), &Value::from(true))
    );
    assert_eq!(all["outputs"].as_array().map(Vec::len), Some(1));
    let bytes = |name: &str| std::fs::read(warpt.path(name)).unwrap();
    assert_eq!(bytes("s.safetensors"), bytes("all.safetensors"));
    // The reference keeps state as the engine does.
    let slow = [
        "run",
        "model.mlir",
        "--state",
        "r.safetensors",
        "--steps",
        "6",
        "--seed",
        "3",
        "--tier",
        "correctness",
        "--json",
    ];
    assert_eq!(steps(&warpt.json(&slow)), steps(&all));
    let text = warpt.run(&["run", "model.mlir", "--state", "s.safetensors", "--seed", "3"]);
    assert!(
        text.stdout.contains("resumed after step 6 from and written to s.safetensors"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.contains("step 7: mean "), "{}", text.stdout);
    assert_eq!(second["state"]["steps_before"], 4);
    let numbers: Vec<_> =
        second["state"]["steps"].as_array().unwrap().iter().map(|step| step["step"].as_u64()).collect();
    assert_eq!(numbers, [Some(5), Some(6)]);
}

#[test]
fn aliases_and_the_inputs_of_steps_are_given() {
    let plain = SUM.replace(", warpforge.role = \"state\", tf.aliasing_output = 1 : i32", "");
    let warpt = with_model(&plain);
    let refused = warpt.run(&["run", "model.mlir", "--state", "s.safetensors", "--seed", "1"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("sum: tensor<3xf32>; fitting: new"), "{}", refused.stderr);
    // Files of inputs: the outputs of another model.
    let one = "func.func @main(%n: tensor<f32> {warpforge.name = \"n\"}) -> (tensor<3xf32> {warpforge.name = \"x\"}, tensor<3xf32> {warpforge.name = \"sum\"}) {
      %0 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<3xf32>
      func.return %0, %0 : tensor<3xf32>, tensor<3xf32>\n}";
    std::fs::write(warpt.path("one.mlir"), one).unwrap();
    let number = |seed: &str, file: &str| {
        let made = warpt.json(&["run", "one.mlir", "--seed", seed, "--outputs", file, "--json"]);
        made["outputs"][0]["mean"].as_f64().unwrap()
    };
    let (a, b) = (number("1", "a.safetensors"), number("2", "b.safetensors"));
    let record = warpt.json(&[
        "run",
        "model.mlir",
        "--state",
        "s.safetensors",
        "--alias",
        "sum=new",
        "--steps",
        "3",
        "--inputs",
        "a.safetensors",
        "--inputs",
        "b.safetensors",
        "--json",
    ]);
    // The state starts with what the first file has for it.
    let expected = [2.0 * a, 2.0 * a + b, 3.0 * a + b];
    for (found, expected) in steps(&record).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

#[test]
fn aliases_are_given_in_order() {
    let text = "func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<2xf32>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>) {
      %0 = stablehlo.add %a, %b : tensor<f32>
      func.return %0, %a, %c : tensor<f32>, tensor<f32>, tensor<2xf32>\n}";
    let warpt = with_model(text);
    let run = |alias: &str| {
        warpt.run(&[
            "run",
            "model.mlir",
            "--seed",
            "1",
            "--state",
            "s.safetensors",
            "--alias",
            alias,
            "--json",
        ])
    };
    for (alias, says) in [
        ("arg0..arg1=out0", "2 arguments and 1 results"),
        ("arg1..arg0=out0..out1", "argument `arg0` is before `arg1`"),
        ("arg0..arg5=out0..out1", "there is no argument `arg5`"),
        ("arg1..arg2=out0..out1", "argument `arg2` is tensor<2xf32>, result `out1` is tensor<f32>"),
    ] {
        let done = run(alias);
        assert!(done.code == 2 && done.stderr.contains(says), "{alias}: {}", done.stderr);
    }
    let record: Value = serde_json::from_str(&run("arg0..arg1=out0..out1").stdout).unwrap();
    assert_eq!(record["state"]["values"], 2);
    assert_eq!(record["outputs"][0]["name"], "out2");
}

#[test]
fn what_does_not_fit_is_refused() {
    let warpt = with_model(SUM);
    let refused = |arguments: &[&str]| {
        let done = warpt.run(&[&["run", "model.mlir", "--seed", "1"], arguments].concat());
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.stderr);
        done.stderr
    };
    assert!(refused(&["--steps", "2"]).contains("--state"));
    assert!(refused(&["--state", "s.safetensors", "--repeat", "3"]).contains("--repeat"));
    assert!(refused(&["--state", "s.safetensors", "--alias", "x"]).contains("ARGUMENT=RESULT"));
    assert!(refused(&["--state", "s.safetensors", "--alias", "x=new"]).contains("`sum` is aliased already"));
    assert!(
        refused(&["--state", "s.safetensors", "--alias", "x=mean"]).contains("result `mean` is tensor<f32>")
    );
    std::fs::write(warpt.path("cut.safetensors"), b"not a file of tensors").unwrap();
    assert!(refused(&["--state", "cut.safetensors"]).contains("cut.safetensors"));
    warpt.json(&["run", "model.mlir", "--seed", "1", "--outputs", "other.safetensors", "--json"]);
    let other = refused(&["--state", "other.safetensors"]);
    assert!(other.contains("`mean` is not known"), "{other}");
}

/// A model of a moment: the state is divided by, and one below zero would give NaN.
#[test]
fn state_is_never_made_up() {
    let root = "func.func @main(%x: tensor<2xf32> {warpforge.name = \"x\"},
        %v: tensor<2xf32> {warpforge.name = \"v\", ROLE tf.aliasing_output = 0 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = stablehlo.sqrt %v : tensor<2xf32>
      %1 = stablehlo.add %0, %x : tensor<2xf32>
      func.return %v, %1 : tensor<2xf32>, tensor<2xf32>\n}";
    for role in ["warpforge.role = \"state\",", ""] {
        let warpt = with_model(&root.replace("ROLE", role));
        let mut command = vec!["run", "model.mlir", "--seed", "3", "--json"];
        for state in [false, true] {
            if state {
                command.extend(["--state", "s.safetensors"]);
            }
            let done = warpt.run(&command);
            assert_eq!(done.code, 0, "{}", done.stderr);
            let record: Value = serde_json::from_str(&done.stdout).unwrap();
            let outputs = record["outputs"].as_array().unwrap();
            assert!(outputs.iter().all(|output| output["nan"] == 0), "{record}");
            if role.is_empty() || !state {
                assert!(done.stderr.contains("starts at zero (v); --seed makes no state"), "{}", done.stderr);
            }
        }
    }
}
