//! Programs on a real GPU beside the reference. Where there is none, each test says so and is skipped.

use std::sync::Arc;

use warpforge_backend_gpu::{Gpus, Vendor};
use warpforge_diag::Source;
use warpforge_runtime::{Backend, Device, Precision, Program, Reference, RunOptions, Target, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

const TIERS: [Tier; 3] = Tier::ALL;

fn gpus() -> Option<Gpus> {
    let gpus = Gpus::new(Vendor::Cuda);
    match gpus.why_not(Device::Cuda(0)) {
        None => Some(gpus),
        Some(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn target(device: Device, tier: Tier) -> Target {
    Target { device, tier, precision: Precision::Model, threads: None }
}

fn program(text: &str) -> Program {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    Program::new(Arc::new(module), "main", Weights::default()).unwrap()
}

/// Numbers from -1 to 1, always the same.
fn inputs(program: &Program) -> Vec<Tensor> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1u32 << 23) - 1.0
    };
    let mut tensor = |ty: &warpforge_ir::TensorType| {
        let (element, dims) = (ty.element().storage().unwrap(), ty.shape_usize().unwrap());
        let shape = Shape::new(dims).unwrap();
        let values: Vec<Scalar> = (0..shape.num_elements())
            .map(|_| match element {
                ElementType::Float(_) => Scalar::Float(next()),
                _ => Scalar::Int((next() * 8.0) as i128),
            })
            .collect();
        Tensor::from_scalars(element, shape, values).unwrap()
    };
    program.inputs().iter().map(|(_, ty)| tensor(ty)).collect()
}

/// Runs a program in all tiers beside the reference.
fn agree(text: &str, within: f64) {
    let Some(gpus) = gpus() else { return };
    let program = program(text);
    let inputs = inputs(&program);
    let reference = Reference.compile(&program, &target(Device::Cpu, Tier::Correctness)).unwrap();
    let expected = reference.run(&inputs, &RunOptions::default()).unwrap().outputs;
    for tier in TIERS {
        let executable = gpus.compile(&program, &target(Device::Cuda(0), tier)).unwrap();
        assert!(executable.on_reference().is_empty(), "{tier}: {:?}", executable.on_reference());
        // Twice: the second run is a recorded one.
        for _ in 0..2 {
            let found = executable.run(&inputs, &RunOptions::default()).unwrap().outputs;
            for (expected, found) in expected.iter().zip(&found) {
                let scale = expected.iter().map(|value| value.to_f64().abs()).fold(0.0, f64::max);
                let worst = expected
                    .iter()
                    .zip(found.iter())
                    .map(|(one, other)| (one.to_f64() - other.to_f64()).abs())
                    .fold(0.0, f64::max);
                assert!(worst <= within * scale.max(1.0), "{tier}: {worst} of {scale}");
            }
        }
    }
}

#[test]
fn chains_of_elementwise_operations() {
    agree(
        "func.func @main(%a: tensor<37x65xf32>, %b: tensor<65xf32>) -> tensor<37x65xf32> {
        %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<65xf32>) -> tensor<37x65xf32>
        %1 = stablehlo.multiply %a, %0 : tensor<37x65xf32>
        %2 = stablehlo.tanh %1 : tensor<37x65xf32>
        %3 = stablehlo.exponential %2 : tensor<37x65xf32>
        func.return %3 : tensor<37x65xf32>\n}",
        1e-6,
    );
}

#[test]
fn sums_over_rows_and_columns() {
    agree(
        "func.func @main(%a: tensor<33x129xf32>) -> (tensor<33xf32>, tensor<129xf32>) {
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<33x129xf32>, tensor<f32>) -> tensor<33xf32>
        %1 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<33x129xf32>, tensor<f32>) -> tensor<129xf32>
        func.return %0, %1 : tensor<33xf32>, tensor<129xf32>\n}",
        1e-5,
    );
}

#[test]
fn products_with_bias_and_relu() {
    agree(
        "func.func @main(%x: tensor<24x40xf32>, %w: tensor<56x40xf32>, %b: tensor<56xf32>) -> tensor<24x56xf32> {
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<24x40xf32>, tensor<56x40xf32>) -> tensor<24x56xf32>
        %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<56xf32>) -> tensor<24x56xf32>
        %2 = stablehlo.add %0, %1 : tensor<24x56xf32>
        %z = stablehlo.constant dense<0.0> : tensor<24x56xf32>
        %3 = stablehlo.maximum %2, %z : tensor<24x56xf32>
        func.return %3 : tensor<24x56xf32>\n}",
        1e-5,
    );
}

#[test]
fn batches_of_products_in_any_layout() {
    agree(
        "func.func @main(%x: tensor<3x8x5x16xf32>, %y: tensor<3x5x16x8xf32>) -> tensor<3x5x8x8xf32> {
        %0 = stablehlo.dot_general %x, %y, batching_dims = [0, 2] x [0, 1], contracting_dims = [3] x [2] : (tensor<3x8x5x16xf32>, tensor<3x5x16x8xf32>) -> tensor<3x5x8x8xf32>
        func.return %0 : tensor<3x5x8x8xf32>\n}",
        1e-5,
    );
}
