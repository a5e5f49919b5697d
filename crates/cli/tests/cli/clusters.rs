//! `warpt run --save` in a tier that fuses, and `warpt validate` down to the node that errs.

use serde_json::Value;
use warpforge::Tensor;
use warpforge::io::safetensors;

use crate::warpt::{Finished, Warpt};

/// Two layers: a product, a bias, a ReLU; then a product and a gate.
const LAYERS: &str = r#"func.func @main(
    %w: tensor<16x8xf32> {warpforge.name = "w", warpforge.role = "parameter"},
    %b: tensor<8xf32> {warpforge.name = "b", warpforge.role = "parameter"},
    %x: tensor<4x16xf32> {warpforge.name = "x", warpforge.role = "input"})
    -> (tensor<4x8xf32> {warpforge.name = "gated", warpforge.role = "output"}) {
  %0 = stablehlo.tanh %x : tensor<4x16xf32> loc("tanh"("net.py":3:0))
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("mm"("net.py":4:0))
  %2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32> loc("add"("net.py":5:0))
  %3 = stablehlo.add %1, %2 : tensor<4x8xf32> loc("add"("net.py":5:0))
  %4 = stablehlo.constant dense<0.0> : tensor<4x8xf32> loc("relu"("net.py":6:0))
  %5 = stablehlo.maximum %3, %4 : tensor<4x8xf32> loc("relu"("net.py":6:0))
  %6 = stablehlo.exponential %5 : tensor<4x8xf32> loc("gate"("net.py":7:0))
  func.return %6 : tensor<4x8xf32>
}
"#;

/// A home with the model, its weights and a golden run by the reference.
fn home() -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("layers.mlir"), LAYERS).unwrap();
    let values = |count: usize, seed: u64| -> Vec<f32> {
        (0..count as u64).map(|at| ((at * 7919 + seed) % 1013) as f32 / 506.5 - 1.0).collect()
    };
    let w = Tensor::from_slice(&[16, 8], &values(128, 1)).unwrap();
    let b = Tensor::from_slice(&[8], &values(8, 5)).unwrap();
    safetensors::write(&warpt.path("w.safetensors"), [("w", &w), ("b", &b)]).unwrap();
    run(&warpt, "golden", &["--tier", "correctness"]);
    warpt
}

/// Runs the model and saves the run.
fn run(warpt: &Warpt, folder: &str, flags: &[&str]) {
    run_model(warpt, "layers.mlir", folder, flags);
}

fn run_model(warpt: &Warpt, model: &str, folder: &str, flags: &[&str]) {
    let weights = ["--weights", "w.safetensors", "--save-weights"];
    let arguments = ["run", model, "--seed", "3", "--save", folder];
    let done = warpt.run(&[&arguments, &weights[..], flags].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
}

fn validate(warpt: &Warpt, folders: [&str; 2], flags: &[&str]) -> Finished {
    let arguments = ["validate", "--golden", folders[0], "--candidate", folders[1]];
    warpt.run(&[&arguments, flags].concat())
}

fn manifest(warpt: &Warpt, folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(warpt.path(folder).join("manifest.json")).unwrap()).unwrap()
}

fn activations(warpt: &Warpt, folder: &str) -> Vec<String> {
    let file = warpt.path(folder).join("activations.safetensors");
    let mut names: Vec<String> = safetensors::read(&file).unwrap().into_keys().collect();
    names.sort();
    names
}

#[test]
fn a_fused_run_saves_what_each_cluster_gave() {
    let warpt = home();
    for tier in ["production", "observable"] {
        run(&warpt, tier, &["--tier", tier]);
        assert_eq!(activations(&warpt, tier), ["gate", "tanh"], "{tier}");
        let manifest = manifest(&warpt, tier);
        let clusters = manifest["clusters"].as_array().unwrap();
        let nodes = |at: usize| -> Vec<&str> {
            clusters[at]["nodes"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
        };
        assert_eq!((nodes(0), nodes(1)), (vec!["tanh"], vec!["mm", "add", "relu", "gate"]));
        assert_eq!(clusters[1]["tensors"], serde_json::json!(["gate"]));
        assert_eq!(manifest["run"]["tier"], tier);
        let judged = validate(&warpt, ["golden", tier], &["--model", "layers.mlir"]);
        assert_eq!(judged.code, 0, "{}{}", judged.stdout, judged.stderr);
    }
    assert_eq!(activations(&warpt, "golden"), ["add", "gate", "mm", "relu", "tanh"]);
}

/// Rounded operands are an error of the product alone, which a kernel computes together with three other operations.
#[test]
fn a_cluster_that_errs_is_split_down_to_its_node_and_the_subgraph_shows_it_again() {
    let warpt = home();
    run(&warpt, "candidate", &["--tier", "production", "--precision", "bf16"]);
    let flags = ["--model", "layers.mlir", "--reduce", "reduced"];
    let judged = validate(&warpt, ["golden", "candidate"], &flags);
    assert_eq!(judged.code, 1, "{}", judged.stderr);
    let text = &judged.stdout;
    assert!(text.contains("first cluster out of tolerance: gate, net.py:7"), "{text}");
    assert!(text.contains("computes mm, add, relu, gate"), "{text}");
    assert!(text.contains("the first node out of tolerance is mm, net.py:4: the engine"), "{text}");
    assert!(text.contains("smallest subgraph: mm from"), "{text}");
    assert!(text.contains("written to reduced"), "{text}");

    let module = std::fs::read_to_string(warpt.path("reduced/subgraph.mlir")).unwrap();
    assert!(module.contains("stablehlo.dot_general") && !module.contains("stablehlo.tanh"), "{module}");
    for (precision, code) in [("bf16", 1), ("model", 0)] {
        let weights = ["--weights", "reduced/weights.safetensors", "--inputs", "reduced/inputs.safetensors"];
        let how = ["--tier", "production", "--precision", precision, "--save", precision, "--save-weights"];
        let done = warpt.run(&[&["run", "reduced/subgraph.mlir"], &weights[..], &how[..]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let judged = validate(&warpt, ["reduced", precision], &[]);
        assert_eq!(judged.code, code, "{}", judged.stdout);
    }
}

/// A golden run that disagrees with the model inside a cluster: one node of PyTorch's is not what was imported.
#[test]
fn a_node_that_was_imported_otherwise_is_found_inside_a_fused_cluster() {
    let warpt = home();
    run(&warpt, "candidate", &["--tier", "production"]);
    let other = LAYERS.replace("dense<0.0>", "dense<0.5>");
    assert_ne!(other, LAYERS);
    std::fs::write(warpt.path("other.mlir"), other).unwrap();
    run_model(&warpt, "other.mlir", "golden", &["--tier", "correctness"]);
    let judged = validate(
        &warpt,
        ["golden", "candidate"],
        &["--model", "layers.mlir", "--reduce", "reduced", "--json"],
    );
    assert_eq!(judged.code, 1, "{}", judged.stderr);
    let found: Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(found["first_operation"]["cluster"]["position"], 1);
    assert_eq!(found["bisection"]["node"], "relu");
    assert_eq!(found["bisection"]["of"], "import");
    assert_eq!(found["bisection"]["subgraph"], serde_json::json!(["relu"]));
    let module = std::fs::read_to_string(warpt.path("reduced/subgraph.mlir")).unwrap();
    assert!(module.contains("stablehlo.maximum") && !module.contains("stablehlo.dot_general"), "{module}");
}

#[test]
fn what_is_timed_matches_pytorch_cluster_by_cluster() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    for name in ["encoder", "step"] {
        let warpt = Warpt::new();
        let (model, golden) = (format!("{data}/{name}.pt2"), format!("{data}/{name}.golden"));
        let inputs = format!("{golden}/inputs.safetensors");
        let done =
            warpt.run(&["run", &model, "--inputs", &inputs, "--tier", "production", "--save", "candidate"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let judged = validate(&warpt, [&golden, "candidate"], &["--json"]);
        assert_eq!(judged.code, 0, "{}", judged.stdout);
        let report: Value = serde_json::from_str(&judged.stdout).unwrap();
        let classes = report["classes"].as_array().unwrap();
        let activations = classes.iter().find(|class| class["class"] == "activations").unwrap();
        let given = manifest(&warpt, "candidate")["clusters"].as_array().unwrap().len() as u64;
        let compared = activations["counts"]["compared"].as_u64().unwrap();
        assert!(compared >= given / 2 && compared > 3, "{name}: {compared} values of {given} clusters");
    }
}

#[test]
fn kernels_name_the_nodes_and_lines_they_come_from() {
    let warpt = home();
    let weights = ["run", "layers.mlir", "--seed", "3", "--weights", "w.safetensors"];
    let done = warpt.run(&[&weights[..], &["--tier", "production", "--profile", "trace.json"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("measuring the limits of"), "{}", done.stderr);
    let trace: Value = serde_json::from_slice(&std::fs::read(warpt.path("trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let kernels: Vec<&Value> = events.iter().filter(|event| event["cat"] == "kernel").collect();
    let last = &kernels.last().unwrap()["args"];
    assert_eq!(last["node"], "mm, add, relu, gate");
    assert_eq!(last["source"], "net.py:4, net.py:5, net.py:6, net.py:7");
    assert!(
        last["flop"].is_u64() && last["gflop_per_s"].is_number() && last["arithmetic"] == "f32",
        "{last}"
    );
    let named =
        events.iter().any(|event| event["name"] == "thread_name" && event["args"]["name"] == "thread 0");
    assert!(named, "{trace}");

    let text = warpt.run(&["opt", "layers.mlir", "--emit", "fusion"]);
    assert!(text.stdout.contains("computes mm, add, relu, gate (net.py:4, net.py:5"), "{}", text.stdout);
    let source = warpt.run(&["opt", "layers.mlir", "--emit", "kernels"]);
    assert!(source.stdout.contains("// computes mm, add, relu, gate (net.py:4"), "{}", source.stdout);
}

#[test]
fn outputs_have_the_names_that_jax_wrote() {
    let warpt = Warpt::new();
    let module = r#"func.func public @main(%x: tensor<2xf32>)
        -> (tensor<2xf32> {jax.result_info = "result['logits']"}, tensor<2xf32> {jax.result_info = "result['past'][0]"}) {
      %0 = stablehlo.add %x, %x : tensor<2xf32>
      func.return %x, %0 : tensor<2xf32>, tensor<2xf32>
    }"#;
    std::fs::write(warpt.path("jax.mlir"), module).unwrap();
    let record = warpt.json(&["run", "jax.mlir", "--seed", "1", "--outputs", "out.safetensors", "--json"]);
    let names: Vec<&Value> =
        record["outputs"].as_array().unwrap().iter().map(|output| &output["name"]).collect();
    assert_eq!(names, ["logits", "past.0"]);
    let written = safetensors::read(&warpt.path("out.safetensors")).unwrap();
    assert!(written.contains_key("past.0"), "{:?}", written.keys());
}
