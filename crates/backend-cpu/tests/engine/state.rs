//! Programs with state against the reference interpreter, run after run.

use std::sync::Arc;

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::state::HostStore;
use warpforge_runtime::{Backend, Program, Reference, RunOptions, State, StateBinding, Tier};
use warpforge_tensor::{Scalar, Tensor};

use crate::{close, program, target, tensor};

/// The program with the arguments and results of these positions as state.
fn with_state(text: &str, state: &Arc<State>, pairs: &[(usize, usize)]) -> Program {
    let bind =
        |(value, &(argument, result)): (usize, &(usize, usize))| StateBinding { argument, result, value };
    let bindings = pairs.iter().enumerate().map(bind).collect();
    program(text, vec![]).with_state(Arc::clone(state), bindings).unwrap()
}

/// Where the values of a state lie.
fn addresses(state: &State) -> Vec<usize> {
    let store: &HostStore = state.store().as_any().downcast_ref().unwrap();
    store.lock().iter().map(|value| value.bytes().as_ptr() as usize).collect()
}

/// Runs on both backends several times, asserts that results and state agree and that the state stays where it is, and returns the
/// names of the kernels of a run.
fn kernels(text: &str, pairs: &[(usize, usize)], initial: &[Tensor], inputs: &[Tensor]) -> Vec<String> {
    let mut names = Vec::new();
    for threads in [1, 3] {
        let state = Arc::new(Cpu::default().state(initial, &target(Tier::Production, threads)).unwrap());
        let expected_state = Arc::new(State::on_host(initial));
        let ours = with_state(text, &state, pairs);
        let ours = Cpu::default().compile(&ours, &target(Tier::Production, threads)).unwrap();
        let theirs = with_state(text, &expected_state, pairs);
        let theirs = Reference.compile(&theirs, &target(Tier::Correctness, 1)).unwrap();
        let mut places = None;
        for _ in 0..4 {
            let options = RunOptions { profile: true, ..RunOptions::default() };
            let outcome = ours.run(inputs, &options).unwrap();
            let expected = theirs.run(inputs, &RunOptions::default()).unwrap();
            names = outcome.profile.events.iter().map(|event| event.name.clone()).collect();
            assert_eq!(outcome.outputs.len(), expected.outputs.len());
            for (ours, theirs) in outcome.outputs.iter().zip(&expected.outputs) {
                close(ours, theirs);
            }
            // The first run takes over memory that the initial tensors share.
            assert_eq!(*places.get_or_insert_with(|| addresses(&state)), addresses(&state));
            for value in 0..initial.len() {
                close(&state.read(value).unwrap(), &expected_state.read(value).unwrap());
            }
        }
    }
    names
}

const MOMENTUM: &str = "func.func @main(%w: tensor<70x33xf32>, %m: tensor<70x33xf32>, %g: tensor<70x33xf32>)
    -> (tensor<f32>, tensor<70x33xf32>, tensor<70x33xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %decay = stablehlo.constant dense<0.9> : tensor<70x33xf32>
  %rate = stablehlo.constant dense<0.1> : tensor<70x33xf32>
  %0 = stablehlo.multiply %m, %decay : tensor<70x33xf32>
  %1 = stablehlo.add %0, %g : tensor<70x33xf32>
  %2 = stablehlo.multiply %1, %rate : tensor<70x33xf32>
  %3 = stablehlo.subtract %w, %2 : tensor<70x33xf32>
  %norm = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<70x33xf32>, tensor<f32>) -> tensor<f32>
  func.return %norm, %3, %1 : tensor<f32>, tensor<70x33xf32>, tensor<70x33xf32>
}";

#[test]
fn elementwise_updates_are_in_place() {
    let initial = [tensor(&[70, 33], 1), tensor(&[70, 33], 2)];
    let names = kernels(MOMENTUM, &[(0, 1), (1, 2)], &initial, &[tensor(&[70, 33], 3)]);
    // The sum reads the old weights after the update is computed where the graph has it later: that takes a copy.
    let copies = names.iter().filter(|name| *name == "copy of state").count();
    assert_eq!((names.len() - copies, copies), (2, 1), "{names:?}");
    let before = MOMENTUM.replace("%norm = stablehlo.reduce(%w", "%norm = stablehlo.reduce(%g");
    let names = kernels(&before, &[(0, 1), (1, 2)], &initial, &[tensor(&[70, 33], 3)]);
    assert!(!names.contains(&"copy of state".to_owned()), "{names:?}");
}

#[test]
fn values_that_change_places_are_copied_through_the_block() {
    let text = "func.func @main(%a: tensor<9xf32>, %b: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  func.return %b, %a : tensor<9xf32>, tensor<9xf32>
}";
    let names = kernels(text, &[(0, 0), (1, 1)], &[tensor(&[9], 1), tensor(&[9], 2)], &[]);
    assert_eq!(names, ["copy of state"; 3]);
}

#[test]
fn a_cache_is_written_where_it_is() {
    let text = "func.func @main(%cache: tensor<8x5xf32>, %at: tensor<i32>, %row: tensor<1x5xf32>)
      -> (tensor<8x5xf32>, tensor<i32>, tensor<5xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dynamic_update_slice %cache, %row, %at, %c0
    : (tensor<8x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x5xf32>
  %1 = stablehlo.add %at, %c1 : tensor<i32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<8x5xf32>, tensor<f32>) -> tensor<5xf32>
  func.return %0, %1, %2 : tensor<8x5xf32>, tensor<i32>, tensor<5xf32>
}";
    let zero = [tensor(&[8, 5], 0).clone(), Tensor::from_slice(&[], &[2i32]).unwrap()];
    let names = kernels(text, &[(0, 0), (1, 1)], &zero, &[tensor(&[1, 5], 3)]);
    assert!(names.contains(&"dynamic update slice".to_owned()), "{names:?}");
    assert!(!names.contains(&"copy of state".to_owned()), "{names:?}");
}

#[test]
fn an_old_content_that_is_given_away_stays_as_it_was() {
    let text = "func.func @main(%n: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.add %n, %n : tensor<3xf32>
  func.return %0, %n : tensor<3xf32>, tensor<3xf32>
}";
    let state = Arc::new(State::on_host(&[Tensor::from_slice(&[3], &[1.0f32; 3]).unwrap()]));
    let executable =
        Cpu::default().compile(&with_state(text, &state, &[(0, 0)]), &target(Tier::Production, 2)).unwrap();
    let seen = state.read(0).unwrap();
    let outputs: Vec<Tensor> = (0..3)
        .map(|_| executable.run(&[], &RunOptions::default()).unwrap().outputs.into_iter().next().unwrap())
        .collect();
    let first = |tensor: &Tensor| tensor.get(0);
    assert_eq!(outputs.iter().map(first).collect::<Vec<_>>(), [1.0, 2.0, 4.0].map(Scalar::Float));
    assert_eq!((first(&seen), first(&state.read(0).unwrap())), (Scalar::Float(1.0), Scalar::Float(8.0)));
}

#[test]
fn programs_share_a_state() {
    let add = |by: &str| {
        format!(
            "func.func @main(%n: tensor<2xf32>) -> tensor<2xf32> {{
  %c = stablehlo.constant dense<{by}> : tensor<2xf32>
  %0 = stablehlo.add %n, %c : tensor<2xf32>
  func.return %0 : tensor<2xf32>\n}}"
        )
    };
    let state = Arc::new(State::on_host(&[Tensor::from_slice(&[2], &[0.0f32; 2]).unwrap()]));
    for (backend, by) in [(&Cpu::default() as &dyn Backend, "1.0"), (&Reference, "10.0")] {
        let tier = backend.capabilities(warpforge_runtime::Device::Cpu).tiers[0];
        let executable = backend.compile(&with_state(&add(by), &state, &[(0, 0)]), &target(tier, 1)).unwrap();
        executable.run(&[], &RunOptions::default()).unwrap();
        // Inputs that do not fit are refused before anything is written.
        assert!(executable.run(&[tensor(&[1], 1)], &RunOptions::default()).is_err());
        executable.run(&[], &RunOptions::default()).unwrap();
    }
    assert_eq!(state.read(0).unwrap().as_slice::<f32>().unwrap(), [22.0; 2]);
}
