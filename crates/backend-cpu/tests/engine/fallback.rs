//! Operations without a kernel: evaluated by the reference and reported, or refused.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, RunOptions, Tier};
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use super::{program, target};

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

/// A product of floats of 8 bits has no kernel here, what surrounds it has.
#[test]
fn operations_of_the_graph_without_a_kernel_fall_back_alone() {
    let text = "func.func @main(%x: tensor<2x3xf8E5M2>, %w: tensor<4x3xf8E5M2>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
        %f = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1]
          : (tensor<2x3xf8E5M2>, tensor<4x3xf8E5M2>) -> tensor<2x4xf32>
        %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
        %r = stablehlo.multiply %f, %b : tensor<2x4xf32>
        func.return %r : tensor<2x4xf32> }";
    let (program, target) = (program(text, vec![]), target(Tier::Production, 1));
    let plan = Cpu::default().plan(&program, &target).unwrap();
    assert_eq!(plan.report().fallbacks, ["dot"]);
    let executable = Cpu::default().compile(&program, &target).unwrap();
    let fallbacks: Vec<String> = executable.fallbacks().iter().map(ToString::to_string).collect();
    assert_eq!(fallbacks, ["stablehlo.dot_general"]);
    let tensor = |dims: &[usize], values: &[f64]| {
        let values = values.iter().map(|&value| Scalar::Float(value));
        let element = ElementType::Float(FloatType::F8E5M2);
        Tensor::from_scalars(element, Shape::new(dims).unwrap(), values).unwrap()
    };
    let x = tensor(&[2, 3], &[1.0, 2.0, 3.0, -4.0, 5.0, 96.0]);
    let w = tensor(&[4, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 96.0, 1.0, 1.0, 1.0]);
    let s = Tensor::from_slice(&[4], &[1.0f32, 0.5, 0.25, 2.0]).unwrap();
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let outcome = executable.run(&[x, w, s], &options).unwrap();
    assert_eq!(
        outcome.outputs[0].as_slice::<f32>().unwrap(),
        [1.0, 1.0, 72.0, 12.0, -4.0, 2.5, 2304.0, 194.0]
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
