//! Programs on the CPU backend against the reference interpreter, with the expected number of kernels.

mod attention;
mod state;

use std::num::NonZeroUsize;
use std::sync::Arc;

use warpforge_backend_cpu::Cpu;
use warpforge_diag::Source;
use warpforge_kernels::gemm::{ComputeType, Gemm};
use warpforge_runtime::{Backend, Device, Precision, Program, Reference, RunOptions, Target, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

fn program(text: &str, weights: Vec<Option<Tensor>>) -> Program {
    let module = text::parse(&Source::new("m.mlir", text), &text::Options::default()).unwrap();
    Program::new(Arc::new(module), "main", Weights::new(weights)).unwrap()
}

fn target(tier: Tier, threads: usize) -> Target {
    Target {
        device: Device::Cpu,
        tier,
        precision: Precision::Model,
        threads: NonZeroUsize::new(threads),
        no_fallback: false,
    }
}

/// Pseudo-random values between -1 and 1.
fn tensor(dims: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Scalar::Float((state >> 40) as f64 / f64::from(1 << 23) - 1.0)
    });
    let shape = Shape::new(dims).unwrap();
    let count = shape.num_elements();
    Tensor::from_scalars(ElementType::F32, shape, values.take(count)).unwrap()
}

/// Runs a program on both backends with 1 to 3 threads, asserts that the results agree, and returns the names of the
/// kernels.
fn kernels(text: &str, weights: Vec<Option<Tensor>>, inputs: &[Tensor]) -> Vec<String> {
    let program = program(text, weights);
    let expected = Reference.compile(&program, &target(Tier::Correctness, 1)).unwrap();
    let expected = expected.run(inputs, &RunOptions::default()).unwrap().outputs;
    let cpu = Cpu::default();
    let mut first: Option<Vec<Tensor>> = None;
    let mut names = Vec::new();
    for threads in [1, 2, 3] {
        let executable = cpu.compile(&program, &target(Tier::Production, threads)).unwrap();
        assert!(executable.fallbacks().is_empty(), "{:?}", executable.fallbacks());
        for _ in 0..2 {
            let options = RunOptions { profile: true, ..RunOptions::default() };
            let outcome = executable.run(inputs, &options).unwrap();
            names = outcome.profile.events.iter().map(|event| event.name.clone()).collect();
            for (ours, theirs) in outcome.outputs.iter().zip(&expected) {
                close(ours, theirs);
            }
            match &first {
                Some(first) => assert!(first.iter().zip(&outcome.outputs).all(|(a, b)| a.identical(b))),
                None => first = Some(outcome.outputs),
            }
        }
    }
    let observed = cpu.compile(&program, &target(Tier::Observable, 2)).unwrap();
    let observed = observed.run(inputs, &RunOptions::default()).unwrap();
    assert!(first.iter().flatten().zip(&observed.outputs).all(|(a, b)| a.identical(b)));
    let kernels = observed.profile.events.iter().filter(|event| event.category == "kernel");
    assert!(kernels.map(|event| &event.name).eq(&names));
    names
}

fn close(ours: &Tensor, theirs: &Tensor) {
    assert_eq!((ours.dims(), ours.element_type()), (theirs.dims(), theirs.element_type()));
    let scale = theirs.iter().map(|value| value.to_f64().abs()).fold(1e-30, f64::max);
    for (a, b) in ours.iter().zip(theirs.iter()) {
        assert!((a.to_f64() - b.to_f64()).abs() <= 1e-5 * scale, "{a:?} is not {b:?}");
    }
}

const SOFTMAX: &str = "
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2]
      : (tensor<4x50x50xf32>, tensor<f32>) -> tensor<4x50xf32>
    %m = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<4x50xf32>) -> tensor<4x50x50xf32>
    %d = stablehlo.subtract %x, %m : tensor<4x50x50xf32>
    %e = stablehlo.exponential %d : tensor<4x50x50xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2]
      : (tensor<4x50x50xf32>, tensor<f32>) -> tensor<4x50xf32>
    %s = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x50xf32>) -> tensor<4x50x50xf32>
    %p = stablehlo.divide %e, %s : tensor<4x50x50xf32>";

#[test]
fn observable_tier_times_tiles_and_samples_values() {
    let text = "func.func @main(%x: tensor<600x200xf32>, %y: tensor<200x300xf32>) -> tensor<600x300xf32> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
          : (tensor<600x200xf32>, tensor<200x300xf32>) -> tensor<600x300xf32>
        %1 = stablehlo.sqrt %0 : tensor<600x300xf32>
        func.return %1 : tensor<600x300xf32> }";
    let executable = Cpu::default().compile(&program(text, vec![]), &target(Tier::Observable, 2)).unwrap();
    let inputs = [tensor(&[600, 200], 1), tensor(&[200, 300], 2)];
    let outcome = executable.run(&inputs, &RunOptions::default()).unwrap();
    let tiles: Vec<_> = outcome.profile.tiles().collect();
    let [kernel] = &outcome.profile.events[..] else { panic!("{:?}", outcome.profile) };
    let detail = |name: &str| {
        let found = kernel.details.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name} in {:?}", kernel.details)).1.parse::<f64>().unwrap()
    };
    let values: Vec<f64> = outcome.outputs[0].iter().map(Scalar::to_f64).collect();
    let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    assert_eq!(detail("nan"), (values.len() - numbers.len()) as f64);
    assert!(detail("nan") > 0.0, "the square root of a negative value is NaN");
    assert_eq!((detail("values"), detail("values_seen")), (180_000.0, 180_000.0));
    assert_eq!(detail("max"), numbers.iter().copied().fold(0.0, f64::max));
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    assert!((detail("mean") - mean).abs() < 1e-6 * mean, "{} is not {mean}", detail("mean"));
    assert_eq!(detail("tiles"), tiles.len() as f64);
    assert!(tiles.len() > 1 && tiles.iter().all(|tile| tile.category == "tile" && tile.track >= 1));
    assert!(tiles.iter().all(|tile| tile.start + tile.duration <= kernel.start + kernel.duration));
}

/// Empty tensors have no readable data.
#[test]
fn loops_over_empty_tensors() {
    let text = "func.func @main(%x: tensor<0x3xf16>, %y: tensor<0xf16>) -> (tensor<0xf16>, tensor<0xi1>) {
        %0 = stablehlo.reshape %x : (tensor<0x3xf16>) -> tensor<0xf16>
        %1 = stablehlo.divide %0, %y : tensor<0xf16>
        %2 = stablehlo.abs %1 : tensor<0xf16>
        %3 = stablehlo.compare LT, %1, %y : (tensor<0xf16>, tensor<0xf16>) -> tensor<0xi1>
        func.return %2, %3 : tensor<0xf16>, tensor<0xi1> }";
    let executable = Cpu::default().compile(&program(text, vec![]), &target(Tier::Production, 2)).unwrap();
    let empty = |dims: &[usize]| Tensor::zeros(ElementType::F16, Shape::new(dims).unwrap()).unwrap();
    let outcome = executable.run(&[empty(&[0, 3]), empty(&[0])], &RunOptions::default()).unwrap();
    assert!(outcome.outputs.iter().all(|output| output.bytes().is_empty()));
}

#[test]
fn softmax_is_one_kernel() {
    let text = format!(
        "func.func @main(%x: tensor<4x50x50xf32>) -> tensor<4x50x50xf32> {{ {SOFTMAX}
        func.return %p : tensor<4x50x50xf32> }}"
    );
    assert_eq!(kernels(&text, vec![], &[tensor(&[4, 50, 50], 1)]).len(), 1);
}

#[test]
fn bias_and_activation_are_fused_into_the_gemm() {
    let text = "func.func @main(%w: tensor<40x30xf32>, %b: tensor<40xf32>, %x: tensor<2x7x30xf32>)
            -> tensor<2x4x7x10xf32> {
        %d = stablehlo.dot_general %x, %w, contracting_dims = [2] x [1]
          : (tensor<2x7x30xf32>, tensor<40x30xf32>) -> tensor<2x7x40xf32>
        %bias = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<40xf32>) -> tensor<2x7x40xf32>
        %a = stablehlo.add %d, %bias : tensor<2x7x40xf32>
        %t = stablehlo.tanh %a : tensor<2x7x40xf32>
        %h = stablehlo.reshape %t : (tensor<2x7x40xf32>) -> tensor<2x7x4x10xf32>
        %r = stablehlo.transpose %h, dims = [0, 2, 1, 3] : (tensor<2x7x4x10xf32>) -> tensor<2x4x7x10xf32>
        func.return %r : tensor<2x4x7x10xf32> }";
    let weights = vec![Some(tensor(&[40, 30], 1)), Some(tensor(&[40], 2)), None];
    let names = kernels(text, weights, &[tensor(&[2, 7, 30], 3)]);
    assert!(names.len() == 1 && names[0].starts_with("dot 14x40x30"), "{names:?}");
}

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

#[test]
fn bf16_gemm_accumulates_in_f32() {
    let text = "func.func @main(%x: tensor<20x30xf32>, %y: tensor<30x10xf32>) -> tensor<20x10xf32> {
        %a = stablehlo.convert %x : (tensor<20x30xf32>) -> tensor<20x30xbf16>
        %b = stablehlo.convert %y : (tensor<30x10xf32>) -> tensor<30x10xbf16>
        %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<20x30xbf16>, tensor<30x10xbf16>) -> tensor<20x10xf32>
        func.return %d : tensor<20x10xf32> }";
    let names = kernels(text, vec![], &[tensor(&[20, 30], 1), tensor(&[30, 10], 2)]);
    assert!(names.iter().any(|name| name.starts_with("dot 20x10x30")), "{names:?}");
}

/// Values that only GEMMs read are stored as bf16, which changes no result.
#[test]
fn values_between_bf16_gemms_use_half_the_memory() {
    let text = |between: &str| {
        format!(
            "func.func @main(%v: tensor<32x4096xf32>, %w: tensor<4096x16xf32>, %x: tensor<256x32xf32>)
                -> tensor<256x16xf32> {{
            %d = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
              : (tensor<256x32xf32>, tensor<32x4096xf32>) -> tensor<256x4096xf32>
            %t = stablehlo.tanh %d : tensor<256x4096xf32>
            {between}
            %r = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0]
              : (tensor<256x4096xf32>, tensor<4096x16xf32>) -> tensor<256x16xf32>
            func.return %r : tensor<256x16xf32> }}"
        )
    };
    let plain = text("%h = stablehlo.negate %t : tensor<256x4096xf32>");
    let explicit = text(
        "%n = stablehlo.negate %t : tensor<256x4096xf32>
        %b = stablehlo.convert %n : (tensor<256x4096xf32>) -> tensor<256x4096xbf16>
        %h = stablehlo.convert %b : (tensor<256x4096xbf16>) -> tensor<256x4096xf32>",
    );
    let target = Target { precision: Precision::Bf16, ..target(Tier::Production, 2) };
    let weights = vec![Some(tensor(&[32, 4096], 1)), Some(tensor(&[4096, 16], 2)), None];
    let outputs = [plain, explicit].map(|text| {
        let executable = Cpu::default().compile(&program(&text, weights.clone()), &target).unwrap();
        if Gemm::new(ComputeType::Bf16).lhs_type() == ElementType::BF16 {
            assert!(executable.peak_memory_bytes().unwrap() < 256 * 4096 * 4);
        }
        executable.run(&[tensor(&[256, 32], 3)], &RunOptions::default()).unwrap().outputs
    });
    assert!(outputs[0][0].identical(&outputs[1][0]));
    let reference = program(&text("%h = stablehlo.negate %t : tensor<256x4096xf32>"), weights);
    let reference = Reference.compile(&reference, &self::target(Tier::Correctness, 1)).unwrap();
    let expected = reference.run(&[tensor(&[256, 32], 3)], &RunOptions::default()).unwrap().outputs;
    let scale = expected[0].iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
    for (ours, theirs) in outputs[0][0].iter().zip(expected[0].iter()) {
        assert!((ours.to_f64() - theirs.to_f64()).abs() <= 1e-2 * scale, "{ours:?} is not {theirs:?}");
    }
}

#[test]
fn sum_over_rows_is_a_column_reduction() {
    let text = "func.func @main(%x: tensor<3x500x70xf32>, %y: tensor<3x500x70xf32>) -> tensor<70xf32> {
        %0 = stablehlo.multiply %x, %y : tensor<3x500x70xf32>
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %r = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
          : (tensor<3x500x70xf32>, tensor<f32>) -> tensor<70xf32>
        func.return %r : tensor<70xf32> }";
    let names = kernels(text, vec![], &[tensor(&[3, 500, 70], 1), tensor(&[3, 500, 70], 2)]);
    assert_eq!(names, ["column reduction of 2 ops"]);
}

#[test]
fn scatter_add_of_rows() {
    let text = "func.func @main(%x: tensor<50x24xf32>, %i: tensor<70x1xi64>, %u: tensor<70x24xf32>) -> tensor<50x24xf32> {
        %r = \"stablehlo.scatter\"(%x, %i, %u) <{indices_are_sorted = false, unique_indices = false,
          scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<50x24xf32>, tensor<70x1xi64>, tensor<70x24xf32>) -> tensor<50x24xf32>
        func.return %r : tensor<50x24xf32> }";
    // Some indices are out of bounds.
    let rows: Vec<i64> = (0..70).map(|at| at * 13 % 53 - 1).collect();
    let indices = Tensor::from_slice(&[70, 1], &rows).unwrap();
    assert_eq!(kernels(text, vec![], &[tensor(&[50, 24], 1), indices, tensor(&[70, 24], 2)]), ["scatter"]);
}

#[test]
fn sort_with_indices() {
    for (direction, large, small) in [("LT", "%b", "%a"), ("GT", "%a", "%b")] {
        let text = format!(
            "func.func @main(%x: tensor<5x40xf32>) -> (tensor<5x40xf32>, tensor<5x40xi64>) {{
            %i = stablehlo.iota dim = 1 : tensor<5x40xi64>
            %r:2 = \"stablehlo.sort\"(%x, %i) <{{dimension = 1 : i64, is_stable = true}}> ({{
              ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i64>, %d: tensor<i64>):
                %p = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                %n = stablehlo.compare NE, {large}, {large} : (tensor<f32>, tensor<f32>) -> tensor<i1>
                %k = stablehlo.compare EQ, {small}, {small} : (tensor<f32>, tensor<f32>) -> tensor<i1>
                %o = stablehlo.and %n, %k : tensor<i1>
                %q = stablehlo.or %p, %o : tensor<i1>
                stablehlo.return %q : tensor<i1>
            }}) : (tensor<5x40xf32>, tensor<5x40xi64>) -> (tensor<5x40xf32>, tensor<5x40xi64>)
            func.return %r#0, %r#1 : tensor<5x40xf32>, tensor<5x40xi64> }}"
        );
        let names = kernels(&text, vec![], &[tensor(&[5, 40], 3)]);
        assert_eq!(names.last().map(String::as_str), Some("sort"));
        let values: Vec<f32> =
            (0..200).map(|at| if at % 7 == 3 { f32::NAN } else { (at * 37 % 11) as f32 }).collect();
        let input = Tensor::from_slice(&[5, 40], &values).unwrap();
        let program = program(&text, vec![]);
        let run = |backend: &dyn Backend, tier| {
            let executable = backend.compile(&program, &target(tier, 2)).unwrap();
            executable.run(std::slice::from_ref(&input), &RunOptions::default()).unwrap().outputs
        };
        let ours = run(&Cpu::default(), Tier::Production);
        let theirs = run(&Reference, Tier::Correctness);
        assert!(ours.iter().zip(&theirs).all(|(a, b)| a.identical(b)), "{ours:?} is not {theirs:?}");
    }
}

#[test]
fn dynamic_slices_and_cumulative_sums() {
    let text =
        "func.func @main(%x: tensor<9x20xf32>, %u: tensor<2x3xf32>, %i: tensor<i32>) -> tensor<4x20xf32> {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %w = stablehlo.dynamic_update_slice %x, %u, %i, %one
          : (tensor<9x20xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<9x20xf32>
        %p = stablehlo.dynamic_slice %w, %i, %one, sizes = [4, 20]
          : (tensor<9x20xf32>, tensor<i32>, tensor<i32>) -> tensor<4x20xf32>
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %r = \"stablehlo.reduce_window\"(%p, %zero) <{window_dimensions = array<i64: 1, 20>,
          padding = dense<[[0, 0], [19, 0]]> : tensor<2x2xi64>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) : (tensor<4x20xf32>, tensor<f32>) -> tensor<4x20xf32>
        func.return %r : tensor<4x20xf32> }";
    for start in [-3i32, 2, 100] {
        let inputs = [tensor(&[9, 20], 1), tensor(&[2, 3], 2), Tensor::from_slice(&[], &[start]).unwrap()];
        assert_eq!(
            kernels(text, vec![], &inputs),
            ["dynamic update slice", "dynamic slice", "cumulative reduction"]
        );
    }
}

/// A value that several GEMMs and another operation read is rounded once, for the GEMMs.
#[test]
fn value_read_by_several_bf16_gemms_is_rounded_once() {
    let text = |rounding: &str, read: &str| {
        format!(
            "func.func @main(%v: tensor<32x48xf32>, %w: tensor<32x48xf32>, %x: tensor<40x32xf32>)
                -> (tensor<40x48xf32>, tensor<40x48xf32>, tensor<40x32xf32>) {{
            %t = stablehlo.tanh %x : tensor<40x32xf32>
            {rounding}
            %a = stablehlo.dot_general {read}, %v, contracting_dims = [1] x [0]
              : (tensor<40x32xf32>, tensor<32x48xf32>) -> tensor<40x48xf32>
            %b = stablehlo.dot_general {read}, %w, contracting_dims = [1] x [0]
              : (tensor<40x32xf32>, tensor<32x48xf32>) -> tensor<40x48xf32>
            func.return %a, %b, %t : tensor<40x48xf32>, tensor<40x48xf32>, tensor<40x32xf32> }}"
        )
    };
    let explicit = "%n = stablehlo.convert %t : (tensor<40x32xf32>) -> tensor<40x32xbf16>
        %r = stablehlo.convert %n : (tensor<40x32xbf16>) -> tensor<40x32xf32>";
    let target = Target { precision: Precision::Bf16, ..target(Tier::Production, 2) };
    let weights = vec![Some(tensor(&[32, 48], 1)), Some(tensor(&[32, 48], 2)), None];
    let runs = [text("", "%t"), text(explicit, "%r")].map(|text| {
        let executable = Cpu::default().compile(&program(&text, weights.clone()), &target).unwrap();
        let options = RunOptions { profile: true, ..RunOptions::default() };
        executable.run(&[tensor(&[40, 32], 3)], &options).unwrap()
    });
    for (ours, theirs) in runs[0].outputs.iter().zip(&runs[1].outputs) {
        assert!(ours.identical(theirs));
    }
    if Gemm::new(ComputeType::Bf16).lhs_type() == ElementType::BF16 {
        assert_eq!(runs[0].profile.events.len(), 4);
    }
}

#[test]
fn unsupported_operations_fall_back_and_are_reported() {
    let text = "func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
        %c = \"stablehlo.cholesky\"(%x) <{lower = true}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %r = stablehlo.add %c, %c : tensor<8x8xf32>
        func.return %r : tensor<8x8xf32> }";
    let executable = Cpu::default().compile(&program(text, vec![]), &target(Tier::Production, 1)).unwrap();
    assert_eq!(executable.fallbacks()[0].to_string(), "stablehlo.cholesky");
    let identity: Vec<f32> = (0..64).map(|at| f32::from(u8::from(at % 9 == 0))).collect();
    let input = Tensor::from_slice(&[8, 8], &identity).unwrap();
    let outputs = executable.run(&[input], &RunOptions::default()).unwrap().outputs;
    assert_eq!(outputs[0].get(0), Scalar::Float(2.0));
}

/// A quantised layer: its product of integers has no kernel here, what surrounds it has.
#[test]
fn operations_of_the_graph_without_a_kernel_fall_back_alone() {
    let text = "func.func @main(%x: tensor<2x3xi8>, %w: tensor<4x3xi8>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
        %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<2x3xi8>, tensor<4x3xi8>) -> tensor<2x4xi32>
        %f = stablehlo.convert %d : (tensor<2x4xi32>) -> tensor<2x4xf32>
        %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
        %r = stablehlo.multiply %f, %b : tensor<2x4xf32>
        func.return %r : tensor<2x4xf32> }";
    let (program, target) = (program(text, vec![]), target(Tier::Production, 1));
    let plan = Cpu::default().plan(&program, &target).unwrap();
    assert_eq!(plan.report().fallbacks, ["dot"]);
    let executable = Cpu::default().compile(&program, &target).unwrap();
    let fallbacks: Vec<String> = executable.fallbacks().iter().map(ToString::to_string).collect();
    assert_eq!(fallbacks, ["stablehlo.dot_general"]);
    let x = Tensor::from_slice(&[2, 3], &[1i8, 2, 3, -4, 5, 100]).unwrap();
    let w = Tensor::from_slice(&[4, 3], &[1i8, 0, 0, 0, 1, 0, 0, 0, 100, 1, 1, 1]).unwrap();
    let s = Tensor::from_slice(&[4], &[1.0f32, 0.5, 0.25, 2.0]).unwrap();
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let outcome = executable.run(&[x, w, s], &options).unwrap();
    assert_eq!(
        outcome.outputs[0].as_slice::<f32>().unwrap(),
        [1.0, 1.0, 75.0, 12.0, -4.0, 2.5, 2500.0, 202.0]
    );
    let on: Vec<String> = outcome.profile.events.iter().map(|event| event.name.clone()).collect();
    assert_eq!((on.len(), on[0].as_str()), (2, "stablehlo.dot_general"));
}

#[test]
fn unknown_operations_are_rejected_at_compile_time() {
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = stablehlo.custom_call @nobody_knows(%x) : (tensor<2xf32>) -> tensor<2xf32>
        func.return %r : tensor<2xf32> }";
    let refused = Cpu::default().compile(&program(text, vec![]), &target(Tier::Production, 1)).err().unwrap();
    assert!(refused.to_string().contains("nobody_knows"), "{refused}");
}

#[test]
fn invalid_inputs_and_thread_counts_are_errors() {
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = stablehlo.add %x, %x : tensor<2xf32>
        func.return %r : tensor<2xf32> }";
    let program = program(text, vec![]);
    let executable = Cpu::default().compile(&program, &target(Tier::Production, 1)).unwrap();
    assert!(executable.run(&[tensor(&[3], 1)], &RunOptions::default()).is_err());
    assert!(executable.run(&[], &RunOptions::default()).is_err());
    let refused = Cpu::default().compile(&program, &target(Tier::Production, 1000)).err().unwrap();
    assert!(refused.to_string().contains("1000 threads"), "{refused}");
}
