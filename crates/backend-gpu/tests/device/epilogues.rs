//! Epilogues of the BLAS libraries: GELU and its gradient, the gradient of ReLU, bias gradients.

use crate::case::Case;
use crate::programs::{Extreme, GATES, gelu, gelu_gradient, relu_gradient, relu_training};

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
    all.extend(relu_gradients());
    all
}

/// The library's gradient of ReLU.
const OF_RELU: &str = "* gradient of relu";

fn relu_gradients() -> Vec<Case> {
    let sizes = [256, 384, 64];
    let mut all = Vec::new();
    for (gate, name) in GATES.into_iter().zip(["closed", "open", "turned"]) {
        for (element, within) in [("f32", 1e-5), ("bf16", 2e-2), ("f16", 5e-3)] {
            let text = relu_gradient(element, sizes, gate, Extreme::No);
            all.push(
                Case::new(format!("relu_gradient_{name}_{element}"), text, within)
                    .with_measured_step(OF_RELU),
            );
        }
        for (extreme, what) in [(Extreme::Nan, "at_nan"), (Extreme::Infinite, "of_infinities")] {
            let text = relu_gradient("f32", sizes, gate, extreme);
            all.push(
                Case::new(format!("relu_gradient_{name}_{what}"), text, 1e-5).with_measured_step(OF_RELU),
            );
        }
    }
    let [gate, ..] = GATES;
    let text = relu_gradient("f32", sizes, gate, Extreme::No);
    all.push(Case::new("relu_gradient", text, 2e-3).in_precision("tf32").with_measured_step(OF_RELU));
    // Lines of bits must be multiples of 128.
    let text = relu_gradient("f32", [256, 200, 64], gate, Extreme::No);
    all.push(Case::new("relu_gradient_of_narrow_lines", text, 1e-5));
    let text = relu_training("f32", [256, 384, 64, 48], gate);
    all.push(
        Case::new("relu_gradient_in_training", text, 1e-5).with_step("+ relu").with_measured_step(OF_RELU),
    );
    all
}

/// Weight and bias gradients of a dense layer; the latter is summed in f32.
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
