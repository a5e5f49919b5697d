//! What the vendors' libraries do to the results of products, and besides: GELU, its gradient, gradients of biases.

use crate::case::Case;
use crate::programs::{gelu, gelu_gradient};

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (element, within) in [("f32", 1e-5), ("bf16", 2e-2), ("f16", 5e-3)] {
        all.push(Case::new(format!("bias_gradient_{element}"), gradients(element, true), within));
        all.push(Case::new(format!("bias_gradient_right_{element}"), gradients(element, false), within));
        let case = Case::new(format!("gelu_by_tanh_{element}"), gelu(element, [96, 128, 64]), within);
        all.push(if element == "f32" { case } else { case.with_step("+ gelu") });
        let case =
            Case::new(format!("gelu_gradient_{element}"), gelu_gradient(element, [96, 128, 64]), within);
        all.push(if element == "f32" { case } else { case.with_step("* gradient of gelu") });
    }
    all.push(Case::new("bias_gradient", gradients("f32", true), 2e-3).in_precision("tf32"));
    all
}

/// The gradients of a dense layer by its weights and its bias, which is summed in f32.
fn gradients(element: &str, left: bool) -> String {
    let (x, g) = (format!("tensor<512x192x{element}>"), format!("tensor<512x256x{element}>"));
    let (wide, b, bw) = ("tensor<512x256xf32>", format!("tensor<256x{element}>"), "tensor<256xf32>");
    let (operands, types, w) = if left {
        ("%g, %x", format!("({g}, {x})"), format!("tensor<256x192x{element}>"))
    } else {
        ("%x, %g", format!("({x}, {g})"), format!("tensor<192x256x{element}>"))
    };
    format!(
        "func.func @main(%x: {x}, %g: {g}) -> ({w}, {b}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %w = stablehlo.dot_general {operands}, contracting_dims = [0] x [0] : {types} -> {w}
    %gw = stablehlo.convert %g : ({g}) -> {wide}
    %bw = stablehlo.reduce(%gw init: %zero) applies stablehlo.add across dimensions = [0] : ({wide}, tensor<f32>) -> {bw}
    %b = stablehlo.convert %bw : ({bw}) -> {b}
    return %w, %b : {w}, {b}\n}}"
    )
}
