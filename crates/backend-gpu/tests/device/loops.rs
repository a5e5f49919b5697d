//! Elementwise chains, reductions, transposing copies.

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = vec![
        Case::new(
            "chain",
            "func.func @main(%a: tensor<37x65xf32>, %b: tensor<65xf32>) -> tensor<37x65xf32> {
    %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<65xf32>) -> tensor<37x65xf32>
    %1 = stablehlo.multiply %a, %0 : tensor<37x65xf32>
    %2 = stablehlo.tanh %1 : tensor<37x65xf32>
    %3 = stablehlo.exponential %2 : tensor<37x65xf32>
    return %3 : tensor<37x65xf32>\n}",
            1e-6,
        ),
        Case::new(
            "sums_of_rows_and_columns",
            "func.func @main(%a: tensor<33x1290xf32>) -> (tensor<33xf32>, tensor<1290xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<33x1290xf32>, tensor<f32>) -> tensor<33xf32>
    %1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<33x1290xf32>, tensor<f32>) -> tensor<1290xf32>
    return %0, %1 : tensor<33xf32>, tensor<1290xf32>\n}",
            1e-5,
        ),
        Case::new(
            "transposed",
            "func.func @main(%a: tensor<3x70x45xf32>, %b: tensor<3x45x70xf32>) -> tensor<3x45x70xf32> {
    %0 = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<3x70x45xf32>) -> tensor<3x45x70xf32>
    %1 = stablehlo.add %0, %b : tensor<3x45x70xf32>
    return %1 : tensor<3x45x70xf32>\n}",
            0.0,
        ),
        Case::new(
            "integers",
            "func.func @main(%a: tensor<1000xi32>, %b: tensor<1000xi32>) -> (tensor<1000xi32>, tensor<i32>) {
    %0 = stablehlo.divide %a, %b : tensor<1000xi32>
    %1 = stablehlo.shift_left %0, %a : tensor<1000xi32>
    %2 = stablehlo.xor %1, %b : tensor<1000xi32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1000xi32>, tensor<i32>) -> tensor<i32>
    return %2, %3 : tensor<1000xi32>, tensor<i32>\n}",
            0.0,
        ),
        Case::new(
            "codes_of_a_small_table",
            "func.func @main(%p: tensor<6000xi8>, %t: tensor<16xf32>, %i: tensor<400xi32>) -> (tensor<12000xf32>, tensor<400xf32>) {
    %low = stablehlo.constant dense<15> : tensor<6000xi32>
    %four = stablehlo.constant dense<4> : tensor<6000xi32>
    %w = stablehlo.convert %p : (tensor<6000xi8>) -> tensor<6000xi32>
    %a = stablehlo.and %w, %low : tensor<6000xi32>
    %h = stablehlo.shift_right_logical %w, %four : tensor<6000xi32>
    %b = stablehlo.and %h, %low : tensor<6000xi32>
    %x = stablehlo.reshape %b : (tensor<6000xi32>) -> tensor<6000x1xi32>
    %y = stablehlo.reshape %a : (tensor<6000xi32>) -> tensor<6000x1xi32>
    %c = stablehlo.concatenate %x, %y, dim = 1 : (tensor<6000x1xi32>, tensor<6000x1xi32>) -> tensor<6000x2xi32>
    %k = stablehlo.reshape %c : (tensor<6000x2xi32>) -> tensor<12000x1xi32>
    %r = \"stablehlo.gather\"(%t, %k) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<12000x1xi32>) -> tensor<12000xf32>
    %s = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<400xi32>) -> tensor<400xf32>
    return %r, %s : tensor<12000xf32>, tensor<400xf32>\n}",
            0.0,
        ),
        Case::new(
            "known_before_a_run",
            "func.func @main(%a: tensor<40x40xf32>) -> tensor<40x40xf32> {
    %i = stablehlo.iota dim = 0 : tensor<40x40xi32>
    %j = stablehlo.iota dim = 1 : tensor<40x40xi32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.slice %i [0:39, 0:40] : (tensor<40x40xi32>) -> tensor<39x40xi32>
    %p = stablehlo.pad %s, %z, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<39x40xi32>, tensor<i32>) -> tensor<40x40xi32>
    %c = stablehlo.compare LE, %j, %p : (tensor<40x40xi32>, tensor<40x40xi32>) -> tensor<40x40xi1>
    %n = stablehlo.negate %a : tensor<40x40xf32>
    %r = stablehlo.select %c, %a, %n : tensor<40x40xi1>, tensor<40x40xf32>
    return %r : tensor<40x40xf32>\n}",
            0.0,
        ),
    ];
    for element in ["f32", "bf16", "f16", "f64"] {
        let within = if matches!(element, "f32" | "f64") { 1e-6 } else { 1e-2 };
        all.push(Case::new(format!("softmax_{element}"), softmax(element, 65, 513), within));
    }
    all.push(Case::new("softmax_of_short_rows", softmax("f32", 1000, 7), 1e-6));
    all
}

/// The softmax of rows.
fn softmax(element: &str, rows: usize, columns: usize) -> String {
    let (x, r, one) = (
        format!("tensor<{rows}x{columns}x{element}>"),
        format!("tensor<{rows}x{element}>"),
        format!("tensor<{element}>"),
    );
    format!(
        "func.func @main(%x: {x}) -> {x} {{
    %least = stablehlo.constant dense<-1.0e4> : {one}
    %zero = stablehlo.constant dense<0.0> : {one}
    %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : ({x}, {one}) -> {r}
    %mm = stablehlo.broadcast_in_dim %m, dims = [0] : ({r}) -> {x}
    %d = stablehlo.subtract %x, %mm : {x}
    %e = stablehlo.exponential %d : {x}
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : ({x}, {one}) -> {r}
    %ss = stablehlo.broadcast_in_dim %s, dims = [0] : ({r}) -> {x}
    %r = stablehlo.divide %e, %ss : {x}
    return %r : {x}
}}"
    )
}
