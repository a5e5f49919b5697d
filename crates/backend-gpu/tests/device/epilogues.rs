//! What the vendors' libraries do to the results of products, and besides: GELU, its gradient, gradients of biases.

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (element, within) in [("f32", 1e-5), ("bf16", 2e-2), ("f16", 5e-3)] {
        all.push(Case::new(format!("bias_gradient_{element}"), gradients(element, true), within));
        all.push(Case::new(format!("bias_gradient_right_{element}"), gradients(element, false), within));
        let case = Case::new(format!("gelu_by_tanh_{element}"), gelu(element), within);
        all.push(if element == "f32" { case } else { case.with_step("+ gelu") });
        let case = Case::new(format!("gelu_gradient_{element}"), slope(element), within);
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

/// Lines that bend `%x` and leave the hyperbolic tangent in `%tanh` and one more in `%gate`.
fn bent(ty: &str) -> String {
    format!(
        "%cubic = stablehlo.constant dense<0.044715> : {ty}
    %beta = stablehlo.constant dense<0.7978845608> : {ty}
    %one = stablehlo.constant dense<1.0> : {ty}
    %half = stablehlo.constant dense<0.5> : {ty}
    %square = stablehlo.multiply %x, %x : {ty}
    %cube = stablehlo.multiply %square, %x : {ty}
    %bend = stablehlo.multiply %cube, %cubic : {ty}
    %inner = stablehlo.add %x, %bend : {ty}
    %scaled = stablehlo.multiply %inner, %beta : {ty}
    %tanh = stablehlo.tanh %scaled : {ty}
    %gate = stablehlo.add %tanh, %one : {ty}
    %halved = stablehlo.multiply %x, %half : {ty}"
    )
}

/// A dense layer with bias and GELU.
fn gelu(element: &str) -> String {
    let (a, w, b) = (
        format!("tensor<96x64x{element}>"),
        format!("tensor<128x64x{element}>"),
        format!("tensor<128x{element}>"),
    );
    let (y, wide) = (format!("tensor<96x128x{element}>"), "tensor<96x128xf32>");
    format!(
        "func.func @main(%a: {a}, %w: {w}, %b: {b}) -> {y} {{
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [1] : ({a}, {w}) -> {y}
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : ({b}) -> {y}
    %2 = stablehlo.add %0, %1 : {y}
    %x = stablehlo.convert %2 : ({y}) -> {wide}
    {}
    %r = stablehlo.multiply %halved, %gate : {wide}
    %n = stablehlo.convert %r : ({wide}) -> {y}
    return %n : {y}\n}}",
        bent(wide)
    )
}

/// The gradient of a dense layer's input, times the slope of GELU where it was taken.
fn slope(element: &str) -> String {
    let (g, w, y) = (
        format!("tensor<96x64x{element}>"),
        format!("tensor<64x128x{element}>"),
        format!("tensor<96x128x{element}>"),
    );
    let wide = "tensor<96x128xf32>";
    format!(
        "func.func @main(%g: {g}, %w: {w}, %before: {y}) -> {y} {{
    %0 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : ({g}, {w}) -> {y}
    %given = stablehlo.convert %0 : ({y}) -> {wide}
    %x = stablehlo.convert %before : ({y}) -> {wide}
    {}
    %left = stablehlo.multiply %gate, %half : {wide}
    %tangents = stablehlo.multiply %tanh, %tanh : {wide}
    %steep = stablehlo.subtract %one, %tangents : {wide}
    %three = stablehlo.constant dense<0.134145> : {wide}
    %grown = stablehlo.multiply %square, %three : {wide}
    %more = stablehlo.add %grown, %one : {wide}
    %wider = stablehlo.multiply %more, %beta : {wide}
    %right = stablehlo.multiply %halved, %steep : {wide}
    %rights = stablehlo.multiply %right, %wider : {wide}
    %slope = stablehlo.add %left, %rights : {wide}
    %r = stablehlo.multiply %given, %slope : {wide}
    %n = stablehlo.convert %r : ({wide}) -> {y}
    return %n : {y}\n}}",
        bent(wide)
    )
}
