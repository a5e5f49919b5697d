//! Attention with deferred softmax division.

use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use crate::{SOFTMAX, kernels, tensor};

/// Attention of four heads over 50 rows: `scores` makes `%x` of `%scaled`, `weights` makes `used` of the softmax `%p`.
fn attention(arguments: &str, scores: &str, weights: &str, used: &str) -> String {
    format!(
        "func.func @main(%q: tensor<4x50x16xf32>, %k: tensor<4x50x16xf32>, %v: tensor<4x50x8xf32>{arguments})
            -> tensor<50x32xf32> {{
        %raw = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
          : (tensor<4x50x16xf32>, tensor<4x50x16xf32>) -> tensor<4x50x50xf32>
        %scale = stablehlo.constant dense<0.25> : tensor<4x50x50xf32>
        %scaled = stablehlo.multiply %raw, %scale : tensor<4x50x50xf32>
        {scores}
        {SOFTMAX}
        {weights}
        %o = stablehlo.dot_general {used}, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
          : (tensor<4x50x50xf32>, tensor<4x50x8xf32>) -> tensor<4x50x8xf32>
        %t = stablehlo.transpose %o, dims = [1, 0, 2] : (tensor<4x50x8xf32>) -> tensor<50x4x8xf32>
        %r = stablehlo.reshape %t : (tensor<50x4x8xf32>) -> tensor<50x32xf32>
        func.return %r : tensor<50x32xf32> }}"
    )
}

fn operands() -> Vec<Tensor> {
    vec![tensor(&[4, 50, 16], 1), tensor(&[4, 50, 16], 2), tensor(&[4, 50, 8], 3)]
}

fn is_one_kernel(text: &str, inputs: &[Tensor]) {
    let names = kernels(text, vec![], inputs);
    assert!(names.len() == 1 && names[0].starts_with("attention"), "{names:?}");
}

#[test]
fn attention_is_one_kernel_with_a_transposed_output() {
    let x = "%x = stablehlo.negate %scaled : tensor<4x50x50xf32>";
    is_one_kernel(&attention("", x, "", "%p"), &operands());
}

/// Fully masked rows: their weights are zeros instead of NaN.
#[test]
fn fully_masked_rows_are_zeros() {
    let x = "%x = stablehlo.add %scaled, %mask : tensor<4x50x50xf32>";
    let w = "
        %none = stablehlo.broadcast_in_dim %least, dims = [] : (tensor<f32>) -> tensor<4x50xf32>
        %seen = stablehlo.compare NE, %max, %none : (tensor<4x50xf32>, tensor<4x50xf32>) -> tensor<4x50xi1>
        %see = stablehlo.broadcast_in_dim %seen, dims = [0, 1] : (tensor<4x50xi1>) -> tensor<4x50x50xi1>
        %zeros = stablehlo.constant dense<0.0> : tensor<4x50x50xf32>
        %w = stablehlo.select %see, %p, %zeros : tensor<4x50x50xi1>, tensor<4x50x50xf32>";
    let mut inputs = operands();
    // Every fourth row is fully masked, the others by half.
    let hidden = |at: usize| (at / 50).is_multiple_of(4) || at.is_multiple_of(2);
    let mask = (0..4 * 50 * 50).map(|at| Scalar::Float(if hidden(at) { f64::NEG_INFINITY } else { 0.0 }));
    inputs.push(Tensor::from_scalars(ElementType::F32, Shape::new([4, 50, 50]).unwrap(), mask).unwrap());
    is_one_kernel(&attention(", %mask: tensor<4x50x50xf32>", x, w, "%w"), &inputs);
}

/// Six heads of queries that share two heads of keys and values. `queries` makes `%q` of `%given`.
fn grouped(rows: usize, given: &str, queries: &str) -> String {
    let scores = format!("6x{rows}x30xf32");
    let softmax = SOFTMAX.replace("4x50x50xf32", &scores).replace("4x50xf32", &format!("6x{rows}xf32"));
    format!(
        "func.func @main(%given: tensor<{given}xf32>, %keys: tensor<2x30x16xf32>, %values: tensor<2x30x8xf32>)
            -> tensor<6x{rows}x8xf32> {{
        {queries}
        %k4 = stablehlo.broadcast_in_dim %keys, dims = [0, 2, 3] : (tensor<2x30x16xf32>) -> tensor<2x3x30x16xf32>
        %k = stablehlo.reshape %k4 : (tensor<2x3x30x16xf32>) -> tensor<6x30x16xf32>
        %v4 = stablehlo.broadcast_in_dim %values, dims = [0, 2, 3] : (tensor<2x30x8xf32>) -> tensor<2x3x30x8xf32>
        %v = stablehlo.reshape %v4 : (tensor<2x3x30x8xf32>) -> tensor<6x30x8xf32>
        %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
          : (tensor<6x{rows}x16xf32>, tensor<6x30x16xf32>) -> tensor<{scores}>
        {softmax}
        %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
          : (tensor<{scores}>, tensor<6x30x8xf32>) -> tensor<6x{rows}x8xf32>
        func.return %o : tensor<6x{rows}x8xf32> }}"
    )
}

/// Keys and values of grouped queries are packed once for all heads that share them, where the queries are one after the other.
#[test]
fn heads_that_share_keys_are_rows_of_one_head() {
    let negated = |rows| format!("%q = stablehlo.negate %given : tensor<6x{rows}x16xf32>");
    let transposed =
        "%q = stablehlo.transpose %given, dims = [1, 0, 2] : (tensor<5x6x16xf32>) -> tensor<6x5x16xf32>";
    for (rows, given, queries, joined) in [
        (1, "6x1x16", negated(1), "2x3x30"),
        (7, "6x7x16", negated(7), "2x21x30"),
        (5, "5x6x16", transposed.to_owned(), "6x5x30"),
    ] {
        let dims: Vec<usize> = given.split('x').map(|dim| dim.parse().unwrap()).collect();
        let inputs = [tensor(&dims, 1), tensor(&[2, 30, 16], 2), tensor(&[2, 30, 8], 3)];
        let names = kernels(&grouped(rows, given, &queries), vec![], &inputs);
        assert!(names.iter().any(|name| name.starts_with(&format!("attention {joined}"))), "{names:?}");
    }
}
