//! Nothing that a user asks for is ignored without a word, and nothing in a file commands the terminal.

use crate::warpt::{Warpt, finished};

const LINEAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linear.pt2");

const DOUBLE: &str = "func.func @main(%x: tensor<2x3xf32> {warpforge.name = \"x\"}) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
";

#[test]
fn options_without_an_effect_are_refused() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    for (arguments, expected) in [
        (&["opt", "model.mlir", "--emit", "fusion", "--refine", "tensor<2x3xf32>"][..], "--refine"),
        (&["opt", "model.mlir", "--emit", "kernels", "--refine", "tensor<2x3xf32>"], "--refine"),
        (&["opt", "model.mlir", "--device", "cuda"], "--device"),
        (&["opt", "model.mlir", "--precision", "bf16"], "--precision"),
        (&["opt", "model.mlir", "--weights", "w.safetensors"], "--weights"),
        (&["run", "model.mlir", "--seed", "1", "--shape", "y=2x3"], "--shape y: the model has no such input"),
        (&["import", LINEAR, "-o", "m.mlir", "--shape", "x=2x3", "--shape", "y=2x3"], "--shape y"),
    ] {
        let done = warpt.run(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(warpt.files(), ["model.mlir"]);
}

#[test]
fn an_instruction_set_that_is_none_is_refused() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    let run = |isa: &str| {
        let mut command = warpt.command(&["run", "model.mlir", "--seed", "1"]);
        finished(command.env("WARPFORGE_ISA", isa).output().unwrap())
    };
    assert_eq!((run("portable").code, run("").code), (0, 0));
    let done = run("foo");
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("WARPFORGE_ISA=foo") && done.stderr.contains("avx2"), "{}", done.stderr);
}

#[test]
fn weights_are_kept_and_never_made_up() {
    let warpt = Warpt::new();
    let run = |model: &str, flags: &[&str]| {
        let run = ["run", model, "--seed", "3", "--shape", "x=4x3", "--tier", "correctness", "--json"];
        warpt.run(&[&run, flags].concat())
    };
    let outputs = |model: &str, flags: &[&str]| {
        let done = run(model, flags);
        assert_eq!(done.code, 0, "{}", done.stderr);
        serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap()["outputs"].clone()
    };
    let expected = outputs(LINEAR, &[]);
    for (form, file) in [("bytecode", "m.mlir.bc"), ("stablehlo", "m.mlir")] {
        let done = warpt.run(&["opt", LINEAR, "--emit", form, "-o", file]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stderr.contains("2 weights") && done.stderr.contains("in the module"),
            "{}",
            done.stderr
        );
        assert_eq!(outputs(file, &[]), expected, "{file}");
        let done = warpt.run(&["opt", LINEAR, "--emit", form, "-o", file, "--weights", "w.safetensors"]);
        assert!(done.stderr.contains("in w.safetensors"), "{}", done.stderr);
        assert_eq!(outputs(file, &["--weights", "w.safetensors"]), expected, "{file}");
        let done = run(file, &[]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""));
        assert!(done.stderr.contains("--weights") && done.stderr.contains("2 weights"), "{}", done.stderr);
    }
}

#[test]
fn names_in_models_do_not_reach_the_terminal_as_commands() {
    let warpt = Warpt::new();
    let name = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let models = [
        format!(
            "func.func @main(%x: tensor<2xf32> {{warpforge.name = \"{name}\"}}) -> tensor<2xf32> {{\n  func.return %x : tensor<2xf32>\n}}\n"
        ),
        format!("func.func @main() {{\n  \"{name}\"() : () -> ()\n  func.return\n}}\n"),
        format!(
            "func.func @\"{name}\"() {{\n  func.return\n}}\nfunc.func @\"b{name}\"() {{\n  func.return\n}}\n"
        ),
    ];
    for (at, model) in models.iter().enumerate() {
        std::fs::write(warpt.path("model.mlir"), model).unwrap();
        for arguments in [
            &["run", "model.mlir"][..],
            &["run", "model.mlir", "--input", "y=none.npy"],
            &["run", "model.mlir", "--seed", "1", "--shape", "z=2"],
            &["check", "model.mlir"],
            &["opt", "model.mlir", "--emit", "fusion"],
        ] {
            let done = warpt.run(arguments);
            assert!(!done.stderr.contains(['\u{1b}', '\u{7}']), "{at} {arguments:?}: {:?}", done.stderr);
        }
    }
}
