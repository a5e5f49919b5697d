//! Programs on the CPU backend against the reference interpreter, with the expected number of kernels.

mod attention;
mod control_flow;
mod conv;
mod fallback;
mod fourier;
mod gemm;
mod indexing;
mod loops;
mod once;
mod quantized;
mod quantized_types;
mod regions;
mod scalar_functions;
mod state;

use std::num::NonZeroUsize;
use std::sync::Arc;

use warpforge_backend_cpu::Cpu;
use warpforge_diag::Source;
use warpforge_runtime::{Backend, Device, Precision, Program, Reference, RunOptions, Target, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

fn program(text: &str, weights: Vec<Option<Tensor>>) -> Program {
    let module = text::parse(&Source::new("m.mlir", text), &text::Options::default()).unwrap();
    Program::new(Arc::new(module), "main", Weights::new(weights)).unwrap()
}

fn target(tier: Tier, threads: usize) -> Target {
    Target { threads: NonZeroUsize::new(threads), ..Target::new(Device::Cpu, tier, Precision::Model) }
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

/// Runs a program on both backends with 1 to 3 threads, asserts that the results are the same bit for bit, and returns the names of
/// the kernels.
fn exact_kernels(text: &str, inputs: &[Tensor]) -> Vec<String> {
    let program = program(text, vec![]);
    let expected = Reference.compile(&program, &target(Tier::Correctness, 1)).unwrap();
    let expected = expected.run(inputs, &RunOptions::default()).unwrap().outputs;
    let mut names = Vec::new();
    for threads in [1, 2, 3] {
        let executable = Cpu::default().compile(&program, &target(Tier::Production, threads)).unwrap();
        assert!(executable.fallbacks().is_empty(), "{:?}", executable.fallbacks());
        let options = RunOptions { profile: true, ..RunOptions::default() };
        let outcome = executable.run(inputs, &options).unwrap();
        for (ours, theirs) in outcome.outputs.iter().zip(&expected) {
            assert!(ours.identical(theirs), "{ours:?} is not {theirs:?}");
        }
        names = outcome.profile.events.iter().map(|event| event.name.clone()).collect();
    }
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
