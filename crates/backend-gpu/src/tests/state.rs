//! State stays on the device between runs.

use std::sync::Arc;

use warpforge_diag::Source;
use warpforge_runtime::{Executable, Program, RunOptions, State, StateBinding, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::Tensor;

use super::input;
use crate::compile::build;
use crate::compile_error::CompileError;
use crate::driver::Gpu;
use crate::executable::GpuExecutable;
use crate::fake::{self, Trouble};
use crate::state::DeviceStore;
use crate::vendor::Vendor;

/// A step: the loss of the old weights, and new weights and moments from a gradient that is smaller than they are.
const STEP: &str =
    "func.func @main(%w: tensor<16x4xf32>, %m: tensor<16x4xf32>, %x: tensor<16xf32>) -> (tensor<f32>, tensor<16x4xf32>, tensor<16x4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %loss = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x4xf32>, tensor<f32>) -> tensor<f32>
    %g = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<16xf32>) -> tensor<16x4xf32>
    %0 = stablehlo.add %m, %g : tensor<16x4xf32>
    %1 = stablehlo.subtract %w, %0 : tensor<16x4xf32>
    func.return %loss, %1, %0 : tensor<f32>, tensor<16x4xf32>, tensor<16x4xf32>\n}";

const SWAP: &str =
    "func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    func.return %b, %a : tensor<64xf32>, tensor<64xf32>\n}";

fn program(text: &str, state: &Arc<State>, pairs: &[(usize, usize)]) -> Program {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
    let bind =
        |(value, &(argument, result)): (usize, &(usize, usize))| StateBinding { argument, result, value };
    program.with_state(Arc::clone(state), pairs.iter().enumerate().map(bind).collect()).unwrap()
}

fn compile(gpu: &Arc<Gpu>, program: &Program, tier: Tier) -> Result<GpuExecutable, CompileError> {
    build(gpu, &fake::request(program, tier)).map(GpuExecutable::new)
}

#[test]
fn only_inputs_and_outputs_cross() {
    for (vendor, tier) in [(Vendor::Cuda, Tier::Production), (Vendor::Hip, Tier::Correctness)] {
        let gpu = fake::gpu(vendor).unwrap();
        let state = Arc::new(DeviceStore::state(&gpu, &[input(&[16, 4]), input(&[16, 4])]).unwrap());
        let Ok(compiled) = compile(&gpu, &program(STEP, &state, &[(0, 1), (1, 2)]), tier) else { panic!() };
        compiled.run(&[input(&[16])], &RunOptions::default()).unwrap();
        fake::calls();
        let outcome = compiled.run(&[input(&[16])], &RunOptions::default()).unwrap();
        assert_eq!(outcome.outputs.len(), 1);
        let expected = [
            "copy in 64 on 3",
            "2 waits",
            "copy within 64 on 2",
            "launch all",
            "copy within 4 on 2",
            "3 waits",
            "copy out 4 on 3",
        ];
        assert_eq!(fake::calls(), expected);
        state.read(0).unwrap();
        assert_eq!(fake::calls(), ["copy out 256 on 1"]);
    }
}

/// New weights are made of new moments, which both stay on the device: one kernel gives both, another the loss.
#[test]
fn updates_that_read_each_other_are_one_kernel() {
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let state = Arc::new(DeviceStore::state(&gpu, &[input(&[16, 4]), input(&[16, 4])]).unwrap());
    let program = program(STEP, &state, &[(0, 1), (1, 2)]);
    for (tier, launches) in [(Tier::Production, 2), (Tier::Observable, 3)] {
        let Ok(compiled) = compile(&gpu, &program, tier) else { panic!() };
        assert_eq!(compiled.counters().unwrap().kernel_launches, launches, "{tier:?}");
    }
}

#[test]
fn bound_runs_update_the_state_of_others() {
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let [one, two] = [1.0f32, 2.0].map(|value| Tensor::from_slice(&[64], &[value; 64]).unwrap());
    let state = Arc::new(DeviceStore::state(&gpu, &[one, two]).unwrap());
    let program = program(SWAP, &state, &[(0, 0), (1, 1)]);
    let Ok(compiled) = compile(&gpu, &program, Tier::Correctness) else { panic!() };
    // A run that fails leaves a state that has to be loaded again.
    for (wait, whole) in [(0, true), (700, false)] {
        let mut bound = compiled.bind(&[]).unwrap().unwrap();
        fake::trouble(Trouble { wait, ..Trouble::default() });
        assert_eq!(bound.run().is_ok(), whole);
        fake::trouble(Trouble::default());
        drop(bound);
        assert_eq!(state.read(0).is_ok(), whole);
    }
}

#[test]
fn copies_that_a_graph_demands_stay_on_the_device() {
    for tier in [Tier::Production, Tier::Correctness] {
        let gpu = fake::gpu(Vendor::Cuda).unwrap();
        let [one, two] = [1.0f32, 2.0].map(|value| Tensor::from_slice(&[64], &[value; 64]).unwrap());
        let state = Arc::new(DeviceStore::state(&gpu, &[one, two]).unwrap());
        let Ok(compiled) = compile(&gpu, &program(SWAP, &state, &[(0, 0), (1, 1)]), tier) else { panic!() };
        fake::calls();
        compiled.run(&[], &RunOptions { profile: true, ..RunOptions::default() }).unwrap();
        assert_eq!(fake::calls(), ["copy within 256 on 2"; 3]);
        let first = |value: usize| state.read(value).unwrap().as_slice::<f32>().unwrap()[0].to_bits();
        assert_eq!([first(0), first(1)], [2.0f32, 1.0].map(f32::to_bits));
    }
}

#[test]
fn an_update_of_a_cache_writes_the_update_alone() {
    let text = "func.func @main(%c: tensor<16x8x64xf32>, %at: tensor<i32>, %row: tensor<16x1x64xf32>) -> tensor<16x8x64xf32> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %c, %row, %i0, %at, %i0 : (tensor<16x8x64xf32>, tensor<16x1x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x8x64xf32>
    func.return %0 : tensor<16x8x64xf32>\n}";
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let state = Arc::new(DeviceStore::state(&gpu, &[input(&[16, 8, 64])]).unwrap());
    let Ok(compiled) = compile(&gpu, &program(text, &state, &[(0, 0)]), Tier::Production) else { panic!() };
    fake::calls();
    let inputs = [Tensor::from_slice(&[], &[3i32]).unwrap(), input(&[16, 1, 64])];
    compiled.run(&inputs, &RunOptions { profile: true, ..RunOptions::default() }).unwrap();
    // 1024 elements of 8192.
    assert_eq!(fake::calls(), ["copy in 4 on 2", "copy in 4096 on 2", "launch 4 blocks of 256"]);
}

#[test]
fn a_run_that_fails_leaves_no_whole_state() {
    let gpu = fake::gpu(Vendor::Cuda).unwrap();
    let state = Arc::new(DeviceStore::state(&gpu, &[input(&[16, 4]), input(&[16, 4])]).unwrap());
    let program = program(STEP, &state, &[(0, 1), (1, 2)]);
    let Ok(compiled) = compile(&gpu, &program, Tier::Production) else { panic!() };
    // Inputs that do not fit are refused before anything runs.
    assert!(compiled.run(&[input(&[15])], &RunOptions::default()).is_err());
    assert!(state.read(0).is_ok());
    fake::trouble(Trouble { wait: 700, ..Trouble::default() });
    assert!(compiled.run(&[input(&[16])], &RunOptions::default()).is_err());
    fake::trouble(Trouble::default());
    assert!(state.read(0).unwrap_err().to_string().contains("half-way"));
    assert!(compiled.run(&[input(&[16])], &RunOptions::default()).is_err());
}

#[test]
fn state_of_another_device_is_refused() {
    let (here, there) = (fake::gpu(Vendor::Cuda).unwrap(), fake::gpu(Vendor::Cuda).unwrap());
    let state = Arc::new(DeviceStore::state(&there, &[input(&[64]), input(&[64])]).unwrap());
    let refused = compile(&here, &program(SWAP, &state, &[(0, 0), (1, 1)]), Tier::Production);
    assert!(matches!(refused, Err(CompileError::Gpu(error)) if error.to_string().contains("another device")));
}
