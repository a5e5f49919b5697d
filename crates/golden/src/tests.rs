//! Whole validations of folders made here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use warpforge_diag::Source;
use warpforge_interp::{Interpreter, Observer, Value};
use warpforge_ir::nodes::Nodes;
use warpforge_ir::{Module, OpRef};
use warpforge_snakeburger::text;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::safetensors;

use crate::report::{OriginVerdict, Status, TensorReport};
use crate::{Class, Folder, Model, Options, Tolerances, Validation, Verdict, explain, validate};

/// Four nodes in a chain; `{extra}` may add to the second one.
fn chain(extra: &str) -> Module {
    let text = format!(
        "func.func @main(%w: tensor<4xf32> {{warpforge.name = \"w\", warpforge.role = \"parameter\"}},
            %x: tensor<4xf32> {{warpforge.name = \"x\", warpforge.role = \"input\"}})
            -> (tensor<4xf32> {{warpforge.name = \"out0\", warpforge.role = \"output\"}}) {{
  %two = stablehlo.constant dense<2.0> : tensor<4xf32> loc(\"scale\")
  %a = stablehlo.multiply %x, %two : tensor<4xf32> loc(\"scale\"(\"net.py\":3:0))
  %b0 = stablehlo.add %a, %w : tensor<4xf32> loc(\"shift\"(\"net.py\":4:0))
  {extra}
  %c = stablehlo.tanh %b : tensor<4xf32> loc(\"tanh\"(\"net.py\":5:0))
  %d = stablehlo.multiply %c, %a : tensor<4xf32> loc(\"gate\"(\"net.py\":6:0))
  return %d : tensor<4xf32>
}}"
    );
    let source = Source::new("chain.mlir", text);
    text::parse(&source, &text::Options { keep_locations: true }).unwrap()
}

fn plain_chain() -> Module {
    chain("%b = stablehlo.reshape %b0 : (tensor<4xf32>) -> tensor<4xf32> loc(\"shift\"(\"net.py\":4:0))")
}

/// The chain with the value of `shift` made larger by `by`.
fn shifted_chain(by: &str) -> Module {
    chain(&format!(
        "%e = stablehlo.constant dense<{by}> : tensor<4xf32> loc(\"shift\")\n  \
         %b = stablehlo.add %b0, %e : tensor<4xf32> loc(\"shift\"(\"net.py\":4:0))"
    ))
}

/// Keeps what each operation computes last under its node's name.
struct ByNode {
    nodes: Nodes,
    values: Mutex<BTreeMap<String, Tensor>>,
}

impl Observer for ByNode {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> Result<(), String> {
        if let (Some((_, node)), [Value::Tensor(tensor)]) = (self.nodes.containing(op.id()), results) {
            self.values.lock().unwrap().insert(node.name.clone(), tensor.clone());
        }
        Ok(())
    }
}

fn vector(values: [f32; 4]) -> Tensor {
    Tensor::from_slice(&[4], &values).unwrap()
}

fn weights() -> BTreeMap<String, Tensor> {
    BTreeMap::from([("w".to_owned(), vector([0.1, -0.2, 0.3, 0.0]))])
}

fn activations(module: &Module, x: &Tensor) -> BTreeMap<String, Tensor> {
    let nodes = Nodes::of(module.function("main").unwrap());
    let observer = Arc::new(ByNode { nodes, values: Mutex::default() });
    let options = warpforge_interp::Options { observer: Some(observer.clone()), ..Default::default() };
    let inputs = vec![Value::Tensor(weights()["w"].clone()), Value::Tensor(x.clone())];
    Interpreter::new(module, options).run("main", inputs).unwrap();
    observer.values.lock().unwrap().clone()
}

fn save<'a>(path: &Path, tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    safetensors::write(path, tensors).unwrap();
}

/// A place for runs.
struct Runs(TempDir);

impl Runs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Leaves a run of a module: its input, activations and output.
    fn run(&self, name: &str, module: &Module) {
        let x = vector([0.5, 1.0, -1.0, 0.25]);
        let values = activations(module, &x);
        save(&self.path(name).join("inputs.safetensors"), [("x", &x)]);
        let named = values.iter().map(|(name, tensor)| (name.as_str(), tensor));
        save(&self.path(name).join("activations.safetensors"), named);
        save(&self.path(name).join("outputs.safetensors"), [("out0", &values["gate"])]);
    }

    fn validate(&self, options: &Options<'_>) -> Validation {
        let open = |name: &str| Folder::open(&self.path(name)).unwrap();
        validate(&open("golden"), &open("candidate"), options)
    }

    /// Validates, and replays with the chain.
    fn explain(&self, weights: &BTreeMap<String, Tensor>, replays: usize) -> Validation {
        let open = |name: &str| Folder::open(&self.path(name)).unwrap();
        let (golden, candidate) = (open("golden"), open("candidate"));
        let module = plain_chain();
        let model = Model { name: "chain.mlir", entry: "main", module: &module, weights };
        let mut validation = validate(&golden, &candidate, &Options::default());
        explain(&mut validation, &golden, &candidate, Some(&model), replays);
        validation
    }
}

fn origins(validation: &Validation) -> Vec<(&str, OriginVerdict)> {
    validation.operations.iter().map(|op| (op.node.as_str(), op.origin.verdict)).collect()
}

#[test]
fn the_operation_that_errs_is_named_and_those_after_it_inherit() {
    let runs = Runs::new();
    runs.run("golden", &plain_chain());
    runs.run("candidate", &shifted_chain("0.01"));
    let validation = runs.explain(&weights(), 16);
    assert_eq!(validation.verdict, Verdict::Fail);
    let first = validation.first_operation.as_ref().unwrap();
    assert_eq!((first.node.as_str(), first.source.as_deref()), ("shift", Some("net.py:4")));
    assert_eq!(
        origins(&validation),
        [
            ("shift", OriginVerdict::AroseHere),
            ("tanh", OriginVerdict::Inherited),
            ("gate", OriginVerdict::Inherited)
        ]
    );
    let replay = first.origin.replay.as_ref().unwrap();
    assert!((replay.execution.max_abs - 0.01).abs() < 1e-6, "{replay:?}");
    assert_eq!((replay.inherited.max_abs, replay.import.max_abs), (0.0, 0.0));
    assert_eq!(replay.inputs, ["w", "scale"]);
    assert!(
        first.origin.explanation.contains("otherwise than the reference"),
        "{}",
        first.origin.explanation
    );
    let out = validation.tensors.iter().find(|report| report.class == Class::Outputs).unwrap();
    assert_eq!(out.node.as_deref(), Some("gate"));
}

#[test]
fn an_operation_that_was_imported_wrongly_arose_there_too() {
    let runs = Runs::new();
    runs.run("golden", &shifted_chain("0.01"));
    runs.run("candidate", &plain_chain());
    let validation = runs.explain(&weights(), 16);
    let first = validation.first_operation.as_ref().unwrap();
    assert_eq!((first.node.as_str(), first.origin.verdict), ("shift", OriginVerdict::AroseHere));
    assert!(first.origin.explanation.starts_with("the imported operation"), "{}", first.origin.explanation);
}

#[test]
fn an_error_on_top_of_an_inherited_one_is_both() {
    let runs = Runs::new();
    runs.run("golden", &plain_chain());
    runs.run("candidate", &shifted_chain("0.01"));
    let mut values = safetensors::read(&runs.path("candidate/activations.safetensors")).unwrap();
    let wrong = vector([0.9, 0.9, 0.9, 0.9]);
    values.insert("tanh".to_owned(), wrong);
    let named = values.iter().map(|(name, tensor)| (name.as_str(), tensor));
    save(&runs.path("candidate/activations.safetensors"), named);
    let validation = runs.explain(&weights(), 2);
    let expected = [
        ("shift", OriginVerdict::AroseHere),
        ("tanh", OriginVerdict::Both),
        ("gate", OriginVerdict::Unknown),
    ];
    assert_eq!(origins(&validation), expected);
    assert!(validation.operations[2].origin.explanation.contains("only the first 2"));
}

#[test]
fn values_that_were_not_saved_are_computed_with_the_operation() {
    let runs = Runs::new();
    runs.run("golden", &plain_chain());
    runs.run("candidate", &shifted_chain("0.01"));
    for run in ["golden", "candidate"] {
        let path = runs.path(run).join("activations.safetensors");
        let mut values = safetensors::read(&path).unwrap();
        values.retain(|name, _| name != "shift");
        save(&path, values.iter().map(|(name, tensor)| (name.as_str(), tensor)));
    }
    let validation = runs.explain(&weights(), 16);
    let first = validation.first_operation.as_ref().unwrap();
    assert_eq!((first.node.as_str(), first.origin.verdict), ("tanh", OriginVerdict::AroseHere));
    assert_eq!(first.origin.replay.as_ref().unwrap().nodes, ["shift", "tanh"]);

    let validation = runs.explain(&BTreeMap::new(), 16);
    let origin = &validation.first_operation.as_ref().unwrap().origin;
    assert_eq!(origin.verdict, OriginVerdict::Unknown);
    assert!(origin.explanation.contains("`w` is neither among the golden weights nor in the model"));
}

#[test]
fn without_a_model_the_order_is_the_manifests_and_the_origin_unknown() {
    let runs = Runs::new();
    runs.run("golden", &plain_chain());
    runs.run("candidate", &shifted_chain("0.01"));
    let validation = runs.validate(&Options::default());
    assert!(validation.first_operation.is_none());
    assert!(validation.first_operation_unknown.unwrap().contains("in which order"));

    let manifest = serde_json::json!({"schema_version": 1, "nodes": [
        {"name": "scale"}, {"name": "gate", "target": "aten.mul.Tensor", "source": "net.py:9"}, {"name": "shift"}]});
    std::fs::write(runs.path("golden/manifest.json"), manifest.to_string()).unwrap();
    let validation = runs.validate(&Options::default());
    let first = validation.first_operation.as_ref().unwrap();
    assert_eq!((first.node.as_str(), first.target.as_deref()), ("gate", Some("aten.mul.Tensor")));
    assert_eq!(first.origin.verdict, OriginVerdict::Unknown);
    assert!(first.origin.explanation.contains("no model"));
}

#[test]
fn equal_runs_pass_and_nothing_in_common_is_inconclusive() {
    let runs = Runs::new();
    runs.run("golden", &plain_chain());
    runs.run("candidate", &plain_chain());
    let validation = runs.validate(&Options { threads: 4, ..Options::default() });
    assert_eq!(validation.verdict, Verdict::Pass);
    assert_eq!((validation.counts.compared, validation.counts.identical), (6, 6));
    assert!(validation.classes.iter().all(|class| class.verdict == Verdict::Pass));

    std::fs::remove_file(runs.path("candidate/outputs.safetensors")).unwrap();
    let validation = runs.validate(&Options::default());
    assert_eq!((validation.verdict, validation.counts.missing), (Verdict::Fail, 1));

    std::fs::remove_file(runs.path("candidate/activations.safetensors")).unwrap();
    let validation = runs.validate(&Options::default());
    assert_eq!(validation.verdict, Verdict::Inconclusive, "only the inputs are left");
}

#[test]
fn shapes_types_nan_and_rules_decide_the_status() {
    let runs = Runs::new();
    let nan = Tensor::from_slice(&[2], &[f32::NAN, 1.0]).unwrap();
    let half = Tensor::from_slice(&[2], &[half::f16::ONE, half::f16::ONE]).unwrap();
    let ones = Tensor::from_slice(&[2], &[1.0f32, 1.0]).unwrap();
    let (int, other) = (Tensor::from_slice(&[1], &[1000i64]), Tensor::from_slice(&[1], &[1001i64]));
    let (int, other) = (int.unwrap(), other.unwrap());
    let golden = [
        ("nan", &nan),
        ("other", &ones),
        ("shape", &ones),
        ("type", &ones),
        ("count", &int),
        ("gone", &ones),
    ];
    let candidate =
        [("nan", &nan), ("other", &nan), ("shape", &int), ("type", &half), ("count", &other), ("new", &ones)];
    save(&runs.path("golden/gradients.safetensors"), golden);
    save(&runs.path("candidate/gradients.safetensors"), candidate);
    let statuses = |tolerances: &str| {
        let tolerances = Tolerances::parse(tolerances, "t.toml").unwrap();
        let validation = runs.validate(&Options { tolerances, ..Options::default() });
        let rows = validation.tensors.iter();
        rows.map(|report| (report.name.clone(), (report.status, report.failed))).collect::<BTreeMap<_, _>>()
    };
    let plain = statuses("");
    assert_eq!(plain["nan"], (Status::Passed, false));
    assert_eq!(plain["other"], (Status::OutOfTolerance, true));
    assert_eq!(plain["shape"], (Status::ShapeMismatch, true));
    assert_eq!(plain["type"], (Status::TypeMismatch, true));
    assert_eq!(plain["count"], (Status::OutOfTolerance, true), "integers must be the same");
    assert_eq!(plain["gone"], (Status::Missing, true));
    assert_eq!(plain["new"], (Status::Extra, false));
    let changed = statuses(
        "nan = 'mismatch'\n[class.gradients]\nmissing = 'report'\nextra = 'fail'\ntypes = 'any'\n\
         [[tensor]]\nname = 'count'\natol = 1.0\n[[tensor]]\nname = 'sh*'\nignore = true\n",
    );
    assert_eq!(changed["nan"], (Status::OutOfTolerance, true));
    assert_eq!(changed["shape"], (Status::Ignored, false));
    assert_eq!(changed["type"], (Status::Passed, false));
    assert_eq!(changed["count"], (Status::Passed, false));
    assert_eq!(changed["gone"], (Status::Missing, false));
    assert_eq!(changed["new"], (Status::Extra, true));
}

#[test]
fn figures_say_how_much_and_where() {
    let runs = Runs::new();
    for (run, values) in [("golden", [1.0f32, 2.0, 3.0, -4.0]), ("candidate", [1.0, 2.0, 3.03, -4.0])] {
        save(&runs.path(run).join("step_2/weights.safetensors"), [("w", &vector(values))]);
        save(&runs.path(run).join("step_10/weights.safetensors"), [("w", &vector([1.0; 4]))]);
    }
    let validation = runs.validate(&Options::default());
    let steps: Vec<_> = validation.tensors.iter().map(TensorReport::label).collect();
    assert_eq!(steps, ["step_2/w", "step_10/w"]);
    let figures = validation.tensors[0].figures.as_ref().unwrap();
    let worst = figures.worst.as_ref().unwrap();
    assert_eq!((worst.index.as_slice(), worst.golden.as_str()), ([2].as_slice(), "3.0"));
    assert!((figures.max_abs - 0.03).abs() < 1e-6 && (figures.max_rel - 0.01).abs() < 1e-6);
    assert!(figures.cosine.unwrap() > 0.9999 && figures.out_of_tolerance == 1);
    let bins: Vec<_> = figures.histogram.iter().map(|bin| (bin.from, bin.to, bin.count)).collect();
    assert_eq!(bins, [(0.0, Some(0.0), 3), (0.01, Some(0.1), 1)]);
    assert_eq!(validation.classes[0].worst_tensor.as_deref(), Some("step_2/w"));
}

#[test]
fn the_noise_floor_is_asked_only_for_tensors_that_it_lists_and_that_need_it() {
    let runs = Runs::new();
    for (run, by) in [("golden", 0.0f32), ("candidate", 0.003)] {
        let off = vector([1.0 + by, 2.0, 3.0, 4.0]);
        save(&runs.path(run).join("weights.safetensors"), [("listed", &off), ("other", &off)]);
        let far = vector([1.0 + 2.0 * by, 2.0, 3.0, 4.0]);
        save(
            &runs.path(run).join("step_1/weights.safetensors"),
            [("listed", &far), ("same", &vector([1.0; 4]))],
        );
    }
    let noise = r#"{"schema_version": 1, "tensors": {"weights":
        {"listed": {"max_abs": 0.001, "reason": "it is rounding"}, "same": {"max_abs": 1.0, "reason": "never needed"}}}}"#;
    std::fs::write(runs.path("golden/noise.json"), noise).unwrap();
    let validation = runs.validate(&Options::default());
    let status = |label: &str| {
        let report = validation.tensors.iter().find(|report| report.label() == label).unwrap();
        (report.status, report.failed)
    };
    assert_eq!(status("listed"), (Status::WithinNoise, false));
    assert_eq!(status("step_1/listed"), (Status::OutOfTolerance, true), "more than four times");
    assert_eq!(status("other"), (Status::OutOfTolerance, true));
    assert_eq!(status("step_1/same"), (Status::Passed, false));
    let notes = validation.notes.join("\n");
    assert!(
        notes.contains("weights judged by the noise floor of the golden run: listed: it is rounding"),
        "{notes}"
    );
    assert!(!notes.contains("never needed"), "{notes}");
    std::fs::write(runs.path("golden/noise.json"), noise.replace("0.001", "-1")).unwrap();
    let refused = crate::Folder::open(&runs.path("golden")).unwrap_err().to_string();
    assert!(refused.contains("`listed`: -1 is no distance"), "{refused}");
}

#[test]
fn each_element_of_a_curve_is_judged_by_its_own_noise_floor() {
    let runs = Runs::new();
    let noise = r#"{"schema_version": 1, "tensors": {"losses":
        {"loss": {"max_abs": 0.1, "each": [0.0, 0.001, 0.1], "reason": "the runs part"}}}}"#;
    let judged = |losses: &str| {
        for (run, text) in [("golden", r#"{"loss": [3.0, 2.0, 1.0]}"#), ("candidate", losses)] {
            std::fs::create_dir_all(runs.path(run)).unwrap();
            std::fs::write(runs.path(run).join("losses.json"), text).unwrap();
        }
        std::fs::write(runs.path("golden/noise.json"), noise).unwrap();
        let report = runs.validate(&Options::default()).tensors.remove(0);
        (report.status, report.failed)
    };
    assert_eq!(judged(r#"{"loss": [3.00001, 2.003, 1.3]}"#), (Status::WithinNoise, false));
    assert_eq!(
        judged(r#"{"loss": [3.1, 2.0, 1.0]}"#),
        (Status::OutOfTolerance, true),
        "the first has no noise"
    );
    assert_eq!(
        judged(r#"{"loss": [3.0, 2.0, 1.5]}"#),
        (Status::OutOfTolerance, true),
        "more than four times"
    );
    std::fs::write(runs.path("golden/noise.json"), noise.replace("0.001", "-1")).unwrap();
    let refused = crate::Folder::open(&runs.path("golden")).unwrap_err().to_string();
    assert!(refused.contains("`loss`: -1 is no distance"), "{refused}");
}
