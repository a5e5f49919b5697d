//! Values inside a model: `warpt run --compare` on the CPU, and all that a GPU shows, on one that only pretends and on a real
//! one where there is one.

use serde_json::{Value, json};

use crate::pretend;
use crate::warpt::{Finished, Warpt};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// The arguments of a run of a model that PyTorch left.
fn run<'a>(model: &'a str, inputs: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["run", model, "--inputs", inputs, "--json"], flags].concat()
}

fn record(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", done.stdout, done.stderr))
}

#[test]
fn the_reference_beside_itself_is_the_same() {
    let warpt = Warpt::new();
    let (model, inputs) =
        (format!("{DATA}/encoder.pt2"), format!("{DATA}/encoder.golden/inputs.safetensors"));
    let done = warpt.run(&run(&model, &inputs, &["--compare"]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let record = record(&done);
    assert_eq!(record["tier"], "correctness");
    let compared = &record["compared"];
    assert!(compared["operations"].as_u64() > Some(20), "{compared}");
    assert_eq!(compared["operations"], compared["identical"]);
    assert_eq!((&compared["out_of_tolerance"], &compared["furthest"]), (&json!(0), &Value::Null));
    assert_eq!(compared["not_compared"], json!([]));
    let done = warpt.run(&run(&model, &inputs, &["--compare", "--tier", "production"]));
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    assert!(done.stderr.contains("cannot observe values"), "{}", done.stderr);
}

/// The lines of a trace without what depends on rounding.
fn lines(warpt: &Warpt, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(warpt.path(name)).unwrap();
    let exact =
        ["function", "op_index", "op", "node", "source", "result", "iteration", "element_type", "shape"];
    let kept = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        exact.iter().map(|&key| line[key].clone()).collect()
    };
    text.lines().map(kept).collect()
}

/// Runs a model on a GPU and on the CPU and compares all that was seen.
fn shows_what_the_cpu_shows(model: &str, on_gpu: &dyn Fn(&Warpt, &[&str]) -> Option<Finished>) {
    let warpt = Warpt::new();
    let golden = format!("{DATA}/{model}.golden");
    let (model, inputs) = (format!("{DATA}/{model}.pt2"), format!("{golden}/inputs.safetensors"));
    let flags = |device, folder, trace| {
        ["--device", device, "--tier", "correctness", "--save", folder, "--trace", trace, "--compare"]
    };
    let arguments = run(&model, &inputs, &flags("cuda", "gpu", "gpu.jsonl"));
    let Some(done) = on_gpu(&warpt, &arguments) else { return };
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let record = record(&done);
    assert!(record["kernel_launches"].as_u64() > Some(4), "{record}");
    assert_eq!((&record["fallbacks"], &record["compared"]["not_compared"]), (&json!([]), &json!([])));
    assert_eq!(record["compared"]["out_of_tolerance"], 0);
    let arguments = run(&model, &inputs, &flags("cpu", "cpu", "cpu.jsonl"));
    assert_eq!(warpt.run(&arguments).code, 0);
    assert_eq!(lines(&warpt, "gpu.jsonl"), lines(&warpt, "cpu.jsonl"));
    for golden in ["cpu", &golden] {
        let report = warpt.json(&["validate", "--golden", golden, "--candidate", "gpu", "--json"]);
        assert_eq!(
            (&report["verdict"], &report["counts"]["missing"]),
            (&json!("PASS"), &json!(0)),
            "{golden}"
        );
    }
}

#[test]
fn a_gpu_shows_the_values_that_the_cpu_shows() {
    shows_what_the_cpu_shows("encoder", &|warpt, arguments| {
        let done = warpt.run(arguments);
        if done.code == 3 && done.stderr.contains("no backend runs on cuda:0") {
            eprintln!("skipped, there is no GPU: {}", done.stderr.trim());
            return None;
        }
        Some(done)
    });
}

#[test]
fn a_pretended_gpu_shows_the_values_that_the_cpu_shows() {
    shows_what_the_cpu_shows("step", &|warpt, arguments| pretend::run(warpt, arguments, &[]));
}

/// The logarithm of a product, and a loop.
const LOG: &str = "func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32> loc(\"mul\"(\"net.py\":4:0))
  %1 = stablehlo.log %0 : tensor<4xf32> loc(\"log\"(\"net.py\":5:0))
  func.return %1 : tensor<4xf32>
}
";

#[test]
fn the_first_nan_on_a_pretended_gpu_stops_the_run_with_its_place() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda", "--break-on", "nan"];
    let Some(done) = pretend::run(&warpt, &arguments, &[]) else { return };
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{}", done.stderr);
    for expected in ["log.mlir:3:", "stablehlo.log", "node `log`", "net.py:5", "^"] {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
}

#[test]
fn tiers_of_a_pretended_gpu_give_what_the_cpu_gives() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let hash = |record: &Value| record["outputs"][0]["nan"].clone();
    let expected = warpt.json(&["run", "log.mlir", "--seed", "1", "--json"]);
    for tier in ["production", "correctness"] {
        let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda", "--tier", tier, "--json"];
        let Some(done) = pretend::run(&warpt, &arguments, &[]) else { return };
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(hash(&record(&done)), hash(&expected));
    }
}

#[test]
fn a_gpu_that_cannot_be_used_is_exit_3_and_says_why() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let cases: [(&str, &str, &str, &[&str]); 6] = [
        (
            "cuda",
            "PRETEND_VERSION",
            "11080",
            &["supports version 11.8, and 12.0 is needed; update the driver"],
        ),
        ("cuda", "PRETEND_INIT", "100", &["init failed with code 100: as pretended"]),
        ("cuda:1", "PRETEND_DEVICES", "1", &["there is no device 1: the driver shows 1"]),
        ("cuda", "PRETEND_MEMORY", "1000", &["bytes are needed, ", "of 1000 are free"]),
        ("cuda", "PRETEND_LAUNCH", "700", &["the device is lost (launch: as pretended)"]),
        ("cuda", "PRETEND_WAIT", "719", &["the device is lost (stream_synchronise: as pretended)"]),
    ];
    for (device, variable, value, texts) in cases {
        let arguments = ["run", "log.mlir", "--seed", "1", "--device", device];
        let Some(done) = pretend::run(&warpt, &arguments, &[(variable, value)]) else { return };
        assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{variable}: {}", done.stderr);
        for text in texts {
            assert!(done.stderr.contains(text), "{variable}: no `{text}` in {}", done.stderr);
        }
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_kept_with_its_log() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda"];
    let Some(done) = pretend::run(&warpt, &arguments, &[("PRETEND_COMPILE", "no")]) else { return };
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{}", done.stderr);
    assert!(
        done.stderr.contains("does not compile: k.cu(1): error: pretended; the source is "),
        "{}",
        done.stderr
    );
    let kept = warpt.path("cache/warpt/kernels/failed");
    let mut ends: Vec<String> = crate::warpt::file_names(&kept)
        .iter()
        .filter_map(|name| Some(name.rsplit_once('.')?.1.to_owned()))
        .collect();
    ends.sort();
    ends.dedup();
    assert_eq!(ends, ["cu", "log"]);
}
