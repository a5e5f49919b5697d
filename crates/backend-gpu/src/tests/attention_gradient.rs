//! Attention and its gradients, as importers write them.

use warpforge_tensor::{ElementType, FloatType, Shape, Tensor};

use super::{compiled_with, steps};
use crate::vendor::Vendor;

/// Attention of two heads, sixteen queries and keys, and its gradients, computed in f32. The gradient of the keys is
/// transposed where `transposed`, as in PyTorch's decomposition.
fn text(element: &str, transposed: bool) -> String {
    let (x, wide) = (format!("tensor<1x2x16x8x{element}>"), "tensor<1x2x16x8xf32>");
    let (s, r) = ("tensor<1x2x16x16xf32>", "tensor<1x2x16xf32>");
    let widened = |name: &str| match element {
        "f32" => format!("%{name} = stablehlo.add %{name}0, %{name}0 : {wide}"),
        _ => format!("%{name} = stablehlo.convert %{name}0 : ({x}) -> {wide}"),
    };
    let narrowed = |name: &str| match element {
        "f32" => format!("%{name}0 = stablehlo.add %{name}, %{name} : {wide}"),
        _ => format!("%{name}0 = stablehlo.convert %{name} : ({wide}) -> {x}"),
    };
    let dot = |result: &str, operands: &str, along: &str, types: &str| {
        format!(
            "%{result} = stablehlo.dot_general {operands}, batching_dims = [0, 1] x [0, 1], contracting_dims = {along} : {types}"
        )
    };
    let of_heads = format!("({wide}, {wide}) -> {s}");
    let of_scores = format!("({s}, {wide}) -> {wide}");
    let by_keys = if transposed {
        let flat = "tensor<1x2x8x16xf32>";
        let product = dot("dkt", "%q, %dx", "[2] x [2]", &format!("({wide}, {s}) -> {flat}"));
        format!("{product}\n    %dk = stablehlo.transpose %dkt, dims = [0, 1, 3, 2] : ({flat}) -> {wide}")
    } else {
        dot("dk", "%dx, %q", "[2] x [2]", &of_scores)
    };
    let lines = [
        widened("q"),
        widened("k"),
        widened("v"),
        widened("g"),
        dot("p", "%q, %k", "[3] x [3]", &of_heads),
        format!("%c = stablehlo.constant dense<0.25> : {s}"),
        format!("%x = stablehlo.multiply %p, %c : {s}"),
        "%least = stablehlo.constant dense<0xFF800000> : tensor<f32>".to_owned(),
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>".to_owned(),
        format!(
            "%max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [3] : ({s}, tensor<f32>) -> {r}"
        ),
        format!("%mm = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : ({r}) -> {s}"),
        format!("%dd = stablehlo.subtract %x, %mm : {s}"),
        format!("%e = stablehlo.exponential %dd : {s}"),
        format!(
            "%sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : ({s}, tensor<f32>) -> {r}"
        ),
        format!("%ss = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : ({r}) -> {s}"),
        format!("%w = stablehlo.divide %e, %ss : {s}"),
        dot("o", "%w, %v", "[3] x [2]", &of_scores),
        dot("dv", "%w, %g", "[2] x [2]", &of_scores),
        dot("dw", "%g, %v", "[3] x [3]", &of_heads),
        format!("%wg = stablehlo.multiply %dw, %w : {s}"),
        format!(
            "%t = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [3] : ({s}, tensor<f32>) -> {r}"
        ),
        format!("%tt = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : ({r}) -> {s}"),
        format!("%back = stablehlo.multiply %w, %tt : {s}"),
        format!("%ds = stablehlo.subtract %wg, %back : {s}"),
        format!("%dx = stablehlo.multiply %ds, %c : {s}"),
        dot("dq", "%dx, %k", "[3] x [2]", &of_scores),
        by_keys,
        narrowed("o"),
        narrowed("dq"),
        narrowed("dk"),
        narrowed("dv"),
        format!("return %o0, %dq0, %dk0, %dv0 : {x}, {x}, {x}, {x}"),
    ];
    format!(
        "func.func @main(%q0: {x}, %k0: {x}, %v0: {x}, %g0: {x}) -> ({x}, {x}, {x}, {x}) {{\n    {}\n}}",
        lines.join("\n    ")
    )
}

fn names(element: &str, transposed: bool, cudnn: bool) -> Vec<String> {
    let of = match element {
        "f32" => ElementType::F32,
        _ => ElementType::Float(FloatType::Bf16),
    };
    let zeros = || Tensor::zeros(of, Shape::new([1, 2, 16, 8]).unwrap()).unwrap();
    let compiled = compiled_with(&text(element, transposed), Vendor::Cuda, cudnn);
    steps(&compiled, &[zeros(), zeros(), zeros(), zeros()])
}

#[test]
fn attention_gradients_are_two_kernels_besides_the_forward_call() {
    let gradients = [
        "attention gradient 2x16x16, 8 to 8: queries",
        "attention gradient 2x16x16, 8 to 8: keys and values",
    ];
    for (cudnn, forward) in
        [(false, "attention 2x16x16, 8 to 8"), (true, "library attention 1x2x16x16, 8 to 8 bf16")]
    {
        for transposed in [false, true] {
            assert_eq!(names("bf16", transposed, cudnn), [&[forward], &gradients[..]].concat());
        }
    }
}

#[test]
fn gradients_of_f32_are_products_of_the_library() {
    let names = names("f32", false, false);
    assert_eq!(names.iter().filter(|name| name.starts_with("library dot")).count(), 6, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("attention")), "{names:?}");
}
