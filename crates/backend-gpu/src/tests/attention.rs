//! Attention by cuDNN and by generated kernels, as the description of its cluster says.

use warpforge_tensor::{Shape, Tensor};

use super::{BF16, compiled_with, steps};
use crate::fake;
use crate::vendor::Vendor;

/// Grouped-query attention of four heads with two key-value heads and a constant mask.
fn attention(mask: &str) -> String {
    let (q, k, s) = ("tensor<1x4x2x8xbf16>", "tensor<1x4x2x8xbf16>", "tensor<1x4x2x2xf32>");
    let (few, each, r) = ("tensor<1x2x2x8xbf16>", "tensor<1x2x2x2x8xbf16>", "tensor<1x4x2xf32>");
    let softmax = super::softmax::softmax(s, r);
    format!(
        "func.func @main(%q: {q}, %k0: {few}, %v0: {few}) -> tensor<1x2x4x8xbf16> {{
    %k1 = stablehlo.broadcast_in_dim %k0, dims = [0, 1, 3, 4] : ({few}) -> {each}
    %k = stablehlo.reshape %k1 : ({each}) -> {k}
    %v1 = stablehlo.broadcast_in_dim %v0, dims = [0, 1, 3, 4] : ({few}) -> {each}
    %v = stablehlo.reshape %v1 : ({each}) -> {k}
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.constant dense<0.5> : {s}
    %m = stablehlo.constant dense<{mask}> : tensor<2x2xi1>
    %see = stablehlo.broadcast_in_dim %m, dims = [2, 3] : (tensor<2x2xi1>) -> tensor<1x4x2x2xi1>
    %none = stablehlo.constant dense<0xFF800000> : {s}
    %p = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ({q}, {k}) -> {s}
    %y = stablehlo.multiply %p, %c : {s}
    %x = stablehlo.select %see, %y, %none : tensor<1x4x2x2xi1>, {s}
    {softmax}
    %w = stablehlo.divide %e, %ss : {s}
    %vw = stablehlo.convert %v : ({k}) -> tensor<1x4x2x8xf32>
    %o = stablehlo.dot_general %w, %vw, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : ({s}, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
    %on = stablehlo.convert %o : (tensor<1x4x2x8xf32>) -> {q}
    %r = stablehlo.transpose %on, dims = [0, 2, 1, 3] : ({q}) -> tensor<1x2x4x8xbf16>
    return %r : tensor<1x2x4x8xbf16>\n}}"
    )
}

fn inputs() -> [Tensor; 3] {
    [[1, 4, 2, 8], [1, 2, 2, 8], [1, 2, 2, 8]]
        .map(|dims| Tensor::zeros(BF16, Shape::new(dims).unwrap()).unwrap())
}

#[test]
fn grouped_query_attention_with_a_constant_mask_is_one_cudnn_call() {
    let inputs = inputs();
    let causal = compiled_with(&attention("[[true, false], [true, true]]"), Vendor::Cuda, true);
    let calls = fake::calls();
    assert_eq!(steps(&causal, &inputs), ["library attention 1x4 of 2x2x2, 8 to 8 bf16, causal"]);
    // Keys are transposed and have two heads; row and column indices are compared; the output has its heads inside.
    for wanted in
        ["attribute 902 = 1 2 8 2", "attribute 0 = 501", "attribute 0 = 303", "attribute 903 = 64 8 32 1"]
    {
        assert!(calls.contains(&wanted.to_owned()), "{wanted}: {calls:?}");
    }
    let open = compiled_with(&attention("true"), Vendor::Cuda, true);
    assert_eq!(steps(&open, &inputs), ["library attention 1x4 of 2x2x2, 8 to 8 bf16"]);
    let other = compiled_with(&attention("[[true, true], [false, true]]"), Vendor::Cuda, true);
    assert!(steps(&other, &inputs).iter().all(|step| !step.contains("library attention")));
}

#[test]
fn keys_that_are_in_memory_repeated_alone_are_read_with_repeated_values() {
    let few = "tensor<1x2x2x8xbf16>";
    let negated = format!("%k0n = stablehlo.negate %k0 : {few}\n    %k1 = stablehlo.broadcast_in_dim %k0n,");
    let module = attention("true").replace("%k1 = stablehlo.broadcast_in_dim %k0,", &negated);
    let found = steps(&compiled_with(&module, Vendor::Cuda, true), &inputs());
    assert!(found.iter().any(|step| step == "library attention 1x4x2x2, 8 to 8 bf16"), "{found:?}");
}

#[test]
fn a_causal_mask_that_is_added_is_one_cudnn_call() {
    let s = "tensor<1x4x2x2xf32>";
    let selected = format!("%x = stablehlo.select %see, %y, %none : tensor<1x4x2x2xi1>, {s}");
    for (fill, causal) in [("0xFF800000", true), ("-3.40282347E+38", true), ("-1.0", false)] {
        let added = format!(
            "%zeros = stablehlo.constant dense<0.0> : {s}
    %fill = stablehlo.constant dense<{fill}> : {s}
    %mask = stablehlo.select %see, %zeros, %fill : tensor<1x4x2x2xi1>, {s}
    %x = stablehlo.add %y, %mask : {s}"
        );
        let text = attention("[[true, false], [true, true]]").replace(&selected, &added);
        let compiled = compiled_with(&text, Vendor::Cuda, true);
        let found = steps(&compiled, &inputs());
        let name = "library attention 1x4 of 2x2x2, 8 to 8 bf16, causal";
        assert_eq!(found.contains(&name.to_owned()), causal, "{fill}: {found:?}");
        assert!(causal || found.iter().any(|step| step.starts_with("attention")), "{found:?}");
    }
}

/// Two layers of attention with one mask, which is too large to be folded and is a value of its own.
#[test]
fn a_mask_that_layers_share_is_recognised_and_not_computed() {
    let (x, s, r) = ("tensor<1x4x400x8xbf16>", "tensor<1x4x400x400xf32>", "tensor<1x4x400xf32>");
    let (index, truth) = ("tensor<400x400xi32>", "tensor<1x4x400x400xi1>");
    let layer = |of: &str, n: usize| {
        format!(
            "%p{n} = stablehlo.dot_general {of}, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ({x}, {x}) -> {s}
    %x{n} = stablehlo.select %see, %p{n}, %none : {truth}, {s}
    %max{n} = stablehlo.reduce(%x{n} init: %least) applies stablehlo.maximum across dimensions = [3] : ({s}, tensor<f32>) -> {r}
    %mm{n} = stablehlo.broadcast_in_dim %max{n}, dims = [0, 1, 2] : ({r}) -> {s}
    %dd{n} = stablehlo.subtract %x{n}, %mm{n} : {s}
    %e{n} = stablehlo.exponential %dd{n} : {s}
    %sum{n} = stablehlo.reduce(%e{n} init: %zero) applies stablehlo.add across dimensions = [3] : ({s}, tensor<f32>) -> {r}
    %ss{n} = stablehlo.broadcast_in_dim %sum{n}, dims = [0, 1, 2] : ({r}) -> {s}
    %w{n} = stablehlo.divide %e{n}, %ss{n} : {s}
    %vw{n} = stablehlo.convert %k : ({x}) -> tensor<1x4x400x8xf32>
    %o{n} = stablehlo.dot_general %w{n}, %vw{n}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : ({s}, tensor<1x4x400x8xf32>) -> tensor<1x4x400x8xf32>
    %l{n} = stablehlo.convert %o{n} : (tensor<1x4x400x8xf32>) -> {x}"
        )
    };
    let text = format!(
        "func.func @main(%q: {x}, %k: {x}) -> {x} {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %none = stablehlo.constant dense<0xFF800000> : {s}
    %i = stablehlo.iota dim = 0 : {index}
    %j = stablehlo.iota dim = 1 : {index}
    %m = stablehlo.compare GE, %i, %j : ({index}, {index}) -> tensor<400x400xi1>
    %see = stablehlo.broadcast_in_dim %m, dims = [2, 3] : (tensor<400x400xi1>) -> {truth}
    {}
    {}
    return %l2 : {x}\n}}",
        layer("%q", 1),
        layer("%l1", 2)
    );
    let compiled = compiled_with(&text, Vendor::Cuda, true);
    let input = || Tensor::zeros(BF16, Shape::new([1, 4, 400, 8]).unwrap()).unwrap();
    let step = "library attention 1x4x400x400, 8 to 8 bf16, causal";
    assert_eq!(steps(&compiled, &[input(), input()]), [step, step]);
}
