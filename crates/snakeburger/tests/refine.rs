//! Refinement on text: a module with unknown dimensions, the types of its inputs, and what comes out.

use warpforge_diag::Source;
use warpforge_ir::refine::{RefineError, is_static, refine};
use warpforge_ir::{Module, print, verify};
use warpforge_snakeburger::text::{Options, parse, parse_types};

fn module(text: &str) -> Module {
    let source = Source::new("case.mlir", text);
    let module = parse(&source, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&module), [], "{text}");
    module
}

fn refined(text: &str, inputs: &str) -> Result<Module, RefineError> {
    let inputs = parse_types(inputs).unwrap_or_else(|error| panic!("{error}"));
    let refined = refine(&module(text), "main", &inputs)?;
    assert_eq!(verify(&refined), [], "{}", print::print(&refined));
    Ok(refined)
}

/// What a module is for inputs of these types, which leave nothing unknown.
fn text(module: &str, inputs: &str) -> String {
    let refined = refined(module, inputs).unwrap_or_else(|error| panic!("{error}"));
    let text = print::print(&refined);
    assert!(refined.functions().all(is_static), "{text}");
    text
}

#[test]
fn shapes_go_through_operations() {
    let text = text(
        "func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x4xf32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<?x?xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>
  %1 = stablehlo.tanh %0 : tensor<?x?xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = stablehlo.convert %2 : (tensor<?x?xf32>) -> tensor<?x?xf64>
  %4 = stablehlo.convert %3 : (tensor<?x?xf64>) -> tensor<?x?xf32>
  return %4 : tensor<?x?xf32>
}",
        "tensor<2x3xf32>, tensor<3x4xf32>",
    );
    assert!(text.contains("-> tensor<4x2xf32>"), "{text}");
    assert!(text.contains("tensor<4x2xf64>"), "{text}");
}

#[test]
fn aliases_of_arguments_stay() {
    let text = text(
        "func.func @main(%a: tensor<?xf32> {tf.aliasing_output = 0 : i32}) -> tensor<?xf32> {
  %0 = stablehlo.tanh %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}",
        "tensor<2xf32>",
    );
    assert!(
        text.contains("(%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32>"),
        "{text}"
    );
}

#[test]
fn shapes_that_are_computed_are_followed() {
    // The mean of all elements, repeated into a shape that is computed from the input's.
    let text = text(
        "func.func @main(%a: tensor<?x4xf32>) -> tensor<?x2x2xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %two1 = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<i32>) -> tensor<1xi32>
  %shape = stablehlo.concatenate %n1, %two1, %two1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %r = stablehlo.dynamic_reshape %a, %shape : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<?x2x2xf32>
  %i = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<3xi32>) -> tensor<?x2x2xf32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %b = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<3xi32>) -> tensor<?x2x2xf32>
  %0 = stablehlo.add %r, %i : tensor<?x2x2xf32>
  %1 = stablehlo.add %0, %b : tensor<?x2x2xf32>
  return %1 : tensor<?x2x2xf32>
}",
        "tensor<5x4xf32>",
    );
    for static_form in ["stablehlo.reshape %arg0", "stablehlo.iota dim = 0", "stablehlo.broadcast_in_dim"] {
        assert!(text.contains(static_form), "{static_form}\n{text}");
    }
    for gone in ["dynamic", "get_dimension_size", "concatenate", "i32"] {
        assert!(!text.contains(gone), "{gone}\n{text}");
    }
}

#[test]
fn slices_pads_gathers_and_convolutions_become_static() {
    let text = text(
        r#"func.func @main(%a: tensor<?xf32>, %image: tensor<1x?x?x2xf32>, %k: tensor<3x3x2x4xf32>, %i: tensor<2x1xi64>) -> (tensor<?xf32>, tensor<?xf32>, tensor<1x?x?x4xf32>, tensor<2x?xf32>) {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %last = stablehlo.subtract %n1, %one : tensor<1xi32>
  %s = stablehlo.real_dynamic_slice %a, %one, %last, %one : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dynamic_pad %s, %f, %one, %n1, %zero : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %pads = stablehlo.constant dense<1> : tensor<2x2xi32>
  %c = "stablehlo.dynamic_conv"(%image, %k, %pads) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>} : (tensor<1x?x?x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi32>) -> tensor<1x?x?x4xf32>
  %g = "stablehlo.dynamic_gather"(%a, %i, %last) {dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>} : (tensor<?xf32>, tensor<2x1xi64>, tensor<1xi32>) -> tensor<2x?xf32>
  return %s, %p, %c, %g : tensor<?xf32>, tensor<?xf32>, tensor<1x?x?x4xf32>, tensor<2x?xf32>
}"#,
        "tensor<7xf32>, tensor<1x8x9x2xf32>, tensor<3x3x2x4xf32>, tensor<2x1xi64>",
    );
    let results = "(tensor<5xf32>, tensor<13xf32>, tensor<1x8x9x4xf32>, tensor<2x6xf32>)";
    assert!(text.contains(results), "{text}");
    assert!(!text.contains("dynamic"), "{text}");
}

#[test]
fn functions_are_refined_for_each_use() {
    let text = text(
        "func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = call @f(%a) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = call @f(%b) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = call @f(%0) : (tensor<?xf32>) -> tensor<?xf32>
  return %0, %1, %2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
func.func private @f(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.negate %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}",
        "tensor<2xf32>, tensor<3xf32>",
    );
    assert_eq!(text.matches("func.func private").count(), 2, "{text}");
    assert!(text.contains("-> (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>)"), "{text}");
}

#[test]
fn sizes_that_are_passed_to_functions_are_known_there() {
    let text = text(
        "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = call @twice(%n) : (tensor<i32>) -> tensor<i32>
  %0 = call @count(%m) : (tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @twice(%n: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %n, %n : tensor<i32>
  return %0 : tensor<i32>
}
func.func private @count(%n: tensor<i32>) -> tensor<?xf32> {
  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.dynamic_iota %0, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}",
        "tensor<3xf32>",
    );
    assert!(text.contains("stablehlo.iota dim = 0 : tensor<6xf32>"), "{text}");
}

#[test]
fn loops_and_branches_are_refined() {
    let text = text(
        r#"func.func @main(%a: tensor<?xf32>, %i: tensor<i32>, %p: tensor<i1>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %0:3 = stablehlo.while(%it = %i, %acc = %a, %size = %n) : tensor<i32>, tensor<?xf32>, tensor<i32>
   cond {
    %lt = stablehlo.compare LT, %it, %size : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %it, %one : tensor<i32>
    %size1 = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
    %count = stablehlo.dynamic_iota %size1, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %sum = stablehlo.add %acc, %count : tensor<?xf32>
    stablehlo.return %next, %sum, %size : tensor<i32>, tensor<?xf32>, tensor<i32>
  }
  %1 = "stablehlo.if"(%p) ({
    %t = stablehlo.sine %0#1 : tensor<?xf32>
    stablehlo.return %t : tensor<?xf32>
  }, {
    stablehlo.return %a : tensor<?xf32>
  }) : (tensor<i1>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}"#,
        "tensor<4xf32>, tensor<i32>, tensor<i1>",
    );
    assert!(text.contains("stablehlo.iota dim = 0 : tensor<4xf32>"), "{text}");
}

#[test]
fn what_is_given_must_fit() {
    let identity = "func.func @main(%a: tensor<?x4xf32>) -> tensor<?x4xf32> { return %a : tensor<?x4xf32> }";
    let error = |inputs: &str| refined(identity, inputs).expect_err("it does not fit");
    assert!(matches!(error("tensor<2x5xf32>"), RefineError::Input { index: 0, .. }));
    assert!(matches!(error("tensor<2x4xf64>"), RefineError::Input { .. }));
    assert!(matches!(error("tensor<2xf32>"), RefineError::Input { .. }));
    assert!(matches!(error(""), RefineError::InputCount { expected: 1, given: 0, .. }));
    let missing = refine(&module(identity), "other", &[]).unwrap_err();
    assert_eq!(missing, RefineError::NoFunction("other".to_owned()));
}

#[test]
fn contradictions_have_a_place() {
    let sum = "func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %a, %b : tensor<?xf32>
  return %0 : tensor<?xf32>
}";
    let error = refined(sum, "tensor<2xf32>, tensor<3xf32>").unwrap_err();
    let shown = error.diagnostic().render(&Source::new("m.mlir", sum));
    assert!(shown.starts_with("m.mlir:2:8: error: stablehlo.add: C1: "), "{shown}");
}

#[test]
fn assertions_of_the_module_are_held() {
    let even = r#"func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %odd = stablehlo.remainder %n, %two : tensor<i32>
  %ok = stablehlo.compare EQ, %odd, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "{0} is not even", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return %a : tensor<?xf32>
}"#;
    assert!(!text(even, "tensor<4xf32>").contains("shape_assertion"));
    let error = refined(even, "tensor<5xf32>").unwrap_err();
    assert_eq!(error.to_string(), "5 is not even");
}

#[test]
fn calls_may_name_the_operands_that_are_shapes() {
    let text = text(
        r#"func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.custom_call @foo(%a, %n1) {indices_of_shape_operands = dense<1> : tensor<1xi64>} : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}"#,
        "tensor<4xf32>",
    );
    assert!(text.contains("(tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>"), "{text}");
}

#[test]
fn what_depends_on_data_stays_unknown() {
    let text = "func.func @main(%a: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}";
    let refined = refined(text, "tensor<3xf32>, tensor<1xi32>").unwrap();
    assert!(!is_static(refined.function("main").unwrap()));
}

#[test]
fn deep_calls_are_refused() {
    let mut text = String::from(
        "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = call @f0(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}\n",
    );
    for n in 0..300 {
        text += &format!(
            "func.func private @f{n}(%a: tensor<?xf32>) -> tensor<?xf32> {{
  %0 = call @f{}(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}\n",
            n + 1
        );
    }
    text += "func.func private @f300(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }";
    assert!(matches!(refined(&text, "tensor<3xf32>"), Err(RefineError::TooDeep(_))));
}
