//! Operations on StableHLO's quantized types: the integers of the reference, without it.

use super::{exact_kernels, tensor};

/// Scales are powers of two: sums are exact in any order.
const LEFT: &str = "!quant.uniform<i8:f32, 0.0078125:3>";
const RIGHT: &str = "!quant.uniform<i8:f32, 0.015625:-5>";
const SUM: &str = "!quant.uniform<i32:f32, 0.0001220703125>";
const NARROW: &str = "!quant.uniform<i8:f32, 0.03125:1>";

#[test]
fn products_of_quantized_matrices_are_those_of_the_reference() {
    let text = format!(
        "func.func @main(%x: tensor<6x32xf32>, %y: tensor<32x8xf32>) -> tensor<6x8xf32> {{
        %a = stablehlo.uniform_quantize %x : (tensor<6x32xf32>) -> tensor<6x32x{LEFT}>
        %b = stablehlo.uniform_quantize %y : (tensor<32x8xf32>) -> tensor<32x8x{RIGHT}>
        %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<6x32x{LEFT}>, tensor<32x8x{RIGHT}>) -> tensor<6x8x{SUM}>
        %q = stablehlo.uniform_quantize %d : (tensor<6x8x{SUM}>) -> tensor<6x8x{NARROW}>
        %r = stablehlo.uniform_dequantize %q : (tensor<6x8x{NARROW}>) -> tensor<6x8xf32>
        func.return %r : tensor<6x8xf32> }}"
    );
    let names = exact_kernels(&text, &[tensor(&[6, 32], 1), tensor(&[32, 8], 2)]);
    assert!(names.iter().any(|name| name.starts_with("dot")), "{names:?}");
}

#[test]
fn convolutions_pad_with_what_expresses_zero() {
    let text = format!(
        "func.func @main(%x: tensor<1x16x2xf32>, %y: tensor<3x2x4xf32>) -> tensor<1x16x4xf32> {{
        %a = stablehlo.uniform_quantize %x : (tensor<1x16x2xf32>) -> tensor<1x16x2x{LEFT}>
        %b = stablehlo.uniform_quantize %y : (tensor<3x2x4xf32>) -> tensor<3x2x4x{RIGHT}>
        %d = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}}
          {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
          : (tensor<1x16x2x{LEFT}>, tensor<3x2x4x{RIGHT}>) -> tensor<1x16x4x{SUM}>
        %r = stablehlo.uniform_dequantize %d : (tensor<1x16x4x{SUM}>) -> tensor<1x16x4xf32>
        func.return %r : tensor<1x16x4xf32> }}"
    );
    exact_kernels(&text, &[tensor(&[1, 16, 2], 1), tensor(&[3, 2, 4], 2)]);
}

#[test]
fn functions_are_of_what_is_expressed_and_integers_move() {
    let axis = "!quant.uniform<i8:f32:1, {0.0078125:3, 0.5:-7, 0.25}>";
    let moved = "!quant.uniform<i8:f32:0, {0.0078125:3, 0.5:-7, 0.25}>";
    let text = format!(
        "func.func @main(%x: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3x5xf32>) {{
        %a = stablehlo.uniform_quantize %x : (tensor<5x3xf32>) -> tensor<5x3x{LEFT}>
        %s = stablehlo.add %a, %a : (tensor<5x3x{LEFT}>, tensor<5x3x{LEFT}>) -> tensor<5x3x{RIGHT}>
        %n = stablehlo.abs %s : (tensor<5x3x{RIGHT}>) -> tensor<5x3x{NARROW}>
        %r = stablehlo.uniform_dequantize %n : (tensor<5x3x{NARROW}>) -> tensor<5x3xf32>
        %b = stablehlo.uniform_quantize %x : (tensor<5x3xf32>) -> tensor<5x3x{axis}>
        %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<5x3x{axis}>) -> tensor<3x5x{moved}>
        %u = stablehlo.uniform_dequantize %t : (tensor<3x5x{moved}>) -> tensor<3x5xf32>
        func.return %r, %u : tensor<5x3xf32>, tensor<3x5xf32> }}"
    );
    exact_kernels(&text, &[tensor(&[5, 3], 4)]);
}
