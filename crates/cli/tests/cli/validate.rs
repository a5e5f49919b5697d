//! `warpt validate` on folders made up for it: verdicts, the operation that errs, formats and exit codes.

use std::path::Path;

use serde_json::{Value, json};
use warpforge::Tensor;
use warpforge::io::{npy, safetensors};

use crate::warpt::{Warpt, finished};

/// Four operations in a chain: twice `x`, plus one, squared, less `x`.
const CHAIN: &str = r#"func.func @main(%x: tensor<4xf32> {warpforge.name = "x", warpforge.role = "input"})
    -> (tensor<4xf32> {warpforge.name = "out0", warpforge.role = "output"}) {
  %two = stablehlo.constant dense<2.0> : tensor<4xf32> loc("twice")
  %0 = stablehlo.multiply %x, %two : tensor<4xf32> loc("twice"("net.py":3:0))
  %one = stablehlo.constant dense<1.0> : tensor<4xf32> loc("plus")
  %1 = stablehlo.add %0, %one : tensor<4xf32> loc("plus"("net.py":4:0))
  %2 = stablehlo.multiply %1, %1 : tensor<4xf32> loc("square"("net.py":5:0))
  %3 = stablehlo.subtract %2, %x : tensor<4xf32> loc("less"("net.py":6:0))
  return %3 : tensor<4xf32>
}
"#;

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const BOTH: [&str; 6] = ["validate", "--golden", "golden", "--candidate", "candidate", "--report-only"];

fn save(path: &Path, tensors: &[(&str, Vec<f32>)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let tensors: Vec<(&str, Tensor)> = tensors
        .iter()
        .map(|(name, values)| (*name, Tensor::from_slice(&[values.len()], values).unwrap()))
        .collect();
    safetensors::write(path, tensors.iter().map(|(name, tensor)| (*name, tensor))).unwrap();
}

/// Leaves a run of the chain in which the operation `plus` adds `error` too much.
fn leave_run(warpt: &Warpt, name: &str, error: f32) {
    let folder = warpt.path(name);
    let twice = X.map(|x| 2.0 * x);
    let plus = twice.map(|value| value + 1.0 + error);
    let square = plus.map(|value| value * value);
    let less: Vec<f32> = square.iter().zip(X).map(|(value, x)| value - x).collect();
    save(&folder.join("inputs.safetensors"), &[("x", X.to_vec())]);
    let values = [
        ("twice", twice.to_vec()),
        ("plus", plus.to_vec()),
        ("square", square.to_vec()),
        ("less", less.clone()),
    ];
    save(&folder.join("activations.safetensors"), &values);
    save(&folder.join("outputs.safetensors"), &[("out0", less)]);
}

/// A home with a golden run, one that is the same, and one in which `plus` errs.
fn home() -> Warpt {
    let warpt = Warpt::new();
    leave_run(&warpt, "golden", 0.0);
    leave_run(&warpt, "same", 0.0);
    leave_run(&warpt, "candidate", 0.25);
    std::fs::write(warpt.path("chain.mlir"), CHAIN).unwrap();
    warpt
}

#[test]
fn the_operation_that_errs_arose_here_and_the_later_ones_inherit() {
    let warpt = home();
    let report = warpt.json(&[&BOTH[..], &["--model", "chain.mlir", "--json"]].concat());
    assert_eq!((&report["schema_version"], &report["verdict"]), (&json!(1), &json!("FAIL")));
    let operations = report["operations"].as_array().unwrap();
    let origins: Vec<(&str, &str)> = operations
        .iter()
        .map(|op| (op["node"].as_str().unwrap(), op["origin"]["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(origins, [("plus", "arose_here"), ("square", "inherited"), ("less", "inherited")]);
    let first = &report["first_operation"];
    assert_eq!((&first["source"], &first["tensor"]), (&json!("net.py:4"), &json!("plus")));
    let worst = &first["figures"]["worst"];
    assert_eq!(worst, &json!({"index": [0], "golden": "3.0", "candidate": "3.25"}));
    let replay = &first["origin"]["replay"];
    assert_eq!(replay["execution"]["max_abs"], json!(0.25));
    assert_eq!((&replay["inherited"]["max_abs"], &replay["import"]["max_abs"]), (&json!(0.0), &json!(0.0)));
    assert_eq!(operations[1]["origin"]["replay"]["execution"]["out_of_tolerance"], json!(0));

    let done = warpt.run(&[&BOTH[..], &["--model", "chain.mlir"]].concat());
    assert!(done.stdout.contains("first operation out of tolerance: plus, net.py:4\n"), "{}", done.stdout);
    assert!(done.stdout.contains("arose here: the candidate computes it otherwise"), "{}", done.stdout);
    assert!(!done.stdout.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn exit_codes_follow_the_verdict() {
    let warpt = home();
    std::fs::create_dir(warpt.path("empty")).unwrap();
    std::fs::create_dir(warpt.path("broken")).unwrap();
    std::fs::write(warpt.path("broken/outputs.safetensors"), "not tensors").unwrap();
    std::fs::write(warpt.path("wrong.toml"), "[class.gradients]\nrtoll = 1.0\n").unwrap();
    for (arguments, code, expected) in [
        (&["same"][..], 0, "PASS: 6 tensors compared, 0 failed, 6 identical"),
        (&["same", "--fail-on-mismatch"], 0, "PASS"),
        (&["candidate"], 1, "FAIL: 6 tensors compared, 4 failed"),
        (&["candidate", "--fail-on-mismatch"], 1, "FAIL: 6 tensors compared, 4 failed"),
        (&["candidate", "--report-only"], 0, "the exit code is 0 with --report-only"),
        (&["candidate", "--report-only", "--fail-on-mismatch"], 2, "cannot be used with"),
        (&["empty"], 1, "FAIL: 0 tensors compared"),
        (&["empty", "--report-only"], 0, "the exit code is 0 with --report-only"),
        (&["nowhere"], 2, "nowhere: No such file"),
        (&["broken"], 2, "broken/outputs.safetensors: bad safetensors data"),
        (&["same", "--tolerances", "wrong.toml"], 2, "rtoll"),
        (&["same", "--tolerances", "none.toml"], 2, "none.toml"),
        (&["same", "--model", "none.mlir"], 2, "none.mlir: there is no such model"),
        (&["same", "--summary"], 2, "$GITHUB_STEP_SUMMARY is not set"),
    ] {
        let whole = [&["validate", "--golden", "golden", "--candidate"], arguments].concat();
        let mut command = warpt.command(&whole);
        let done = finished(command.env_remove("GITHUB_STEP_SUMMARY").output().unwrap());
        let output = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, code, "{arguments:?}: {output}");
        assert!(output.contains(expected), "{arguments:?}: no {expected:?} in\n{output}");
    }
}

#[test]
fn without_a_model_the_origin_is_unknown_and_the_reason_given() {
    let warpt = home();
    let report = warpt.json(&[&BOTH[..], &["--json"]].concat());
    assert_eq!(report["first_operation"], Value::Null);
    assert!(report["first_operation_unknown"].as_str().unwrap().contains("in which order"), "{report}");

    // A manifest gives the order, and the model beside the folder is found by it.
    let manifest = json!({
        "schema_version": 1, "model": "net:make", "seed": 0, "archive": {"file": "chain.mlir"},
        "nodes": [{"name": "twice"}, {"name": "plus", "target": "aten.add.Tensor", "source": "net.py:4"}]
    });
    std::fs::write(warpt.path("golden/manifest.json"), manifest.to_string()).unwrap();
    let report = warpt.json(&[&BOTH[..], &["--json"]].concat());
    assert_eq!(report["first_operation"]["target"], "aten.add.Tensor");
    assert_eq!(report["first_operation"]["origin"]["verdict"], "arose_here", "{report}");
    std::fs::remove_file(warpt.path("chain.mlir")).unwrap();
    let report = warpt.json(&[&BOTH[..], &["--json"]].concat());
    let origin = &report["first_operation"]["origin"];
    assert_eq!((&origin["verdict"], &origin["replay"]), (&json!("unknown"), &Value::Null));
    assert_eq!(origin["explanation"], "no model is given to replay it with");
}

#[test]
fn tolerances_are_overridden_by_class_and_by_name() {
    let warpt = home();
    let rules =
        "[class.outputs]\nscaled = 1.0\n[[tensor]]\nname = '*'\nclass = 'activations'\natol = 100.0\n";
    std::fs::write(warpt.path("loose.toml"), rules).unwrap();
    let report = warpt.json(&[&BOTH[..], &["--tolerances", "loose.toml", "--json"]].concat());
    assert_eq!(report["verdict"], "PASS");
    let plus = report["tensors"].as_array().unwrap().iter().find(|tensor| tensor["name"] == "plus").unwrap();
    assert_eq!(plus["rule"]["origin"], "loose.toml: [[tensor]] 1, `*`");
    assert_eq!(plus["rule"]["limits"], json!({"rtol": 0.001, "atol": 100.0, "scaled": 0.0, "ulp": 0}));
}

#[test]
fn reports_are_written_for_build_servers() {
    let warpt = home();
    let github = warpt.path("github.md");
    std::fs::write(&github, "# Earlier step\n").unwrap();
    let arguments = [&BOTH[..], &["--junit", "report.xml", "--summary"]].concat();
    let done = finished(warpt.command(&arguments).env("GITHUB_STEP_SUMMARY", &github).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let page = std::fs::read_to_string(&github).unwrap();
    assert!(page.starts_with("# Earlier step\n## Validation: FAIL\n"), "{page}");
    let xml = std::fs::read_to_string(warpt.path("report.xml")).unwrap();
    assert!(xml.contains("tests=\"6\" skipped=\"0\" failures=\"4\""), "{xml}");
    let done = warpt.run(&[&BOTH[..], &["--summary", "own.md"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(std::fs::read_to_string(warpt.path("own.md")).unwrap().contains("| activations | FAIL |"));
    assert_eq!(warpt.run(&[&BOTH[..], &["--junit", "no/such/x.xml"]].concat()).code, 3);
}

#[test]
fn steps_numbers_and_npy_files_are_compared_too() {
    let warpt = Warpt::new();
    for (name, loss) in [("golden", 0.5), ("candidate", 0.501)] {
        let folder = warpt.path(name);
        save(&folder.join("step_000/gradients.safetensors"), &[("fc.weight", vec![1.0, 2.0])]);
        npy::write(&folder.join("logits.npy"), &Tensor::from_slice(&[1], &[1.0f32]).unwrap()).unwrap();
        std::fs::write(folder.join("losses.json"), format!("{{\"loss\": [2.0, {loss}]}}")).unwrap();
        std::fs::write(folder.join("metrics.json"), format!("{{\"f1\": {loss}}}")).unwrap();
    }
    let report = warpt.json(&[&BOTH[..], &["--json"]].concat());
    let rows: Vec<(&str, &str)> = report["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tensor| (tensor["name"].as_str().unwrap(), tensor["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        rows,
        [("fc.weight", "passed"), ("loss", "out_of_tolerance"), ("f1", "passed"), ("logits", "passed")],
        "what a run came to in the end follows its steps"
    );
    let worst = &report["tensors"][1]["figures"]["worst"];
    assert_eq!(worst, &json!({"index": [1], "golden": "0.5", "candidate": "0.501"}));
}

#[test]
fn a_folder_that_is_not_what_its_manifest_says_is_refused() {
    let warpt = home();
    let manifest = json!({"schema_version": 1, "files": {"outputs.safetensors": {"sha256": "00"}}});
    std::fs::write(warpt.path("golden/manifest.json"), manifest.to_string()).unwrap();
    let done = warpt.run(&BOTH);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("`outputs.safetensors` has changed since the run"), "{}", done.stderr);
}

#[test]
fn traces_need_a_tier_that_shows_every_value() {
    let warpt = home();
    let inputs = "golden/inputs.safetensors";
    let done =
        warpt.run(&["run", "chain.mlir", "--inputs", inputs, "--tier", "production", "--trace", "t.jsonl"]);
    assert_eq!(done.code, 3, "{}", done.stderr);
    assert!(!warpt.path("t.jsonl").exists());
}

/// Validates outputs of these values.
fn outputs(golden: &[f32], candidate: &[f32]) -> (Value, String) {
    let warpt = Warpt::new();
    for (run, values) in [("golden", golden), ("candidate", candidate)] {
        save(&warpt.path(run).join("outputs.safetensors"), &[("out0", values.to_vec())]);
    }
    (warpt.json(&[&BOTH[..], &["--json"]].concat()), warpt.run(&BOTH).stdout)
}

#[test]
fn a_huge_element_does_not_excuse_the_others() {
    let (report, text) = outputs(&[1.0, 2.0, 3.0, f32::MIN], &[9.0, 2.0, 3.0, f32::MIN]);
    assert_eq!(report["verdict"], "FAIL");
    let figures = &report["tensors"][0]["figures"];
    assert_eq!((&figures["out_of_tolerance"], &figures["outliers"]), (&json!(1), &json!(1)), "{figures}");
    assert!(text.contains("1 outlier is judged by its own magnitude"), "{text}");
    let (report, _) = outputs(&[1.0, 2.0, 3.0, f32::MIN], &[1.0, 2.0, 3.0, f32::MIN * 0.99]);
    assert_eq!(report["verdict"], "FAIL");
    let (report, text) = outputs(&[1.0, 2.0, 100.0], &[1.0001, 2.0, 100.0]);
    assert_eq!(report["verdict"], "PASS");
    assert!(text.contains("one element of magnitude 100 sets the tolerance of all 3"), "{text}");
}

#[test]
fn what_is_not_finite_is_counted_and_shown() {
    let (report, text) = outputs(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, f32::NAN, f32::INFINITY]);
    assert_eq!(report["verdict"], "FAIL");
    let figures = &report["tensors"][0]["figures"];
    assert_eq!((&figures["candidate_nan"], &figures["candidate_infinite"]), (&json!(1), &json!(1)));
    assert_eq!(figures["first_non_finite"]["index"], json!([2]));
    assert_eq!(figures["cosine"], Value::Null);
    let expected = "outputs out0: golden 0 NaN and 0 infinite, candidate 1 NaN and 1 infinite of 4; first at [2]: golden \
                    3.0, candidate NaN";
    assert!(text.contains(expected) && text.contains("not finite"), "{text}");
}

#[test]
fn a_loss_one_step_off_is_one_step_off() {
    let warpt = Warpt::new();
    let loss = 0.7f32;
    for (run, loss) in [("golden", loss), ("candidate", f32::from_bits(loss.to_bits() + 1))] {
        std::fs::create_dir(warpt.path(run)).unwrap();
        std::fs::write(warpt.path(run).join("losses.json"), format!("{{\"loss\": [{}]}}", f64::from(loss)))
            .unwrap();
    }
    let report = warpt.json(&[&BOTH[..], &["--json"]].concat());
    assert_eq!(report["tensors"][0]["figures"]["max_ulp"], 1, "{report}");
}

/// What `warpt run --save` leaves is what `warpt validate` takes.
#[test]
fn runs_saved_by_the_program_are_compared_and_traced_to_their_operations() {
    let warpt = home();
    let other = CHAIN.replace("dense<1.0>", "dense<1.5>");
    std::fs::write(warpt.path("other.mlir"), other).unwrap();
    for (model, folder) in [("chain.mlir", "first"), ("chain.mlir", "second"), ("other.mlir", "third")] {
        let inputs = "golden/inputs.safetensors";
        let done = warpt.run(&["run", model, "--inputs", inputs, "--tier", "correctness", "--save", folder]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let compared = |golden: &str, candidate: &str| {
        let folders = ["validate", "--golden", golden, "--candidate", candidate, "--report-only"];
        warpt.json(&[&folders[..], &["--model", "chain.mlir", "--json"]].concat())
    };
    for golden in ["first", "golden"] {
        let report = compared(golden, "second");
        assert_eq!(
            (&report["verdict"], &report["counts"]["compared"]),
            (&json!("PASS"), &json!(6)),
            "{report}"
        );
    }
    let report = compared("first", "third");
    let first = &report["first_operation"];
    assert_eq!(
        (&first["node"], &first["origin"]["verdict"]),
        (&json!("plus"), &json!("arose_here")),
        "{report}"
    );
    assert_eq!(first["source"], "net.py:4");
}

#[test]
fn a_candidate_that_left_nothing_has_failed() {
    let warpt = home();
    std::fs::create_dir(warpt.path("empty")).unwrap();
    let done = warpt.run(&["validate", "--golden", "golden", "--candidate", "empty"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stdout.contains("nothing was found in the candidate's folder empty"), "{}", done.stdout);
    // Without anything to judge by there is nothing to say.
    let done = warpt.run(&["validate", "--golden", "empty", "--candidate", "candidate"]);
    assert_eq!(done.code, 4, "{}", done.stdout);
    assert!(done.stdout.contains("nothing was found in the golden run's folder empty"), "{}", done.stdout);
}
