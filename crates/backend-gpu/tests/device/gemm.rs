//! GEMMs of all element types with epilogues.

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (element, within) in [("f32", 1e-5), ("f64", 1e-12), ("bf16", 2e-2), ("f16", 5e-3)] {
        for (m, n, k) in [(24, 56, 40), (129, 65, 33), (128, 256, 64), (1, 64, 32)] {
            let name = format!("dense_{element}_{m}x{n}x{k}");
            let step = if n % 8 == 0 && k % 8 == 0 { "library dot" } else { "" };
            all.push(Case::new(name, dense(element, [m, n, k], "maximum"), within).with_step(step));
        }
        all.push(Case::new(format!("gated_{element}"), dense(element, [40, 48, 64], "tanh"), within));
        all.push(Case::new(format!("residual_{element}"), residual(element), within));
    }
    for (precision, within) in [("tf32", 2e-3), ("bf16", 2e-2), ("f16", 3e-3)] {
        let text = dense("f32", [64, 72, 80], "maximum");
        all.push(Case::new("dense", text, within).in_precision(precision));
    }
    all.push(Case::new(
        "batches_in_any_layout",
        "func.func @main(%x: tensor<3x8x5x16xf32>, %y: tensor<3x5x16x8xf32>) -> tensor<3x5x8x8xf32> {
    %0 = stablehlo.dot_general %x, %y, batching_dims = [0, 2] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x8x5x16xf32>, tensor<3x5x16x8xf32>) -> tensor<3x5x8x8xf32>
    return %0 : tensor<3x5x8x8xf32>\n}",
        1e-5,
    ));
    for (left, right) in [("f8E4M3FN", "f8E4M3FN"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E5M2")] {
        let text = format!(
            "func.func @main(%x: tensor<48x64x{left}>, %y: tensor<80x64x{right}>) -> tensor<48x80xf32> {{
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<48x64x{left}>, tensor<80x64x{right}>) -> tensor<48x80xf32>
    return %0 : tensor<48x80xf32>\n}}"
        );
        let case = Case::new(format!("bytes_{left}_{right}"), text, 1e-3).on_host();
        all.push(if left == right && left == "f8E5M2" { case } else { case.with_step("library dot") });
    }
    all.push(Case::new(
        "integers_of_products",
        "func.func @main(%x: tensor<40x64xi8>, %y: tensor<64x48xi8>) -> tensor<40x48xi32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<40x64xi8>, tensor<64x48xi8>) -> tensor<40x48xi32>
    return %0 : tensor<40x48xi32>\n}",
        0.0,
    )
    .on_host()
    .with_step("library dot"));
    all.push(Case::new("joined_f32", joined("f32"), 1e-5).with_step("library dot 4096x48x16"));
    all.push(Case::new("joined_bf16", joined("bf16"), 2e-2).with_step("library dot 4096x48x16"));
    all.push(Case::new(
        "nothing_to_sum",
        "func.func @main(%x: tensor<4x0xf32>, %y: tensor<0x5xf32>) -> tensor<4x5xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x0xf32>, tensor<0x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>\n}",
        0.0,
    ));
    all
}

/// A dense layer: weights transposed, a bias, and an activation: the maximum with zero or a function.
fn dense(element: &str, [m, n, k]: [usize; 3], activation: &str) -> String {
    let (x, w, b, y) = (
        format!("tensor<{m}x{k}x{element}>"),
        format!("tensor<{n}x{k}x{element}>"),
        format!("tensor<{n}x{element}>"),
        format!("tensor<{m}x{n}x{element}>"),
    );
    let last = match activation {
        "maximum" => "%z".to_owned(),
        _ => String::new(),
    };
    let last = if last.is_empty() { "%2".to_owned() } else { format!("%2, {last}") };
    format!(
        "func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : ({x}, {w}) -> {y}
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : ({b}) -> {y}
    %2 = stablehlo.add %0, %1 : {y}
    %z = stablehlo.constant dense<0.0> : {y}
    %3 = stablehlo.{activation} {last} : {y}
    return %3 : {y}\n}}"
    )
}

/// A GEMM with a residual.
fn residual(element: &str) -> String {
    let (x, w, y) = (
        format!("tensor<40x64x{element}>"),
        format!("tensor<64x48x{element}>"),
        format!("tensor<40x48x{element}>"),
    );
    format!(
        "func.func @main(%x: {x}, %w: {w}, %r: {y}) -> {y} {{
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}
    %1 = stablehlo.add %0, %r : {y}
    return %1 : {y}\n}}"
    )
}

/// Three GEMMs of one value with constant weights and biases.
fn joined(element: &str) -> String {
    let (x, y) = (format!("tensor<4096x16x{element}>"), format!("tensor<4096x16x{element}>"));
    let (w, b) = (format!("tensor<16x16x{element}>"), format!("tensor<16x{element}>"));
    let layer = |name: &str, by: f64| {
        let rows: Vec<String> = (0..16)
            .map(|row| {
                let number =
                    |column: usize| format!("{:.4}", by * (f64::from(row) - column as f64 / 3.0).sin());
                format!("[{}]", (0..16).map(number).collect::<Vec<_>>().join(", "))
            })
            .collect();
        let bias: Vec<String> = (0..16).map(|at| format!("{:.2}", by * f64::from(at))).collect();
        format!(
            "%w{name} = stablehlo.constant dense<[{}]> : {w}
    %b{name} = stablehlo.constant dense<[{}]> : {b}
    %d{name} = stablehlo.dot_general %x, %w{name}, contracting_dims = [1] x [1] : ({x}, {w}) -> {y}
    %c{name} = stablehlo.broadcast_in_dim %b{name}, dims = [1] : ({b}) -> {y}
    %s{name} = stablehlo.add %d{name}, %c{name} : {y}",
            rows.join(", "),
            bias.join(", ")
        )
    };
    format!(
        "func.func @main(%x: {x}) -> ({y}, {y}) {{
    {}
    {}
    {}
    %p = stablehlo.multiply %sq, %sk : {y}
    %r = stablehlo.subtract %p, %sv : {y}
    return %r, %sv : {y}, {y}\n}}",
        layer("q", 1.0),
        layer("k", 0.5),
        layer("v", -0.25)
    )
}
