//! Convolutions with their epilogues, in both precisions.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, Precision, Reference, RunOptions, Target, Tier};

use super::{kernels, program, target, tensor};

/// Batch normalisation and the activation are fused into the convolution; the layout is converted once on each side.
#[test]
fn batch_norm_is_folded_into_convolution_weights() {
    let text = "func.func @main(%w: tensor<6x3x3x3xf32>, %s: tensor<6xf32>, %m: tensor<6xf32>, %x: tensor<2x3x9x9xf32>)
            -> tensor<2x6x9x9xf32> {
        %c = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
          window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<2x3x9x9xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x9x9xf32>
        %mean = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<6xf32>) -> tensor<2x6x9x9xf32>
        %scale = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<6xf32>) -> tensor<2x6x9x9xf32>
        %d = stablehlo.subtract %c, %mean : tensor<2x6x9x9xf32>
        %n = stablehlo.multiply %d, %scale : tensor<2x6x9x9xf32>
        %zero = stablehlo.constant dense<0.0> : tensor<2x6x9x9xf32>
        %r = stablehlo.maximum %n, %zero : tensor<2x6x9x9xf32>
        func.return %r : tensor<2x6x9x9xf32> }";
    let weights = vec![Some(tensor(&[6, 3, 3, 3], 1)), Some(tensor(&[6], 2)), Some(tensor(&[6], 3)), None];
    let names = kernels(text, weights, &[tensor(&[2, 3, 9, 9], 4)]);
    let convolutions = names.iter().filter(|name| name.starts_with("convolution")).count();
    assert!(convolutions == 1 && names.len() <= 3, "{names:?}");
}

/// With bf16, activations between convolutions are stored as bf16, also where they are added or max-pooled later;
/// without a precision, Winograd convolutions are accurate enough.
#[test]
fn convolutions_of_many_channels_in_both_precisions() {
    let conv = |x: &str, w: &str, window: usize, i: usize, o: usize| {
        let pad = window / 2;
        format!(
            "stablehlo.convolution({x}, {w}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}}
            {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<2x13x11x{i}xf32>, tensor<{window}x{window}x{i}x{o}xf32>) -> tensor<2x13x11x{o}xf32>"
        )
    };
    let text = format!(
        "func.func @main(%u: tensor<3x3x32x64xf32>, %v: tensor<1x1x64x64xf32>, %w: tensor<3x3x64x32xf32>,
            %x: tensor<2x13x11x32xf32>) -> tensor<2x13x11x32xf32> {{
        %zero = stablehlo.constant dense<0.0> : tensor<2x13x11x64xf32>
        %a = {}
        %b = stablehlo.maximum %a, %zero : tensor<2x13x11x64xf32>
        %c = {}
        %d = stablehlo.add %c, %b : tensor<2x13x11x64xf32>
        %e = stablehlo.maximum %d, %zero : tensor<2x13x11x64xf32>
        %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %p = \"stablehlo.reduce_window\"(%e, %least) ({{
            ^bb0(%one: tensor<f32>, %other: tensor<f32>):
            %m = stablehlo.maximum %one, %other : tensor<f32>
            stablehlo.return %m : tensor<f32> }})
            {{window_dimensions = array<i64: 1, 3, 3, 1>,
            padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>}}
            : (tensor<2x13x11x64xf32>, tensor<f32>) -> tensor<2x13x11x64xf32>
        %f = {}
        func.return %f : tensor<2x13x11x32xf32> }}",
        conv("%x", "%u", 3, 32, 64),
        conv("%b", "%v", 1, 64, 64),
        conv("%p", "%w", 3, 64, 32)
    );
    let weights = vec![
        Some(tensor(&[3, 3, 32, 64], 1)),
        Some(tensor(&[1, 1, 64, 64], 2)),
        Some(tensor(&[3, 3, 64, 32], 3)),
        None,
    ];
    let program = program(&text, weights);
    let input = [tensor(&[2, 13, 11, 32], 4)];
    let run = |backend: &dyn Backend, target: &Target| {
        let executable = backend.compile(&program, target).unwrap();
        executable.run(&input, &RunOptions::default()).unwrap().outputs.remove(0)
    };
    let expected = run(&Reference, &target(Tier::Correctness, 1));
    let scale = expected.iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
    for (precision, bound) in [(Precision::Model, 1e-5), (Precision::Bf16, 1e-2)] {
        let on = |threads| Target { precision, ..target(Tier::Production, threads) };
        let ours = run(&Cpu::default(), &on(2));
        for (ours, theirs) in ours.iter().zip(expected.iter()) {
            assert!((ours.to_f64() - theirs.to_f64()).abs() <= bound * scale, "{ours:?} is not {theirs:?}");
        }
        assert!(ours.identical(&run(&Cpu::default(), &on(1))));
    }
}

/// Reversed weights (channels too), and a convolution of a convolution.
#[test]
fn chained_convolutions_with_reversed_weights() {
    let conv = |x: &str, w: &str, i: usize, o: usize| {
        format!(
            "stablehlo.convolution({x}, {w}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}}
            {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<1x5x5x{i}xf32>, tensor<3x3x{i}x{o}xf32>) -> tensor<1x5x5x{o}xf32>"
        )
    };
    let text = format!(
        "func.func @main(%w: tensor<3x3x4x6xf32>, %v: tensor<3x3x6x2xf32>, %x: tensor<1x5x5x4xf32>)
            -> tensor<1x5x5x2xf32> {{
        %r = stablehlo.reverse %w, dims = [0, 2, 3] : tensor<3x3x4x6xf32>
        %a = {}
        %b = {}
        func.return %b : tensor<1x5x5x2xf32> }}",
        conv("%x", "%r", 4, 6),
        conv("%a", "%v", 6, 2)
    );
    let (w, v) = (tensor(&[3, 3, 4, 6], 1), tensor(&[3, 3, 6, 2], 2));
    let x = tensor(&[1, 5, 5, 4], 3);
    kernels(&text, vec![Some(w.clone()), Some(v.clone()), None], std::slice::from_ref(&x));
    kernels(&text, vec![], &[w, v, x]);
}

/// A convolution of arguments, channels first, whose window is as large as the image.
fn large_window(channels: usize, element: &str) -> String {
    let (x, w) = (format!("2x{channels}x8x9x"), format!("4x{channels}x8x7x"));
    format!(
        "func.func @main(%x: tensor<{x}f32>, %w: tensor<{w}f32>) -> tensor<2x4x1x3xf32> {{
        %a = stablehlo.convert %x : (tensor<{x}f32>) -> tensor<{x}{element}>
        %b = stablehlo.convert %w : (tensor<{w}f32>) -> tensor<{w}{element}>
        %c = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
            window = {{stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}}
            {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<{x}{element}>, tensor<{w}{element}>) -> tensor<2x4x1x3x{element}>
        %r = stablehlo.convert %c : (tensor<2x4x1x3x{element}>) -> tensor<2x4x1x3xf32>
        func.return %r : tensor<2x4x1x3xf32> }}"
    )
}

/// Images are read where they are; sums of nothing are zero.
#[test]
fn windows_as_large_as_the_image() {
    let inputs = |channels| [tensor(&[2, channels, 8, 9], 1), tensor(&[4, channels, 8, 7], 2)];
    let names = kernels(&large_window(3, "f32"), vec![], &inputs(3));
    assert!(names.iter().all(|name| !name.starts_with("copy")), "{names:?}");
    kernels(&large_window(0, "f32"), vec![], &inputs(0));
}

/// Narrow types and a narrow precision, which the kernel for large windows does not have.
#[test]
fn windows_as_large_as_the_image_in_narrow_types() {
    for (element, precision) in
        [("f16", Precision::Model), ("bf16", Precision::Model), ("f32", Precision::Bf16)]
    {
        let program = program(&large_window(3, element), vec![]);
        let inputs = [tensor(&[2, 3, 8, 9], 1), tensor(&[4, 3, 8, 7], 2)];
        let run = |backend: &dyn Backend, target: &Target| {
            let executable = backend.compile(&program, target).unwrap();
            executable.run(&inputs, &RunOptions::default()).unwrap().outputs.remove(0)
        };
        let theirs = run(&Reference, &target(Tier::Correctness, 1));
        let ours = run(&Cpu::default(), &Target { precision, ..target(Tier::Production, 2) });
        for (a, b) in ours.iter().zip(theirs.iter()) {
            assert!((a.to_f64() - b.to_f64()).abs() < 0.1, "{element}: {a:?} is not {b:?}");
        }
    }
}

#[test]
fn groups_of_single_pixels_are_products() {
    for (channels, out, groups) in [(64, 64, 4), (48, 96, 3), (32, 16, 2)] {
        let (image, result) = (format!("tensor<2x9x7x{channels}xf32>"), format!("tensor<2x9x7x{out}xf32>"));
        let weights = format!("tensor<1x1x{}x{out}xf32>", channels / groups);
        let text = format!(
            "func.func @main(%x: {image}, %w: {weights}) -> {result} {{
            %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}} \
             {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({image}, {weights}) -> {result}
            %r = stablehlo.tanh %c : {result}
            func.return %r : {result} }}"
        );
        let inputs = [tensor(&[2, 9, 7, channels], 1), tensor(&[1, 1, channels / groups, out], 2)];
        let names = kernels(&text, vec![], &inputs);
        assert!(names.iter().all(|name| !name.contains("conv")), "{names:?}");
    }
}
