//! `warpt import`: what is written, in which form, and what is refused.

use serde_json::Value;

use crate::warpt::Warpt;

/// `relu(x [[1, 2, 3], [4, 5, 6]]ᵀ + [0.5, -0.5])` for 1 to 64 rows.
const LINEAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linear.pt2");
/// An encoder, and beside it its inputs.
const ENCODER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/encoder");
/// Eigenvalues, twice, and a matrix exponential.
const REFUSED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/refused.pt2");

fn outputs_of(warpt: &Warpt, model: &str, flags: &[&str]) -> Value {
    let run = ["run", model, "--seed", "3", "--shape", "x=4x3", "--tier", "correctness", "--json"];
    warpt.json(&[&run, flags].concat())["outputs"].clone()
}

#[test]
fn text_and_bytecode_compute_what_the_archive_does() {
    let warpt = Warpt::new();
    let expected = outputs_of(&warpt, LINEAR, &[]);
    assert_eq!(expected[0]["shape"], Value::from(vec![4, 2]));
    for (file, first) in [("model.mlir", b"module".as_slice()), ("model.mlir.bc", b"ML\xefR")] {
        let report = warpt.json(&["import", LINEAR, "-o", file, "--json"]);
        assert_eq!(
            (&report["weights"], &report["weights_file"]),
            (&Value::from(2), &Value::Null),
            "{report}"
        );
        assert!(std::fs::read(warpt.path(file)).unwrap().starts_with(first), "{file}");
        assert_eq!(warpt.run(&["check", file]).code, 0);
        assert_eq!(outputs_of(&warpt, file, &[]), expected, "{file}");
    }
}

#[test]
fn weights_go_to_a_file_of_their_own() {
    let warpt = Warpt::new();
    let expected = outputs_of(&warpt, LINEAR, &[]);
    for file in ["model.mlir", "model.mlir.bc"] {
        let done = warpt.run(&["import", LINEAR, "-o", file, "--weights", "w.safetensors"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stdout.contains("2 weights") && done.stdout.contains("in w.safetensors"),
            "{}",
            done.stdout
        );
        assert_eq!(outputs_of(&warpt, file, &["--weights", "w.safetensors"]), expected, "{file}");
    }
}

#[test]
fn weights_are_stored_in_few_bits_and_restored_by_the_module() {
    let warpt = Warpt::new();
    let mean = |outputs: &Value| outputs[0]["mean"].as_f64().unwrap();
    let expected = mean(&outputs_of(&warpt, LINEAR, &[]));
    for (recipe, apart) in [("int8wo", 0.02), ("float8wo", 0.06)] {
        for file in ["model.mlir", "model.mlir.bc"] {
            let import = ["import", LINEAR, "-o", file, "--weights", "w.safetensors", "--precision", recipe];
            let done = warpt.run(&import);
            assert_eq!(done.code, 0, "{}", done.stderr);
            assert!(done.stdout.contains("3 weights"), "{}", done.stdout);
            let found = mean(&outputs_of(&warpt, file, &["--weights", "w.safetensors"]));
            assert!((found - expected).abs() < apart * expected.abs(), "{recipe} {file}: {found} {expected}");
        }
    }
    // Three inputs are no group, and activations are rounded in shapes that are known.
    for (recipe, reason) in [
        ("int4wo-8", "does not divide the depth of layer.weight (3x2)"),
        ("int8dq", "activations of layer.weight have dimensions of open size"),
        ("int3", "int8wo"),
    ] {
        let done = warpt.run(&["import", LINEAR, "-o", "m.mlir", "--precision", recipe]);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains(reason), "{}", done.stderr);
    }
}

#[test]
fn products_of_rounded_activations_are_written_as_they_are_run() {
    let warpt = Warpt::new();
    let (archive, inputs) = (format!("{ENCODER}.pt2"), format!("{ENCODER}.golden/inputs.safetensors"));
    for recipe in ["int8dq", "float8dq-row", "float8dq-tensor"] {
        let outputs = |model: &[&str]| {
            let run = ["run", "--inputs", &inputs, "--no-fallback", "--json"];
            warpt.json(&[&run, model].concat())["outputs"].clone()
        };
        let expected = outputs(&[&archive, "--precision", recipe]);
        assert_ne!(expected, outputs(&[&archive]), "{recipe}");
        for file in ["m.mlir", "m.mlir.bc"] {
            let import =
                ["import", &archive, "-o", file, "--weights", "w.safetensors", "--precision", recipe];
            let done = warpt.run(&import);
            assert_eq!(done.code, 0, "{recipe}: {}", done.stderr);
            assert_eq!(outputs(&[file, "--weights", "w.safetensors"]), expected, "{recipe} {file}");
        }
        let text = std::fs::read_to_string(warpt.path("m.mlir")).unwrap();
        let codes = if recipe == "int8dq" { "xi8>, tensor<16x8xi8>) -> tensor<" } else { "f8E4M3FN" };
        assert!(text.contains(codes), "{recipe}: {text}");
    }
}

#[test]
fn codes_of_4_bits_go_to_the_file_of_weights() {
    let warpt = Warpt::new();
    let (archive, inputs) = (format!("{ENCODER}.pt2"), format!("{ENCODER}.golden/inputs.safetensors"));
    let import = ["import", &archive, "--precision", "int4wo-8", "-o"];
    for more in [&["whole.mlir"][..], &["m.mlir", "--weights", "w.safetensors"]] {
        let done = warpt.run(&[&import, more].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let outputs = |more: &[&str]| {
        let run = ["run", "--inputs", &inputs, "--tier", "correctness", "--json"];
        warpt.json(&[&run, more].concat())["outputs"].clone()
    };
    assert_eq!(outputs(&["m.mlir", "--weights", "w.safetensors"]), outputs(&["whole.mlir"]));
}

#[test]
fn shapes_that_are_named_are_fixed() {
    let warpt = Warpt::new();
    let import = |shape: &str| warpt.run(&["import", LINEAR, "-o", "m.mlir", "--shape", shape]);
    assert_eq!(import("x=5x3").code, 0);
    let text = std::fs::read_to_string(warpt.path("m.mlir")).unwrap();
    assert!(text.contains("tensor<5x2xf32>") && !text.contains('?'), "{text}");
    for (shape, expected) in [
        ("x=65x3", "1 to 64"),
        ("x=2x4", "input `x`"),
        ("y=2x3", "input `x`: it has dynamic dimensions and no shape was given"),
        ("x", "NAME=SHAPE"),
    ] {
        let done = import(shape);
        assert_eq!(done.code, 2, "{shape}");
        assert!(done.stderr.contains(expected), "{shape}: {}", done.stderr);
    }
}

#[test]
fn everything_that_cannot_be_lowered_is_listed_and_nothing_is_written() {
    let warpt = Warpt::new();
    let done = warpt.run(&["import", REFUSED, "-o", "m.mlir", "--weights", "w.safetensors"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    for expected in [
        "3 node(s) of 2 operation(s) cannot be lowered exactly; nothing was written",
        "aten.linalg_eigvalsh.default (2x)",
        "aten.linalg_matrix_exp.default (1x)",
        "linalg_eigvalsh_1 at make.py:54: values = torch.linalg.eigvalsh(square)",
        "linalg_matrix_exp at make.py:55: return values, torch.linalg.matrix_exp(square)",
    ] {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
    assert_eq!(warpt.files(), [""; 0]);
    let done = warpt.run(&["run", REFUSED, "--seed", "0"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("linalg_eigvalsh_1 at make.py:54"), "{}", done.stderr);
}

#[test]
fn archives_that_are_not_sound_are_refused_with_their_place() {
    let warpt = Warpt::new();
    let whole = std::fs::read(LINEAR).unwrap();
    let mut changed = whole.clone();
    let at = whole.windows(9).position(|bytes| bytes == b"aten.relu").unwrap();
    changed[at + 5] = b's';
    for (bytes, expected) in [
        (&whole[..whole.len() - 30], "cut off or is no zip"),
        (b"", "too short"),
        (b"PK\x03\x04 but then nothing that is a zip", "cut off or is no zip"),
        (&changed, "linear/models/model.json`: its checksum"),
    ] {
        std::fs::write(warpt.path("bad.pt2"), bytes).unwrap();
        for arguments in [&["import", "bad.pt2", "-o", "m.mlir"][..], &["run", "bad.pt2", "--seed", "0"]] {
            let done = warpt.run(arguments);
            assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
            assert!(done.stderr.contains("bad.pt2"), "{}", done.stderr);
            if arguments[0] == "import" {
                assert!(done.stderr.contains(expected), "no {expected} in {}", done.stderr);
            }
        }
    }
    assert_eq!(warpt.files(), ["bad.pt2"]);
}

/// `torch.cond`, `while_loop` and `scan`; what they give is in a dataclass with a dict inside.
#[test]
fn branches_loops_and_scans_give_what_pytorch_gave_under_its_names() {
    let warpt = Warpt::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let (model, golden) = (format!("{data}/control.pt2"), format!("{data}/control.golden"));
    let inputs = format!("{golden}/inputs.safetensors");
    for tier in ["production", "correctness"] {
        let run = ["run", &model, "--inputs", &inputs, "--tier", tier, "--save", tier, "--json"];
        let record = warpt.json(&run);
        let names: Vec<&Value> =
            record["outputs"].as_array().unwrap().iter().map(|output| &output["name"]).collect();
        assert_eq!(names, ["branch", "loop.count", "loop.value", "sums"]);
        let judged = warpt.json(&["validate", "--golden", &golden, "--candidate", tier, "--json"]);
        assert_eq!(judged["verdict"], "PASS", "{judged}");
        let outputs = judged["classes"].as_array().unwrap().iter().find(|class| class["class"] == "outputs");
        assert_eq!(outputs.unwrap()["counts"]["compared"], 4, "{judged}");
    }
    assert_eq!(warpt.run(&["import", &model, "-o", "control.mlir"]).code, 0);
    let text = std::fs::read_to_string(warpt.path("control.mlir")).unwrap();
    let has_branch = text.contains("stablehlo.if") || text.contains("stablehlo.case");
    assert!(has_branch && text.contains("stablehlo.while"), "{text}");
}

#[test]
fn a_refused_operation_that_decomposing_would_help_says_so() {
    let warpt = Warpt::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let done = warpt.run(&["import", &format!("{data}/decomposable.pt2"), "-o", "m.mlir"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    for said in ["aten.special_erf.default (1x)", "python -m warpforge.trace --decompose", "make.py:"] {
        assert!(done.stderr.contains(said), "no {said} in {}", done.stderr);
    }
    let done = warpt.run(&["run", &format!("{data}/decomposed.pt2"), "--seed", "1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    // Eigenvalues are taken apart by nobody.
    let done = warpt.run(&["import", REFUSED, "-o", "m.mlir"]);
    assert!(!done.stderr.contains("--decompose"), "{}", done.stderr);
}
