//! Unfused operations.

use warpforge_codegen::{Options, Salt};

use crate::case::{cuda, snapshot};
use crate::host::check;
use crate::tool::{ALL, tests};

tests! {
    "unfused";
    concat_kernel: ALL,
    pad_kernel: ALL,
    gather_kernel: ALL,
    reduce_window_kernel: ALL,
}

fn both(name: &str, text: &str) {
    snapshot(name, text, &cuda());
    check(text, &cuda(), 1e-6);
    check(text, &Options { salt: Salt::Timing, ..cuda() }, 1e-6);
}

fn concat_kernel() {
    both(
        "concat",
        "func.func @main(%a: tensor<3x4xf32>, %b: tensor<5x3xf32>, %c: tensor<3x1xf32>) -> tensor<3x10xf32> {
    %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<5x3xf32>) -> tensor<3x5xf32>
    %r = stablehlo.concatenate %a, %t, %c, dim = 1 : (tensor<3x4xf32>, tensor<3x5xf32>, tensor<3x1xf32>) -> tensor<3x10xf32>
    return %r : tensor<3x10xf32>
}",
    );
}

fn pad_kernel() {
    both(
        "pad",
        "func.func @main(%x: tensor<3x4xi32>, %p: tensor<i32>) -> tensor<4x9xi32> {
    %r = stablehlo.pad %x, %p, low = [2, -1], high = [-1, 3], interior = [0, 1] : (tensor<3x4xi32>, tensor<i32>) -> tensor<4x9xi32>
    return %r : tensor<4x9xi32>
}",
    );
}

fn gather_kernel() {
    both(
        "gather",
        "func.func @main(%t: tensor<10x6xf32>, %i: tensor<4x3xi64>) -> tensor<4x3x6xf32> {
    %r = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 6>}> : (tensor<10x6xf32>, tensor<4x3xi64>) -> tensor<4x3x6xf32>
    return %r : tensor<4x3x6xf32>
}",
    );
}

fn reduce_window_kernel() {
    both(
        "window",
        "func.func @main(%x: tensor<2x9x9x4xf32>) -> tensor<2x5x5x4xf32> {
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %r = \"stablehlo.reduce_window\"(%x, %least) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x9x9x4xf32>, tensor<f32>) -> tensor<2x5x5x4xf32>
    return %r : tensor<2x5x5x4xf32>
}",
    );
}
