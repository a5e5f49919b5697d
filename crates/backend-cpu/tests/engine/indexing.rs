//! Scatters, sorts, dynamic slices and windows.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, Reference, RunOptions, Tier};
use warpforge_tensor::Tensor;

use super::{kernels, program, target, tensor};

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
