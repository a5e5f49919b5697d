//! Convolutions of 16 bits by cuDNN, with a fake one.

use super::{BF16, compiled_in, steps};
use crate::vendor::Vendor;
use warpforge_fusion::Precision;
use warpforge_tensor::{Shape, Tensor};

/// A convolution with a window of 3 by 3, in groups, of operands that are stored in bf16. Its result is of this type; a bias may be added to it.
fn text(channels: usize, groups: usize, result: &str, with_bias: bool) -> String {
    let image = |element: &str| format!("tensor<2x8x8x{channels}x{element}>");
    let weights = |element: &str| format!("tensor<3x3x{}x{channels}x{element}>", channels / groups);
    let (wide, given) = (image("f32"), image(result));
    let (bias, last) = if with_bias {
        (format!("  %z = stablehlo.add %y, %b : {wide}\n"), "z")
    } else {
        (String::new(), "y")
    };
    format!(
        "func.func @main(%xs: {}, %ws: {}) -> {given} {{
  %x = stablehlo.convert %xs : ({}) -> {wide}
  %w = stablehlo.convert %ws : ({}) -> {}
  %c = stablehlo.constant dense<0.5> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {wide}
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = [[1, 1], [1, 1]]}} {{feature_group_count = {groups} : i64, batch_group_count = 1 : i64}} : ({wide}, {}) -> {wide}
{bias}  %r = stablehlo.convert %{last} : ({wide}) -> {given}
  func.return %r : {given}\n}}",
        image("bf16"),
        weights("bf16"),
        image("bf16"),
        weights("bf16"),
        weights("f32"),
        weights("f32"),
    )
}

/// The steps of such a convolution.
fn names(channels: usize, groups: usize, result: &str, with_bias: bool) -> Vec<String> {
    let text = text(channels, groups, result, with_bias);
    let compiled = compiled_in(Precision::Bf16, &text, Vendor::Cuda, true);
    let zeros = |dims: &[usize]| Tensor::zeros(BF16, Shape::new(dims.to_vec()).unwrap()).unwrap();
    steps(&compiled, &[zeros(&[2, 8, 8, channels]), zeros(&[3, 3, channels / groups, channels])])
}

#[test]
fn results_of_16_bits_are_the_librarys_own() {
    for (channels, groups) in [(16, 1), (128, 1), (64, 4)] {
        let found = names(channels, groups, "bf16", false);
        assert_eq!(found.len(), 2, "the weights in the library's order, and the call: {found:?}");
        assert!(found.iter().any(|name| name.ends_with("bf16 + 0 operations")), "{found:?}");
    }
}

#[test]
fn operands_are_widened_where_results_are_f32_and_sums_long_or_grouped() {
    for (channels, groups, multiplied) in [(16, 1, "bf16"), (128, 1, "f32"), (64, 4, "f32"), (12, 1, "f32")] {
        let found = names(channels, groups, "f32", false);
        let ending = format!("{multiplied} + 0 operations");
        assert!(found.iter().any(|name| name.ends_with(&ending)), "{channels} {groups}: {found:?}");
    }
}

#[test]
fn groups_of_few_channels_have_nothing_behind_them_in_the_call() {
    assert!(names(64, 4, "bf16", true).iter().any(|name| name.ends_with("bf16 + 1 operations")));
    let found = names(16, 4, "bf16", true);
    assert!(found.iter().any(|name| name.ends_with("f32 + 0 operations")), "{found:?}");
}
