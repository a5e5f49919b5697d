//! The verifier on text: each case breaks one rule, which the message names with its place.

use warpforge_diag::{Diagnostics, Source};
use warpforge_snakeburger::text::{Options, chunks, parse};

/// What is wrong with a module, by the parser or else by the verifier; nothing when it is sound.
fn found_in(text: &str) -> String {
    let source = Source::new("case.mlir", text);
    let module = match parse(&source, &Options::default()) {
        Ok(module) => module,
        Err(diagnostics) => return diagnostics.to_string(),
    };
    let mut found = Diagnostics::new(source);
    found.extend(warpforge_ir::verify(&module));
    found.to_string()
}

fn errors(body: &str) -> String {
    found_in(&format!(
        "func.func @f(%s: tensor<f32>, %v: tensor<4xf32>, %m: tensor<4x3xf32>, %i: tensor<4xi32>) {{\n{body}\n  return\n}}"
    ))
}

#[test]
fn what_is_sound_is_accepted() {
    for chunk in chunks(include_str!("verify/accepted.mlir")) {
        assert_eq!(found_in(chunk.text), "", "{}", chunk.text);
    }
}

#[test]
fn what_breaks_a_rule_is_refused_for_it() {
    for chunk in chunks(include_str!("verify/refused.mlir")) {
        let says = chunk.text.lines().find_map(|line| line.strip_prefix("// says: "));
        let (says, found) = (says.expect("each case has a message"), found_in(chunk.text));
        assert!(found.contains(says), "{says}\n{}\n{found}", chunk.text);
    }
}

#[test]
fn valid_operations_are_accepted() {
    let body = r#"
  %0 = stablehlo.transpose %m, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.dot_general %m, %0, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.reduce(%m init: %s) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = stablehlo.pad %v, %s, low = [1], high = [-1], interior = [2] : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
  %4 = stablehlo.reshape %m : (tensor<4x3xf32>) -> tensor<6x2xf32>"#;
    assert_eq!(errors(body), "");
}

#[test]
fn each_rule_is_named_with_its_place() {
    let cases = [
        ("%0 = stablehlo.add %v, %i : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>", "stablehlo.add: C1"),
        (
            "%0 = stablehlo.transpose %m, dims = [0, 0] : (tensor<4x3xf32>) -> tensor<4x4xf32>",
            "stablehlo.transpose: C2",
        ),
        (
            "%0 = stablehlo.transpose %m, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<4x3xf32>",
            "stablehlo.transpose: C3",
        ),
        ("%0 = stablehlo.slice %v [1:5] : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.slice: C3"),
        ("%0 = stablehlo.reshape %m : (tensor<4x3xf32>) -> tensor<13xf32>", "stablehlo.reshape: C2"),
        ("%0 = stablehlo.and %v, %v : tensor<4xf32>", "stablehlo.and: I1"),
        ("%0 = stablehlo.iota dim = 1 : tensor<4xf32>", "stablehlo.iota: C1"),
        (
            "%0 = stablehlo.concatenate %v, %s, dim = 0 : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>",
            "stablehlo.concatenate: C2",
        ),
        ("%0 = \"stablehlo.sort\"(%v) : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.sort: regions"),
        (
            "%0 = \"stablehlo.transpose\"(%m) : (tensor<4x3xf32>) -> tensor<3x4xf32>",
            "stablehlo.transpose: I2",
        ),
        ("func.call @g() : () -> ()", "func.call: symbol"),
        (
            "func.call @f(%s, %v, %m, %i) : (tensor<f32>, tensor<4xf32>, tensor<4x3xf32>, tensor<4xi32>) -> ()",
            "func.call: recursion",
        ),
        (
            "%0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<4xf32>) -> tensor<4x3xf32>",
            "stablehlo.broadcast_in_dim: C5",
        ),
        (
            "%0 = stablehlo.dot_general %v, %m, contracting_dims = [0] x [1] : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<4xf32>",
            "stablehlo.dot_general: C10",
        ),
    ];
    for (body, rule) in cases {
        let message = errors(body);
        assert!(message.contains(rule), "{body}\n{message}");
        assert!(message.starts_with("case.mlir:2:"), "{message}");
    }
}

#[test]
fn all_errors_are_collected() {
    let body = "%0 = stablehlo.iota dim = 1 : tensor<4xf32>\n%1 = stablehlo.iota dim = 2 : tensor<4xf32>";
    assert_eq!(errors(body).matches("stablehlo.iota: C1").count(), 2);
}
