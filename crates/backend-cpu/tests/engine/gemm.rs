//! GEMMs with their epilogues, in both precisions.

use warpforge_backend_cpu::Cpu;
use warpforge_kernels::gemm::{ComputeType, Gemm};
use warpforge_runtime::{Backend, Precision, Reference, RunOptions, Target, Tier};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::{exact_kernels, kernels, program, target, tensor};

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
    let reference = Reference.compile(&reference, &super::target(Tier::Correctness, 1)).unwrap();
    let expected = reference.run(&[tensor(&[256, 32], 3)], &RunOptions::default()).unwrap().outputs;
    let scale = expected[0].iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
    for (ours, theirs) in outputs[0][0].iter().zip(expected[0].iter()) {
        assert!((ours.to_f64() - theirs.to_f64()).abs() <= 1e-2 * scale, "{ours:?} is not {theirs:?}");
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

/// Integers of all widths, with results that wrap around, transposed operands, batches and an epilogue.
#[test]
fn integers() {
    let types = ["i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"];
    let element = |name: &str| {
        let all = [
            ElementType::I8,
            ElementType::U8,
            ElementType::I16,
            ElementType::U16,
            ElementType::I32,
            ElementType::U32,
            ElementType::I64,
            ElementType::U64,
        ];
        all[types.iter().position(|known| *known == name).unwrap()]
    };
    let numbers = |element: ElementType, dims: &[usize], seed: u64| {
        let shape = Shape::new(dims).unwrap();
        let bytes: Vec<u8> = (0..shape.num_elements() * element.byte_width())
            .map(|at| ((at as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        Tensor::from_bytes(element, shape, &bytes).unwrap()
    };
    let pairs = types.iter().flat_map(|left| types.iter().map(move |right| (*left, *right)));
    for (at, (left, right)) in pairs.enumerate() {
        let result = types[at * 5 % types.len()];
        let (m, n, k) = (1 + at % 20, 3 + at % 37, at % 70);
        let text = format!(
            "func.func @main(%x: tensor<2x{m}x{k}x{left}>, %y: tensor<2x{n}x{k}x{right}>) -> tensor<2x{m}x{n}x{result}> {{
            %d = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2]
              : (tensor<2x{m}x{k}x{left}>, tensor<2x{n}x{k}x{right}>) -> tensor<2x{m}x{n}x{result}>
            %r = stablehlo.add %d, %d : tensor<2x{m}x{n}x{result}>
            func.return %r : tensor<2x{m}x{n}x{result}> }}"
        );
        let inputs = [numbers(element(left), &[2, m, k], 1), numbers(element(right), &[2, n, k], 2)];
        let names = exact_kernels(&text, &inputs);
        assert!(names.len() == 1 && names[0].starts_with("dot 2x"), "{left} {right} {result}: {names:?}");
    }
}
