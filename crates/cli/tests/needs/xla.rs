//! Imported modules are real StableHLO: the same files run in XLA, with results equal to ours and to PyTorch's.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::{Map, Value};
use warpforge::io::safetensors;
use warpforge::{Criterion, Tensor, Tolerance, compare};

use crate::trial;
use crate::warpt::Warpt;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/xla.py");

/// The files made of each model, with the shape that its dynamic dimensions are fixed to. Artifacts have functions such as
/// the transformer block's error function in StableHLO's own operations.
const FILES: [(&str, Option<&str>); 13] = [
    ("block.mlir", None),
    ("block.mlir.bc", None),
    ("block_decomposed.mlir", None),
    ("block_dynamic.mlir", Some("ids=2x7")),
    ("block_dynamic.mlir.bc", Some("ids=2x7")),
    ("block_train.mlir", None),
    ("block_train.mlir.bc", None),
    ("convolutions.mlir", None),
    ("convolutions.mlir.bc", None),
    ("convolutions_train.mlir", None),
    ("convolutions_train.mlir.bc", None),
    ("functions.mlir", None),
    ("functions.mlir.bc", None),
];

fn python(python: &OsStr, step: &str, folder: &Path) {
    let done = Command::new(python).arg(SCRIPT).arg(step).arg(folder).output().unwrap();
    assert!(done.status.success(), "{step}: {}", String::from_utf8_lossy(&done.stderr));
}

#[track_caller]
fn assert_equal(found: &Tensor, expected: &Tensor, what: &str) {
    let report = compare(found, expected, Criterion::new(Tolerance::Scaled { rtol: 1e-5 }))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.passed(), "{what}: {} of {} values differ", report.mismatches, report.count);
}

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    crate::python::missing("torch, jax")
}

pub(crate) fn trials() -> Vec<Trial> {
    let test = imported_modules_run_in_xla_with_equal_results;
    vec![trial("imported_modules_run_in_xla_with_equal_results", test)]
}

fn imported_modules_run_in_xla_with_equal_results() {
    let interpreter = crate::python::interpreter();
    let warpt = Warpt::new();
    let folder = warpt.path("models");
    std::fs::create_dir(&folder).unwrap();
    python(&interpreter, "export", &folder);
    let mut order = Map::new();
    for (file, shape) in FILES {
        order.insert(file.to_owned(), Value::from(import_and_run(&warpt, file, shape)));
    }
    std::fs::write(folder.join("inputs.json"), Value::from(order).to_string()).unwrap();
    python(&interpreter, "run", &folder);
    for (file, _) in FILES {
        let read = |name: &str| safetensors::read(&folder.join(name)).unwrap();
        let (xla, ours) =
            (read(&format!("{file}.xla.safetensors")), read(&format!("{file}.ours.safetensors")));
        let pytorch = read(&format!("{}.golden/outputs.safetensors", model_of(file)));
        let names: Vec<String> =
            serde_json::from_slice(&std::fs::read(folder.join(format!("{file}.outputs.json"))).unwrap())
                .unwrap();
        assert_eq!((xla.len(), ours.len()), (names.len(), names.len()), "{file}");
        for (at, output) in names.iter().enumerate() {
            assert_equal(&xla[&at.to_string()], &ours[output], &format!("{file}: {output} in XLA"));
        }
        for (output, expected) in &pytorch {
            assert_equal(&ours[output], expected, &format!("{file}: {output} of PyTorch"));
        }
    }
}

fn model_of(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

/// Imports a model to a file and runs that; the names of its inputs in order.
fn import_and_run(warpt: &Warpt, file: &str, shape: Option<&str>) -> Vec<Value> {
    let (archive, output) = (format!("models/{}.pt2", model_of(file)), format!("models/{file}"));
    let shapes: Vec<&str> = shape.iter().flat_map(|&shape| ["--shape", shape]).collect();
    let done = warpt.run(&[&["import", &archive, "-o", &output], shapes.as_slice()].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let inputs = format!("models/{}.golden/inputs.safetensors", model_of(file));
    let results = format!("{output}.ours.safetensors");
    let run = ["run", &output, "--inputs", &inputs, "--outputs", &results, "--tier", "correctness", "--json"];
    let record = warpt.json(&run);
    let names = |side: &str| -> Vec<Value> {
        record[side].as_array().unwrap().iter().map(|one| one["name"].clone()).collect()
    };
    let outputs = Value::from(names("outputs")).to_string();
    std::fs::write(warpt.path(&format!("{output}.outputs.json")), outputs).unwrap();
    names("inputs")
}
