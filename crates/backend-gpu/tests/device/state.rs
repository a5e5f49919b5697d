//! State on a real GPU: run after run, it has the contents that the reference computes.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use warpforge_backend_gpu::Gpus;
use warpforge_diag::Source;
use warpforge_runtime::{
    Backend, Device, Precision, Program, Reference, RunOptions, State, StateBinding, Target, Tier, Weights,
};
use warpforge_snakeburger::text;
use warpforge_tensor::Tensor;

use crate::NEEDS_GPU;
use crate::case::inputs;

/// Programs whose first arguments are state, and the results that are their new contents.
const PROGRAMS: [(&str, &str, &[usize]); 4] = [
    (
        "momentum",
        "func.func @main(%w: tensor<37x65xf32>, %m: tensor<37x65xf32>, %g: tensor<37x65xf32>) -> (tensor<f32>, tensor<37x65xf32>, tensor<37x65xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %decay = stablehlo.constant dense<0.9> : tensor<37x65xf32>
    %most = stablehlo.reduce(%w init: %zero) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<37x65xf32>, tensor<f32>) -> tensor<f32>
    %0 = stablehlo.multiply %m, %decay : tensor<37x65xf32>
    %1 = stablehlo.add %0, %g : tensor<37x65xf32>
    %2 = stablehlo.subtract %w, %1 : tensor<37x65xf32>
    func.return %most, %2, %1 : tensor<f32>, tensor<37x65xf32>, tensor<37x65xf32>\n}",
        &[1, 2],
    ),
    (
        "read_after_the_update",
        "func.func @main(%w: tensor<64x64xf32>, %x: tensor<8x64xf32>) -> (tensor<64x64xf32>, tensor<8x64xf32>) {
    %half = stablehlo.constant dense<0.5> : tensor<64x64xf32>
    %0 = stablehlo.multiply %w, %half : tensor<64x64xf32>
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    func.return %0, %1 : tensor<64x64xf32>, tensor<8x64xf32>\n}",
        &[0],
    ),
    (
        "swap",
        "func.func @main(%a: tensor<100xf32>, %b: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>, tensor<100xf32>) {
    func.return %b, %a, %a : tensor<100xf32>, tensor<100xf32>, tensor<100xf32>\n}",
        &[0, 1],
    ),
    (
        "cache",
        "func.func @main(%c: tensor<16x8x64xf32>, %at: tensor<i32>, %row: tensor<16x1x64xf32>) -> (tensor<16x8x64xf32>, tensor<i32>, tensor<16x64xf32>) {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dynamic_update_slice %c, %row, %i0, %at, %i0 : (tensor<16x8x64xf32>, tensor<16x1x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x8x64xf32>
    %1 = stablehlo.add %at, %i1 : tensor<i32>
    %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x8x64xf32>, tensor<f32>) -> tensor<16x64xf32>
    func.return %0, %1, %2 : tensor<16x8x64xf32>, tensor<i32>, tensor<16x64xf32>\n}",
        &[0, 1],
    ),
];

pub(crate) fn trials(gpus: &Arc<Gpus>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, text, results) in PROGRAMS {
        trials.push(Trial::test(format!("state_{name}/reference"), move || {
            let target = target(Device::Cpu, Tier::Correctness);
            run(&Reference, &target, text, results).map(drop)
        }));
        for tier in Tier::ALL {
            let gpus = Arc::clone(gpus);
            let agrees = move || agrees(&gpus, tier, text, results);
            trials.push(Trial::test(format!("state_{name}/{tier}"), agrees).with_kind(NEEDS_GPU));
        }
    }
    trials
}

fn target(device: Device, tier: Tier) -> Target {
    Target::new(device, tier, Precision::Model)
}

/// The results of four runs, and the state after them.
fn run(backend: &dyn Backend, target: &Target, text: &str, results: &[usize]) -> Result<Vec<Tensor>, Failed> {
    let module = text::parse(&Source::new("m", text), &text::Options::default());
    let module = Arc::new(module.map_err(|error| format!("{error:?}"))?);
    let program = Program::new(module, "main", Weights::default())?;
    let all = inputs(&program);
    let (initial, inputs) = all.split_at(results.len());
    let state: Arc<State> = Arc::new(backend.state(initial, target)?);
    let bind = |(at, &result): (usize, &usize)| StateBinding { argument: at, result, value: at };
    let bindings = results.iter().enumerate().map(bind).collect();
    let executable = backend.compile(&program.with_state(Arc::clone(&state), bindings)?, target)?;
    let mut given = Vec::new();
    // Step by step, during capture, and as a captured graph.
    for profile in [true, false, false, false] {
        let options = RunOptions { profile, ..RunOptions::default() };
        given.extend(executable.run(inputs, &options)?.outputs);
    }
    for value in 0..initial.len() {
        given.push(state.read(value)?);
    }
    Ok(given)
}

fn agrees(gpus: &Gpus, tier: Tier, text: &str, results: &[usize]) -> Result<(), Failed> {
    let expected = run(&Reference, &target(Device::Cpu, Tier::Correctness), text, results)?;
    let found = run(gpus, &target(Device::Cuda(0), tier), text, results)?;
    for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let scale = expected.iter().map(|value| value.to_f64().abs()).fold(1.0, f64::max);
        for (one, other) in expected.iter().zip(found.iter()) {
            if (one.to_f64() - other.to_f64()).abs() > 1e-5 * scale {
                return Err(format!("tensor {at}: {other:?}, {one:?} expected").into());
            }
        }
    }
    Ok(())
}
