//! Fused loops and their reductions.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, RunOptions, Tier};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::{SOFTMAX, kernels, program, target, tensor};

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
