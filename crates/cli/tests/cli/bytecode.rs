//! StableHLO bytecode on the command line: read by every command that takes a model, written by `warpt opt`.

use crate::warpt::Warpt;

const ADD: &str = "module {\n  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>\n    return %0 : tensor<2xf32>\n  }\n}\n";

/// A home with `add.mlir` and the artifact `add.bc`.
fn with_artifact() -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("add.mlir"), ADD).unwrap();
    let done = warpt.run(&["opt", "add.mlir", "--emit", "bytecode", "-o", "add.bc"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "", ""));
    warpt
}

#[test]
fn an_artifact_is_read_as_the_text_it_was_made_from() {
    let warpt = with_artifact();
    assert_eq!(warpt.run(&["opt", "add.bc"]).stdout, ADD);
    assert_eq!(warpt.run(&["check", "add.bc"]).code, 0);
    // The first bytes decide, not the name.
    std::fs::rename(warpt.path("add.bc"), warpt.path("renamed.mlir")).unwrap();
    assert_eq!(warpt.run(&["opt", "renamed.mlir"]).stdout, ADD);
    let done = warpt.run(&["run", "renamed.mlir", "--seed", "1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn the_version_can_be_chosen() {
    let warpt = with_artifact();
    let version = |wanted: &str| {
        let arguments = ["opt", "add.mlir", "--emit", "bytecode", "--bytecode-version", wanted, "-o", "v.bc"];
        let done = warpt.run(&arguments);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let bytes = std::fs::read(warpt.path("v.bc")).unwrap();
        let end = bytes.iter().skip(5).position(|b| *b == 0).unwrap();
        String::from_utf8(bytes[5..5 + end].to_vec()).unwrap()
    };
    assert_eq!(version("current"), "StableHLO_v1.20.0");
    assert_eq!(version("1.13.0"), "StableHLO_v1.13.0");
    assert_eq!(version("compatible"), "StableHLO_v1.0.0");
    for (wanted, reason) in [("9.0.0", "is not written"), ("newest", "is no version")] {
        let done = warpt.run(&["opt", "add.mlir", "--emit", "bytecode", "--bytecode-version", wanted]);
        assert_eq!(done.code, 2);
        assert!(done.stderr.contains(reason), "{}", done.stderr);
    }
}

#[test]
fn a_future_version_is_refused_by_name() {
    let warpt = with_artifact();
    let mut bytes = std::fs::read(warpt.path("add.bc")).unwrap();
    let at = bytes.windows(6).position(|window| window == b"1.20.0").unwrap();
    bytes[at..at + 6].copy_from_slice(b"7.00.0");
    std::fs::create_dir(warpt.path("cases")).unwrap();
    std::fs::write(warpt.path("cases/future.mlir.bc"), &bytes).unwrap();
    std::fs::copy(warpt.path("add.bc"), warpt.path("cases/present.mlir.bc")).unwrap();
    let done = warpt.run(&["check", "cases/future.mlir.bc"]);
    assert_eq!(done.code, 2);
    assert!(
        done.stderr
            .starts_with("cases/future.mlir.bc:byte 5: error: the artifact is of StableHLO 7.0.0, a future"),
        "{}",
        done.stderr
    );
    let cases = warpt.json(&["conformance", "cases", "--json"]);
    assert_eq!((&cases["passed"], &cases["failed"]), (&2.into(), &0.into()));
    assert_eq!(
        (&cases["cases"][0]["mode"], &cases["cases"][1]["mode"]),
        (&"refuse".into(), &"round_trip".into())
    );
}

#[test]
fn broken_bytecode_is_bad_input() {
    let warpt = with_artifact();
    let bytes = std::fs::read(warpt.path("add.bc")).unwrap();
    std::fs::write(warpt.path("cut.bc"), &bytes[..bytes.len() - 9]).unwrap();
    for command in ["check", "opt", "run"] {
        let done = warpt.run(&[command, "cut.bc"]);
        assert_eq!(done.code, 2, "{command}: {}", done.stderr);
        assert!(done.stderr.contains("cut.bc:byte ") && done.stderr.contains("cut off"), "{}", done.stderr);
    }
    std::fs::write(warpt.path("two.mlir"), format!("{ADD}// -----\n{ADD}")).unwrap();
    let done = warpt.run(&["opt", "two.mlir", "--emit", "bytecode", "-o", "two.bc"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("2 modules; an artifact holds one"), "{}", done.stderr);
    assert!(!warpt.path("two.bc").exists());
}

#[test]
fn what_only_chlo_has_becomes_stablehlo() {
    let warpt = Warpt::new();
    let program = "func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
  %0 = chlo.erf %arg0 : tensor<3xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}";
    std::fs::write(warpt.path("erf.mlir"), program).unwrap();
    assert!(warpt.run(&["opt", "erf.mlir"]).stdout.contains("chlo.erf"));
    let legal = warpt.run(&["opt", "erf.mlir", "--legalize"]);
    assert!(legal.code == 0 && !legal.stdout.contains("chlo."), "{}", legal.stdout);
    let done = warpt.run(&["opt", "erf.mlir", "--emit", "bytecode", "-o", "erf.mlir.bc"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert_eq!(warpt.run(&["opt", "erf.mlir.bc"]).stdout, legal.stdout);
    let results = |model: &str| {
        let run = ["run", model, "--seed", "3", "--tier", "correctness", "--outputs", "o.npy"];
        assert_eq!(warpt.run(&run).code, 0, "{model}");
        std::fs::read(warpt.path("o.npy")).unwrap()
    };
    let (original, legal) = (results("erf.mlir"), results("erf.mlir.bc"));
    let numbers = |file: &[u8]| -> Vec<f32> {
        let data = &file[file.len() - 12..];
        data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    for (a, b) in numbers(&original).iter().zip(numbers(&legal)) {
        assert!((a - b).abs() <= 2.0 * f32::EPSILON * a.abs(), "{a} and {b}");
    }
}

#[test]
fn what_cannot_become_stablehlo_is_named() {
    let warpt = Warpt::new();
    let program = "func.func @main(%arg0: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = chlo.asin %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}";
    std::fs::write(warpt.path("asin.mlir"), program).unwrap();
    let done = warpt.run(&["opt", "asin.mlir", "--emit", "bytecode", "-o", "asin.mlir.bc"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("StableHLO has nothing for chlo.asin of complex<f32>"), "{}", done.stderr);
    assert!(!warpt.path("asin.mlir.bc").exists());
}
