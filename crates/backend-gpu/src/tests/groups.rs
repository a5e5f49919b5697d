//! Equal kernels in one launch.

use super::compiled;
use crate::fake;
use crate::vendor::Vendor;
use warpforge_runtime::{Executable, RunOptions};

use super::input;

fn launches(text: &str) -> u64 {
    compiled(text, Vendor::Cuda).counters().unwrap().kernel_launches
}

/// Two steps for each of three parameters, one parameter after the other, as an optimizer has them.
const UPDATES: &str = "func.func @main(%g: tensor<64xf32>, %h: tensor<64xf32>, %i: tensor<64xf32>)
        -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
    %0 = stablehlo.multiply %g, %g : tensor<64xf32>
    %1 = stablehlo.tanh %0 : tensor<64xf32>
    %2 = stablehlo.multiply %h, %h : tensor<64xf32>
    %3 = stablehlo.tanh %2 : tensor<64xf32>
    %4 = stablehlo.multiply %i, %i : tensor<64xf32>
    %5 = stablehlo.tanh %4 : tensor<64xf32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>\n}";

#[test]
fn equal_kernels_of_different_values_are_launched_together() {
    assert_eq!(launches(UPDATES), 2);
}

#[test]
fn a_group_is_launched_with_a_table_of_addresses() {
    let program = compiled(UPDATES, Vendor::Cuda);
    let calls = fake::calls();
    // Three members of two pointers each.
    assert_eq!(calls.iter().filter(|call| call.starts_with("copy in 48 ")).count(), 2, "{calls:?}");
    program.run(&[input(&[64]), input(&[64]), input(&[64])], &RunOptions::default()).unwrap();
}

#[test]
fn kernels_that_read_what_an_equal_one_writes_are_launched_apart() {
    let chain = "func.func @main(%a: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
        %r = stablehlo.reverse %a, dims = [0] : tensor<64xf32>
        %0 = stablehlo.tanh %r : tensor<64xf32>
        %s = stablehlo.reverse %0, dims = [0] : tensor<64xf32>
        %1 = stablehlo.tanh %s : tensor<64xf32>
        %t = stablehlo.reverse %1, dims = [0] : tensor<64xf32>
        %2 = stablehlo.tanh %t : tensor<64xf32>
        func.return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>\n}";
    assert_eq!(launches(chain), 3);
}
