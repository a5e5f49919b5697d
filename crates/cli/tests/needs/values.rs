//! Values inside a model: all that a GPU shows, on one that only pretends and on a real one where there is one.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::warpt::{Finished, Warpt};
use crate::{pretend, trial};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Why there is no GPU to test with.
pub(crate) fn missing_gpu() -> Option<String> {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let done = warpt.run(&["run", "log.mlir", "--seed", "1", "--device", "cuda"]);
    (done.code == 3 && done.stderr.contains("no backend runs on cuda:0"))
        .then(|| format!("there is no GPU ({})", done.stderr.trim()))
}

/// The tests on a real GPU.
pub(crate) fn on_a_gpu() -> Vec<Trial> {
    vec![trial("a_gpu_shows_the_values_that_the_cpu_shows", a_gpu_shows_the_values_that_the_cpu_shows)]
}

/// The tests on a pretended GPU.
pub(crate) fn pretended() -> Vec<Trial> {
    let tests: [(&str, fn()); 5] = [
        (
            "a_pretended_gpu_shows_the_values_that_the_cpu_shows",
            a_pretended_gpu_shows_the_values_that_the_cpu_shows,
        ),
        (
            "the_first_nan_on_a_pretended_gpu_stops_the_run_with_its_place",
            the_first_nan_on_a_pretended_gpu_stops_the_run_with_its_place,
        ),
        (
            "tiers_of_a_pretended_gpu_give_what_the_cpu_gives",
            tiers_of_a_pretended_gpu_give_what_the_cpu_gives,
        ),
        (
            "a_gpu_that_cannot_be_used_is_exit_3_and_says_why",
            a_gpu_that_cannot_be_used_is_exit_3_and_says_why,
        ),
        (
            "a_kernel_that_does_not_compile_is_kept_with_its_log",
            a_kernel_that_does_not_compile_is_kept_with_its_log,
        ),
    ];
    tests.into_iter().map(|(name, test)| trial(name, test)).collect()
}

/// The arguments of a run of a model that PyTorch left.
fn run<'a>(model: &'a str, inputs: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["run", model, "--inputs", inputs, "--json"], flags].concat()
}

fn record(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", done.stdout, done.stderr))
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
fn shows_what_the_cpu_shows(model: &str, on_gpu: &dyn Fn(&Warpt, &[&str]) -> Finished) {
    let warpt = Warpt::new();
    let golden = format!("{DATA}/{model}.golden");
    let (model, inputs) = (format!("{DATA}/{model}.pt2"), format!("{golden}/inputs.safetensors"));
    let flags = |device, folder, trace| {
        ["--device", device, "--tier", "correctness", "--save", folder, "--trace", trace, "--compare"]
    };
    let arguments = run(&model, &inputs, &flags("cuda", "gpu", "gpu.jsonl"));
    let done = on_gpu(&warpt, &arguments);
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

fn a_gpu_shows_the_values_that_the_cpu_shows() {
    shows_what_the_cpu_shows("encoder", &|warpt, arguments| warpt.run(arguments));
}

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

fn the_first_nan_on_a_pretended_gpu_stops_the_run_with_its_place() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda", "--break-on", "nan"];
    let done = pretend::run(&warpt, &arguments, &[]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{}", done.stderr);
    for expected in ["log.mlir:3:", "stablehlo.log", "node `log`", "net.py:5", "^"] {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
}

fn tiers_of_a_pretended_gpu_give_what_the_cpu_gives() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let hash = |record: &Value| record["outputs"][0]["nan"].clone();
    let expected = warpt.json(&["run", "log.mlir", "--seed", "1", "--json"]);
    for tier in ["production", "correctness"] {
        let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda", "--tier", tier, "--json"];
        let done = pretend::run(&warpt, &arguments, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(hash(&record(&done)), hash(&expected));
    }
}

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
        let done = pretend::run(&warpt, &arguments, &[(variable, value)]);
        assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{variable}: {}", done.stderr);
        for text in texts {
            assert!(done.stderr.contains(text), "{variable}: no `{text}` in {}", done.stderr);
        }
    }
}

fn a_kernel_that_does_not_compile_is_kept_with_its_log() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("log.mlir"), LOG).unwrap();
    let arguments = ["run", "log.mlir", "--seed", "1", "--device", "cuda"];
    let done = pretend::run(&warpt, &arguments, &[("PRETEND_COMPILE", "no")]);
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
