//! `warpt check`, `warpt opt` and `warpt conformance` on StableHLO text.

use serde_json::Value;

use crate::warpt::Warpt;

/// A module that checks its own sum against `expected`.
fn checked_sum(expected: &str) -> String {
    format!(
        "func.func @main() {{\n  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n  \
         %b = stablehlo.add %a, %a : tensor<2xi32>\n  \
         check.expect_eq_const %b, dense<{expected}> : tensor<2xi32>\n  func.return\n}}\n"
    )
}

#[test]
fn opt_prints_what_it_reads_again() {
    let warpt = Warpt::new();
    let both = format!("{}// -----\n{}", checked_sum("[2, 4]"), checked_sum("[2, 5]"));
    std::fs::write(warpt.path("in.mlir"), both).unwrap();
    for form in ["stablehlo", "generic"] {
        let once = warpt.run(&["opt", "in.mlir", "--emit", form, "-o", "once.mlir"]);
        assert_eq!((once.code, once.stdout.as_str()), (0, ""), "{}", once.stderr);
        let twice = warpt.run(&["opt", "once.mlir", "--emit", form]);
        assert_eq!(twice.stdout, std::fs::read_to_string(warpt.path("once.mlir")).unwrap());
        assert!(
            twice.stdout.contains("stablehlo.add") && twice.stdout.contains("// -----"),
            "{}",
            twice.stdout
        );
    }
}

#[test]
fn a_mistake_in_a_model_has_its_place_and_a_caret() {
    let warpt = Warpt::new();
    std::fs::write(
        warpt.path("bad.mlir"),
        "func.func @f() {\n  %0 = stablehlo.add %x, %x : tensor<2xf32>\n}\n",
    )
    .unwrap();
    let done = warpt.run(&["opt", "bad.mlir", "-o", "out.mlir"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("bad.mlir:2:") && done.stderr.contains('^'), "{}", done.stderr);
    assert!(!warpt.path("out.mlir").exists());
    std::fs::write(warpt.path("binary.mlir"), [b'a', 0xff]).unwrap();
    assert!(
        warpt
            .run(&["opt", "binary.mlir"])
            .stderr
            .contains("byte 1: error: neither MLIR bytecode nor MLIR text")
    );
    assert_eq!(warpt.run(&["opt", "absent.mlir"]).code, 2);
}

#[test]
fn check_collects_every_broken_rule_with_its_label() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("good.mlir"), checked_sum("[2, 4]")).unwrap();
    let done = warpt.run(&["check", "good.mlir"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "", ""));

    let wrong = "func.func @f(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {\n  \
                 %0 = stablehlo.transpose %a, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  \
                 %1 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<3xf32>\n  \
                 func.return %0, %1 : tensor<2x3xf32>, tensor<3xf32>\n}\n";
    std::fs::write(warpt.path("wrong.mlir"), wrong).unwrap();
    let done = warpt.run(&["check", "wrong.mlir"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    for expected in
        ["wrong.mlir:2:", "wrong.mlir:3:", "stablehlo.transpose: C2", "stablehlo.reshape: C2", "^"]
    {
        assert!(done.stderr.contains(expected), "no {expected} in\n{}", done.stderr);
    }
}

#[test]
fn conformance_counts_what_holds_and_what_does_not() {
    let warpt = Warpt::new();
    std::fs::create_dir_all(warpt.path("cases/deeper")).unwrap();
    std::fs::write(warpt.path("cases/good.mlir"), checked_sum("[2, 4]")).unwrap();
    std::fs::write(warpt.path("cases/deeper/bad.mlir"), checked_sum("[2, 5]")).unwrap();
    let done = warpt.run(&["conformance", "cases"]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.ends_with("1 passed, 1 failed, 0 skipped\n"), "{}", done.stdout);
    assert!(done.stdout.contains("bad.mlir:1:"), "{}", done.stdout);

    let done = warpt.run(&["conformance", "cases", "--json"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&report["passed"], &report["failed"]), (&Value::from(1), &Value::from(1)));
    let case = &report["cases"][0];
    assert_eq!((&case["operation"], &case["status"]), (&Value::from("add"), &Value::from("failed")));
    assert!(case["reason"].is_string());
    assert_eq!(warpt.run(&["conformance", "nowhere"]).code, 2);
    for tier in ["production", "correctness"] {
        assert_eq!(warpt.run(&["conformance", "cases", "--tier", tier]).code, 1);
    }
    let done = warpt.run(&["conformance", "cases", "--device", "cuda"]);
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    assert!(done.stderr.contains("there is cpu at tier production"), "{}", done.stderr);
}
