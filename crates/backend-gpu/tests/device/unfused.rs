//! Unfused operations, with and without kernels.

use crate::case::Case;
use crate::programs::AS_WRITTEN;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = vec![
        Case::new(
            "concatenate",
            "func.func @main(%a: tensor<3x4xf32>, %b: tensor<5x3xf32>) -> tensor<3x9xf32> {
    %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<5x3xf32>) -> tensor<3x5xf32>
    %r = stablehlo.concatenate %a, %t, dim = 1 : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<3x9xf32>
    return %r : tensor<3x9xf32>\n}",
            0.0,
        ),
        Case::new(
            "pad",
            "func.func @main(%x: tensor<3x4xi32>, %p: tensor<i32>) -> tensor<4x9xi32> {
    %r = stablehlo.pad %x, %p, low = [2, -1], high = [-1, 3], interior = [0, 1] : (tensor<3x4xi32>, tensor<i32>) -> tensor<4x9xi32>
    return %r : tensor<4x9xi32>\n}",
            0.0,
        ),
        Case::new(
            "gather",
            "func.func @main(%t: tensor<10x6xf32>, %i: tensor<4x3xi64>) -> tensor<4x3x6xf32> {
    %r = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 6>}> : (tensor<10x6xf32>, tensor<4x3xi64>) -> tensor<4x3x6xf32>
    return %r : tensor<4x3x6xf32>\n}",
            0.0,
        ),
        Case::new(
            "reduce_window",
            "func.func @main(%x: tensor<2x9x9x4xf32>) -> tensor<2x5x5x4xf32> {
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %r = \"stablehlo.reduce_window\"(%x, %least) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x9x9x4xf32>, tensor<f32>) -> tensor<2x5x5x4xf32>
    return %r : tensor<2x5x5x4xf32>\n}",
            0.0,
        ),
        Case::new(
            "dynamic_slices",
            "func.func @main(%x: tensor<7x6xf32>, %u: tensor<2x3xf32>, %i: tensor<i32>, %j: tensor<i32>) -> (tensor<3x4xf32>, tensor<7x6xf32>) {
    %r = stablehlo.dynamic_slice %x, %i, %j, sizes = [3, 4] : (tensor<7x6xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %s = stablehlo.dynamic_update_slice %x, %u, %j, %i : (tensor<7x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<7x6xf32>
    return %r, %s : tensor<3x4xf32>, tensor<7x6xf32>\n}",
            0.0,
        ),
        Case::new(
            "sort",
            "func.func @main(%x: tensor<5x700xf32>, %v: tensor<5x700xi32>) -> (tensor<5x700xf32>, tensor<5x700xi32>) {
    %r:2 = \"stablehlo.sort\"(%x, %v) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) : (tensor<5x700xf32>, tensor<5x700xi32>) -> (tensor<5x700xf32>, tensor<5x700xi32>)
    return %r#0, %r#1 : tensor<5x700xf32>, tensor<5x700xi32>\n}",
            0.0,
        )
        .on_host(),
        Case::new(
            "as_written",
            AS_WRITTEN,
            0.0,
        )
        .on_host(),
        Case::new(
            "argmax",
            "func.func @main(%x: tensor<5x30xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
    %i = stablehlo.iota dim = 1 : tensor<5x30xi64>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1] : (tensor<5x30xf32>, tensor<5x30xi64>, tensor<f32>, tensor<i64>) -> (tensor<5xf32>, tensor<5xi64>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i64>, %d: tensor<i64>) {
      %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
      %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>
      stablehlo.return %v, %w : tensor<f32>, tensor<i64>
    }
    return %r#0, %r#1 : tensor<5xf32>, tensor<5xi64>\n}",
            0.0,
        ),
        Case::new(
            "select_and_scatter",
            "func.func @main(%x: tensor<8x12xf32>, %u: tensor<4x6xf32>) -> tensor<8x12xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = \"stablehlo.select_and_scatter\"(%x, %u, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x12xf32>, tensor<4x6xf32>, tensor<f32>) -> tensor<8x12xf32>
    return %r : tensor<8x12xf32>\n}",
            0.0,
        )
        .on_host(),
    ];
    for (element, within) in [("f32", 1e-6), ("bf16", 5e-2), ("f64", 1e-12), ("i32", 0.0)] {
        all.push(Case::new(format!("scatter_{element}"), scatter(element), within));
    }
    all
}

/// A scatter-add of rows with collisions and indices out of bounds.
fn scatter(element: &str) -> String {
    let (x, u) = (format!("tensor<9x40x{element}>"), format!("tensor<60x40x{element}>"));
    format!(
        "func.func @main(%x: {x}, %i: tensor<60x1xi64>, %u: {u}) -> {x} {{
    %r = \"stablehlo.scatter\"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : ({x}, tensor<60x1xi64>, {u}) -> {x}
    return %r : {x}\n}}"
    )
}
