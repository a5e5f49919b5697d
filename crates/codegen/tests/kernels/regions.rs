//! Operations of detectors on regions.

use warpforge_codegen::{Options, Salt};

use crate::case::{cuda, snapshot};
use crate::host::check;
use crate::tool::{ALL, Tool, tests};

tests! {
    "regions";
    roi_align: ALL,
    gradient_of_roi_align: ALL,
    roi_align_of_f64: &[Tool::Host],
    suppression: ALL,
    suppression_of_nan: &[Tool::Host],
    suppression_of_many: &[Tool::Host],
}

/// Regions of both images and of none; some are partly or wholly outside, turned around, tiny or very large.
const REGIONS: &str =
    "dense<[[0.0, 4.0, 3.0, 21.0, 30.0], [1.0, -12.0, 8.0, 9.0, 60.0], [1.0, 38.0, 42.0, 39.0, 42.5],
      [2.0, 1.0, 1.0, 9.0, 9.0], [0.0, 90.0, 90.0, 95.0, 99.0], [0.0, 20.0, 20.0, 5.0, 6.0],
      [1.0, -900.0, -700.0, 4000.0, 5000.0]]>";

fn config(ratio: i64, aligned: bool) -> String {
    format!(
        "{{api_version = 4 : i32, backend_config = {{aligned = {aligned}, sampling_ratio = {ratio} : i64, spatial_scale = 2.5e-01 : f64}}}}"
    )
}

fn forward(float: &str, ratio: i64, aligned: bool) -> String {
    let config = config(ratio, aligned);
    format!(
        "func.func @main(%x: tensor<2x3x12x10x{float}>) -> tensor<7x3x4x2x{float}> {{
    %r = stablehlo.constant {REGIONS} : tensor<7x5x{float}>
    %y = stablehlo.custom_call @torchvision.roi_align(%x, %r) {config} : (tensor<2x3x12x10x{float}>, tensor<7x5x{float}>) -> tensor<7x3x4x2x{float}>
    return %y : tensor<7x3x4x2x{float}>
}}"
    )
}

fn backward(ratio: i64, aligned: bool) -> String {
    let config = config(ratio, aligned);
    format!(
        "func.func @main(%g: tensor<7x3x4x2xf32>) -> tensor<2x3x12x10xf32> {{
    %r = stablehlo.constant {REGIONS} : tensor<7x5xf32>
    %y = stablehlo.custom_call @torchvision.roi_align_backward(%g, %r) {config} : (tensor<7x3x4x2xf32>, tensor<7x5xf32>) -> tensor<2x3x12x10xf32>
    return %y : tensor<2x3x12x10xf32>
}}"
    )
}

fn settings() -> impl Iterator<Item = (i64, bool)> {
    [1, 2, -1].into_iter().flat_map(|ratio| [(ratio, false), (ratio, true)])
}

fn roi_align() {
    snapshot("roi_align", &forward("f32", 2, false), &cuda());
    for (ratio, aligned) in settings() {
        check(&forward("f32", ratio, aligned), &cuda(), 1e-6);
    }
    check(&forward("f32", 2, false), &Options { salt: Salt::Timing, ..cuda() }, 1e-6);
}

fn roi_align_of_f64() {
    check(&forward("f64", -1, true), &cuda(), 1e-14);
}

fn gradient_of_roi_align() {
    snapshot("roi_align_backward", &backward(2, false), &cuda());
    for (ratio, aligned) in settings() {
        check(&backward(ratio, aligned), &cuda(), 1e-6);
    }
    check(&backward(2, true), &Options { salt: Salt::Timing, ..cuda() }, 1e-6);
    // Without regions all gradients are zero.
    let none = backward(2, true).replace(REGIONS, "dense<[]>").replace("tensor<7x", "tensor<0x");
    check(&none, &cuda(), 0.0);
}

/// Boxes around places that differ, of few different scores.
fn boxes(count: usize, threshold: &str) -> String {
    format!(
        "func.func @main(%p: tensor<{count}x2xf32>, %s: tensor<{count}x2xf32>, %n: tensor<{count}xi32>) -> tensor<{count}xi64> {{
    %a = stablehlo.abs %s : tensor<{count}x2xf32>
    %e = stablehlo.add %p, %a : tensor<{count}x2xf32>
    %b = stablehlo.concatenate %p, %e, dim = 1 : (tensor<{count}x2xf32>, tensor<{count}x2xf32>) -> tensor<{count}x4xf32>
    %f = stablehlo.convert %n : (tensor<{count}xi32>) -> tensor<{count}xf32>
    %y = stablehlo.custom_call @torchvision.nms(%b, %f) {{api_version = 4 : i32, backend_config = {{iou_threshold = {threshold} : f64}}}} : (tensor<{count}x4xf32>, tensor<{count}xf32>) -> tensor<{count}xi64>
    return %y : tensor<{count}xi64>
}}"
    )
}

fn suppression() {
    snapshot("nms", &boxes(150, "5.0e-01"), &cuda());
    for threshold in ["2.0e-01", "5.0e-01", "9.0e-01"] {
        check(&boxes(150, threshold), &cuda(), 0.0);
    }
    check(&boxes(1, "5.0e-01"), &cuda(), 0.0);
    check(&boxes(64, "3.0e-01"), &Options { salt: Salt::Timing, ..cuda() }, 0.0);
}

/// Scores and coordinates that are no numbers, and a box turned around.
fn suppression_of_nan() {
    let boxes = "dense<[[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 9.0, 8.0], [0x7FC00000, 0.0, 9.0, 9.0], [9.0, 9.0, 0.0, 0.0], [0.0, 1.0, 9.0, 9.0]]>";
    let text = format!(
        "func.func @main(%o: tensor<5xf32>) -> tensor<5xi64> {{
    %b = stablehlo.constant {boxes} : tensor<5x4xf32>
    %s = stablehlo.constant dense<[0.5, 0x7FC00000, 0.9, 0.7, 0x7FC00000]> : tensor<5xf32>
    %z = stablehlo.multiply %o, %s : tensor<5xf32>
    %y = stablehlo.custom_call @torchvision.nms(%b, %z) {{api_version = 4 : i32, backend_config = {{iou_threshold = 5.0e-01 : f64}}}} : (tensor<5x4xf32>, tensor<5xf32>) -> tensor<5xi64>
    return %y : tensor<5xi64>
}}"
    );
    check(&text, &cuda(), 0.0);
}

fn suppression_of_many() {
    check(&boxes(2500, "5.0e-01"), &cuda(), 0.0);
}
