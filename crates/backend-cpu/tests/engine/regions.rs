//! Operations of detectors on regions.

use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::{exact_kernels, kernels, tensor};

/// Regions of two images, some of them partly or wholly outside.
fn regions(count: usize, seed: u64) -> Tensor {
    let numbers = tensor(&[count, 4], seed);
    let numbers: Vec<f64> = numbers.iter().map(Scalar::to_f64).collect();
    let region = |(index, four): (usize, &[f64])| {
        let (x, y) = (30.0 * four[0] + 20.0, 30.0 * four[1] + 20.0);
        [(index % 2) as f64, x, y, x + 25.0 * four[2].abs(), y + 25.0 * four[3].abs()]
    };
    let values = numbers.chunks_exact(4).enumerate().flat_map(region).map(Scalar::Float);
    Tensor::from_scalars(ElementType::F32, Shape::new([count, 5]).unwrap(), values).unwrap()
}

fn config(ratio: i64, aligned: bool) -> String {
    format!(
        "{{api_version = 4 : i32, backend_config = {{aligned = {aligned}, sampling_ratio = {ratio} : i64, spatial_scale = 2.5e-01 : f64}}}}"
    )
}

#[test]
fn roi_align_and_its_gradient() {
    for (ratio, aligned) in [(2, false), (-1, false), (3, true), (-1, true)] {
        let config = config(ratio, aligned);
        let forward = format!(
            "func.func @main(%x: tensor<2x37x12x10xf32>, %r: tensor<21x5xf32>) -> tensor<21x37x3x2xf32> {{
            %y = stablehlo.custom_call @torchvision.roi_align(%x, %r) {config}
              : (tensor<2x37x12x10xf32>, tensor<21x5xf32>) -> tensor<21x37x3x2xf32>
            func.return %y : tensor<21x37x3x2xf32> }}"
        );
        assert_eq!(kernels(&forward, vec![], &[tensor(&[2, 37, 12, 10], 1), regions(21, 2)]), ["roi_align"]);
        let backward = format!(
            "func.func @main(%g: tensor<21x37x3x2xf32>, %r: tensor<21x5xf32>) -> tensor<2x37x12x10xf32> {{
            %x = stablehlo.custom_call @torchvision.roi_align_backward(%g, %r) {config}
              : (tensor<21x37x3x2xf32>, tensor<21x5xf32>) -> tensor<2x37x12x10xf32>
            func.return %x : tensor<2x37x12x10xf32> }}"
        );
        let names = kernels(&backward, vec![], &[tensor(&[21, 37, 3, 2], 3), regions(21, 2)]);
        assert_eq!(names, ["roi_align_backward"]);
    }
}

#[test]
fn what_regions_are_taken_from_may_be_computed_and_transposed() {
    let config = config(2, false);
    let text = format!(
        "func.func @main(%x: tensor<2x8x8x5xf32>, %r: tensor<5x9xf32>) -> tensor<9x5x2x2xf32> {{
        %t = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x8x8x5xf32>) -> tensor<2x5x8x8xf32>
        %e = stablehlo.exponential %t : tensor<2x5x8x8xf32>
        %s = stablehlo.transpose %r, dims = [1, 0] : (tensor<5x9xf32>) -> tensor<9x5xf32>
        %y = stablehlo.custom_call @torchvision.roi_align(%e, %s) {config}
          : (tensor<2x5x8x8xf32>, tensor<9x5xf32>) -> tensor<9x5x2x2xf32>
        func.return %y : tensor<9x5x2x2xf32> }}"
    );
    let given = regions(9, 5);
    let numbers: Vec<Scalar> = given.iter().collect();
    let transposed = (0..45).map(|at| numbers[at % 9 * 5 + at / 9]);
    let transposed = Tensor::from_scalars(ElementType::F32, Shape::new([5, 9]).unwrap(), transposed).unwrap();
    let names = kernels(&text, vec![], &[tensor(&[2, 8, 8, 5], 4), transposed]);
    assert!(names.contains(&"roi_align".to_owned()), "{names:?}");
}

#[test]
fn nms_keeps_the_boxes_of_the_reference() {
    let text = "func.func @main(%b: tensor<300x4xf32>, %s: tensor<300xf32>) -> tensor<300xi64> {
        %k = stablehlo.custom_call @torchvision.nms(%b, %s) {api_version = 4 : i32, backend_config = {iou_threshold = 3.0e-01 : f64}}
          : (tensor<300x4xf32>, tensor<300xf32>) -> tensor<300xi64>
        func.return %k : tensor<300xi64> }";
    let regions = regions(300, 7);
    let numbers: Vec<Scalar> = regions.iter().collect();
    let boxes = numbers.chunks_exact(5).flat_map(|region| region[1..].to_vec());
    let boxes = Tensor::from_scalars(ElementType::F32, Shape::new([300, 4]).unwrap(), boxes).unwrap();
    // Many scores are equal.
    let scores: Vec<f32> = (0..300).map(|at| (at * 37 % 23) as f32).collect();
    let scores = Tensor::from_slice(&[300], &scores).unwrap();
    assert_eq!(exact_kernels(text, &[boxes, scores]), ["nms"]);
}

/// The first of equal elements of a window is selected, whatever the order in memory.
#[test]
fn ties_are_selected_in_the_order_of_the_window() {
    for permutation in ["0, 3, 1, 2", "0, 3, 2, 1"] {
        let text = format!(
            "func.func @main(%x: tensor<2x6x6x9xf32>, %s: tensor<2x9x3x3xf32>) -> tensor<2x9x6x6xf32> {{
            %few = stablehlo.round_nearest_even %x : tensor<2x6x6x9xf32>
            %t = stablehlo.transpose %few, dims = [{permutation}] : (tensor<2x6x6x9xf32>) -> tensor<2x9x6x6xf32>
            %z = stablehlo.constant dense<0.0> : tensor<f32>
            %r = \"stablehlo.select_and_scatter\"(%t, %s, %z) <{{window_dimensions = array<i64: 1, 1, 2, 2>,
                window_strides = array<i64: 1, 1, 2, 2>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
              stablehlo.return %p : tensor<i1>
            }}, {{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %u = stablehlo.add %a, %b : tensor<f32>
              stablehlo.return %u : tensor<f32>
            }}) : (tensor<2x9x6x6xf32>, tensor<2x9x3x3xf32>, tensor<f32>) -> tensor<2x9x6x6xf32>
            func.return %r : tensor<2x9x6x6xf32> }}"
        );
        exact_kernels(&text, &[tensor(&[2, 6, 6, 9], 1), tensor(&[2, 9, 3, 3], 2)]);
    }
}
