//! Gradients of convolutions by cuDNN, with a fake one.

use super::{compiled_with, input, steps};
use crate::fake;
use crate::vendor::Vendor;

/// The gradients of a convolution of 3 by 3 with strides of 2 and padding of 1, as frameworks write them.
const GRADIENTS: &str = "func.func @main(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x5xf32>, %dy: tensor<2x4x4x5xf32>) -> (tensor<3x3x3x5xf32>, tensor<2x8x8x3xf32>) {
    %dw = stablehlo.convolution(%x, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 0], [1, 0]], rhs_dilate = [2, 2]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<2x4x4x5xf32>) -> tensor<3x3x3x5xf32>
    %r = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x3x5xf32>
    %dx = stablehlo.convolution(%dy, %r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x4x4x5xf32>, tensor<3x3x3x5xf32>) -> tensor<2x8x8x3xf32>
    func.return %dw, %dx : tensor<3x3x3x5xf32>, tensor<2x8x8x3xf32>\n}";

#[test]
fn gradients_of_convolutions_are_passes_of_the_library() {
    let compiled = compiled_with(GRADIENTS, Vendor::Cuda, true);
    let calls = fake::calls();
    for kind in [11, 12] {
        let found = calls.iter().filter(|call| **call == format!("descriptor of kind {kind}")).count();
        assert_eq!(found, 1, "kind {kind}: {calls:?}");
    }
    // The window of the forward pass: strides, and the padding before and after. A row after the last window is not padded.
    for attribute in ["attribute 103 = 2 2", "attribute 105 = 1 1", "attribute 104 = 0 0"] {
        assert_eq!(calls.iter().filter(|call| *call == attribute).count(), 2, "{attribute}: {calls:?}");
    }
    let inputs = [input(&[2, 8, 8, 3]), input(&[3, 3, 3, 5]), input(&[2, 4, 4, 5])];
    let names = steps(&compiled, &inputs);
    for pass in ["weight", "data"] {
        let name = format!("library {pass} gradient of a convolution 5x3x3x3 over 2x8x8x3 f32");
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn convolutions_that_are_no_gradients_stay_what_they_are() {
    // A window that is larger than its output but has groups, and one that spreads its input and has strides.
    for (groups, window, output) in [
        (2, "pad = [[0, 0], [0, 0]]", "2x1x1x6"),
        (1, "stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [3, 3]", "2x8x8x6"),
    ] {
        let weights = format!("tensor<8x8x{}x6xf32>", 4 / groups);
        let text = format!(
            "func.func @main(%x: tensor<2x8x8x4xf32>, %w: {weights}) -> tensor<{output}xf32> {{
    %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}} {{feature_group_count = {groups} : i64, batch_group_count = 1 : i64}} : (tensor<2x8x8x4xf32>, {weights}) -> tensor<{output}xf32>
    func.return %y : tensor<{output}xf32>\n}}"
        );
        let compiled = compiled_with(&text, Vendor::Cuda, true);
        let names = steps(&compiled, &[input(&[2, 8, 8, 4]), input(&[8, 8, 4 / groups, 6])]);
        assert!(!names.iter().any(|name| name.contains("gradient")), "{names:?}");
    }
}
