//! The text form as a whole: what is read, printed and refused.

use warpforge_diag::Source;
use warpforge_ir::print::{Form, print, print_as};
use warpforge_ir::{Module, OpKind};

use super::{Chunk, Options, chunks, parse};

fn read(text: &str) -> Module {
    read_with(text, Options::default())
}

fn read_with(text: &str, options: Options) -> Module {
    parse(&Source::new("test.mlir", text), &options).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

fn refused(text: &str) -> String {
    match parse(&Source::new("test.mlir", text), &Options::default()) {
        Ok(module) => panic!("accepted: {}", print(&module)),
        Err(diagnostics) => diagnostics.to_string(),
    }
}

/// Prints, reads again and prints: the same, in both forms.
fn assert_stable(text: &str) -> String {
    let first = print(&read(text));
    assert_eq!(print(&read(&first)), first);
    let generic = print_as(&read(&first), Form::Generic);
    assert_eq!(print(&read(&generic)), first, "through the generic form");
    first
}

const MIXED: &str = r#"
#map = "kept"
!vec = tensor<3xf32>
module @m attributes {mhlo.num_replicas = 1 : i32, x.alias = #map, y.odd = #other.thing<a -> "b>", [1]>} {
  func.func public @main(%x: tensor<4x3xf32> {jax.name = "x"}, %v: !vec) -> (tensor<3xf32> {jax.result = ""}) {
    %init = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %1:2 = stablehlo.while(%i = %0, %j = %v) : tensor<3xf32>, tensor<3xf32>
     cond {
      %t = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      // captures %x's reduction from outside
      %n = stablehlo.add %i, %0 : tensor<3xf32>
      stablehlo.return %n, %j : tensor<3xf32>, tensor<3xf32>
    }
    %2 = call @helper(%1#1) : (tensor<3xf32>) -> tensor<3xf32>
    %3 = "stablehlo.broadcast_in_dim"(%init) {broadcast_dimensions = dense<> : tensor<0xi64>} : (tensor<f32>) -> tensor<3xf32>
    %values, %indices = chlo.top_k(%2, k = 2) : tensor<3xf32> -> (tensor<2xf32>, tensor<2xi32>)
    return %3 : tensor<3xf32>
  }
  func.func private @helper(%x: tensor<3xf32>) -> tensor<3xf32> {
    return %x : tensor<3xf32>
  }
}
"#;

#[test]
fn mixed_forms_are_read_and_printed() {
    let printed = assert_stable(MIXED);
    assert!(printed.contains("applies stablehlo.add across dimensions = [0]"), "{printed}");
    assert!(printed.contains("y.odd = #other.thing<a -> \"b>\", [1]>"), "{printed}");
    assert!(printed.contains("x.alias = \"kept\""), "{printed}");
    assert!(printed.contains("stablehlo.broadcast_in_dim %cst, dims = [] :"), "{printed}");
    assert!(printed.contains("call @helper(%1#1)"), "{printed}");
}

#[test]
fn attributes_are_in_the_form_of_the_table() {
    let module = read(MIXED);
    let main = module.function("main").unwrap();
    let ops: Vec<_> = module.ops_in(main.body().unwrap()).collect();
    let broadcast = ops.iter().find(|op| op.is(OpKind::BroadcastInDim)).unwrap();
    assert_eq!(broadcast.attr_i64s("broadcast_dimensions"), Some(&[][..]));
    assert_eq!(main.argument_attrs(0).unwrap().get("jax.name").unwrap().as_str(), Some("x"));
    assert!(main.is_public() && !module.function("helper").unwrap().is_public());
}

#[test]
fn a_text_attribute_leaves_the_types_to_the_operation() {
    let printed = assert_stable(
        r#"func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
          %0 = stablehlo.einsum %a, %b, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
          return %0 : tensor<2x4xf32>
        }"#,
    );
    assert!(printed.contains(r#"config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>)"#), "{printed}");
}

#[test]
fn constants_of_every_form() {
    let text = r#"
    func.func @main() {
      %0 = stablehlo.constant dense<"0x000080BF00000040"> : tensor<2xf32>
      %1 = stablehlo.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
      %2 = stablehlo.constant dense<[(1.0, -2.5), (0.0, 0x7F800000)]> : tensor<2xcomplex<f32>>
      %3 = stablehlo.constant dense<[-8, 7, 15]> : tensor<3xi4>
      %4 = stablehlo.constant dense_resource<blob> : tensor<2xi16>
      %5 = stablehlo.constant() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 0.5>>
      return
    }
    {-# dialect_resources: { builtin: { blob: "0x0400000001000200" } } #-}
    "#;
    let printed = assert_stable(text);
    assert!(printed.contains("dense<[-1.000000e+00, 2.000000e+00]> : tensor<2xf32>"), "{printed}");
    assert!(printed.contains("dense<[-8, 7, -1]> : tensor<3xi4>"), "{printed}");
    assert!(printed.contains("dense<[1, 2]> : tensor<2xi16>"), "{printed}");
    assert!(printed.contains("(0.000000e+00,0x7F800000)"), "{printed}");
}

#[test]
fn packed_truth_values_of_older_files_are_spread_out() {
    let bits = "0xFF".to_owned() + &"00".repeat(12);
    let module = read(&format!(
        "func.func @f() {{ %0 = stablehlo.constant dense<\"{bits}\"> : tensor<104xi1>\n return }}"
    ));
    let body = module.function("f").unwrap().body().unwrap();
    let value = module.ops_in(body).next().unwrap().attr_elements("value").unwrap().to_i64s().unwrap();
    assert_eq!(value.iter().sum::<i64>(), 8);
    assert_eq!(value.len(), 104);
}

#[test]
fn locations_are_dropped_or_kept() {
    let text =
        "#loc = loc(\"a.py\":1:2)\nmodule {\n  func.func @f() {\n    return loc(#loc)\n  } loc(unknown)\n}\n";
    assert!(!print(&read(text)).contains("loc"));
    let kept = print(&read_with(text, Options { keep_locations: true }));
    assert!(kept.contains("return loc(#loc)") && kept.contains("#loc = loc(\"a.py\":1:2)"), "{kept}");
    assert_eq!(print(&read_with(&kept, Options { keep_locations: true })), kept);
}

#[test]
fn a_file_of_several_modules_is_cut_at_its_marks() {
    let found = chunks("a\n// -----\nb\nc\n// -----\n");
    assert_eq!(
        found,
        [
            Chunk { first_line: 1, offset: 0, text: "a\n" },
            Chunk { first_line: 3, offset: 11, text: "b\nc\n" },
            Chunk { first_line: 6, offset: 24, text: "" },
        ]
    );
}

#[test]
fn errors_have_a_position() {
    let cases = [
        (
            "func.func @f() {\n  %0 = stablehlo.bogus\n}",
            "test.mlir:2:8: error: unknown operation `stablehlo.bogus`",
        ),
        (
            "func.func @f() {\n  return %x : tensor<f32>\n}",
            "test.mlir:2:10: error: the value `%x` is not defined",
        ),
        (
            "func.func @f(%a: tensor<f32>) {\n  return %a : tensor<f64>\n}",
            "has the type tensor<f32>, not tensor<f64>",
        ),
        ("func.func @f(%a: tensor<2xf3>) {", "test.mlir:1:27: error: unknown type `f3`"),
        ("module {", "expected `}` but the text ends"),
        ("func.func @f() { %0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32> return }", "has 2 elements"),
        ("func.func @f() { %0 = stablehlo.constant dense<300> : tensor<i8> return }", "no i8"),
        ("func.func @f() { %0 = stablehlo.constant dense<\"0x0G\"> : tensor<i8> return }", "no hexadecimal"),
        ("func.func @f() { %0 = stablehlo.constant dense<1> : tensor<?xi8> return }", "known dimensions"),
    ];
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.contains(expected), "{text}\n{message}");
    }
}

#[test]
fn absurd_sizes_take_no_memory() {
    let huge = "9".repeat(18);
    refused(&format!(
        "func.func @f() {{ %0 = stablehlo.constant dense<[1, 2]> : tensor<{huge}xi8> return }}"
    ));
    refused(&format!("func.func @f(%a: tensor<{huge}0xi8>) {{ return }}"));
    refused("func.func @f() { %0:99999999999 = stablehlo.replica_id : tensor<ui32> }");
    let splat =
        read(&format!("func.func @f() {{ %0 = stablehlo.constant dense<1> : tensor<{huge}xi8>\n return }}"));
    assert!(print(&splat).contains(&huge), "a splat of any size is only one element");
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["[", "{a = ", "tuple<", "("] {
        refused(&format!("module attributes {{a = {}", open.repeat(100_000)));
    }
    let regions = "\"a.b\"() ({".repeat(100_000);
    assert!(refused(&regions).contains("nested too deeply"));
}

#[test]
fn cut_off_and_flipped_input_never_panics() {
    let text = MIXED.as_bytes();
    for end in 0..text.len() {
        let _ = parse(
            &Source::new("cut", String::from_utf8_lossy(&text[..end]).into_owned()),
            &Options::default(),
        );
    }
    for position in 0..text.len() {
        for flip in [0x01u8, 0x10, 0x80] {
            let mut bytes = text.to_vec();
            bytes[position] ^= flip;
            let source = Source::new("flipped", String::from_utf8_lossy(&bytes).into_owned());
            if let Ok(module) = parse(&source, &Options::default()) {
                print(&module);
            }
        }
    }
}

#[test]
fn a_long_literal_without_commas_is_refused_at_once() {
    let deep = 600_000;
    for (ty, message) in [
        ("tensor<1xi32>".to_owned(), "expected a number but found `[`"),
        (format!("tensor<{}i32>", "1x".repeat(deep)), "a tensor of more than 64 dimensions"),
    ] {
        let literal = format!("{}1{}", "[".repeat(deep), "]".repeat(deep));
        let text =
            format!("func.func @f() {{\n  %0 = stablehlo.constant dense<{literal}> : {ty}\n  return\n}}");
        let found = parse(&Source::new("m", text), &Options::default()).unwrap_err();
        assert!(found.items()[0].message.contains(message), "{}", found.items()[0].message);
    }
}

#[test]
fn ranks_are_bounded() {
    let ty = |rank: usize| format!("func.func private @f() -> tensor<{}f32>", "1x".repeat(rank));
    assert!(parse(&Source::new("m", ty(64)), &Options::default()).is_ok());
    for rank in [65, 70] {
        let found = parse(&Source::new("m", ty(rank)), &Options::default()).unwrap_err().to_string();
        assert!(found.contains("a tensor of more than 64 dimensions is not supported"), "{found}");
    }
}
