//! Products of few rows with quantized weights, and floats of 8 bits.

use warpforge_codegen::{Dialect, Options, Salt, emit};

use crate::case::{Case, cuda};
use crate::host::{check, check_case};
use crate::nvrtc;
use crate::tool::{HOST, HOST_AND_CUDA, NONE, tests};

tests! {
    "weights";
    codes_of_8_bits_are_multiplied_as_they_lie: HOST_AND_CUDA,
    groups_of_4_bits_are_multiplied_as_they_lie: HOST_AND_CUDA,
    partial_sums_lie_in_the_shared_memory_that_is_asked_for: NONE,
    other_products_with_codes_are_refused: NONE,
    floats_of_8_bits_round_as_the_reference_does: HOST,
}

/// `x · codes`, then a scale for each column.
fn rows(element: &str, codes: &str, [m, n, k]: [usize; 3]) -> String {
    format!(
        "func.func @main(%x: tensor<{m}x{k}x{element}>, %c: tensor<{n}x{k}x{codes}>, %s: tensor<{n}xf32>) -> tensor<{m}x{n}x{element}> {{
    %l = stablehlo.convert %x : (tensor<{m}x{k}x{element}>) -> tensor<{m}x{k}xf32>
    %w = stablehlo.convert %c : (tensor<{n}x{k}x{codes}>) -> tensor<{n}x{k}xf32>
    %d = stablehlo.dot_general %l, %w, contracting_dims = [1] x [1] : (tensor<{m}x{k}xf32>, tensor<{n}x{k}xf32>) -> tensor<{m}x{n}xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<{n}xf32>) -> tensor<{m}x{n}xf32>
    %p = stablehlo.multiply %d, %b : tensor<{m}x{n}xf32>
    %r = stablehlo.convert %p : (tensor<{m}x{n}xf32>) -> tensor<{m}x{n}x{element}>
    return %r : tensor<{m}x{n}x{element}>
}}"
    )
}

/// `x · (codes · scale + offset)`, by groups.
fn groups(element: &str, [m, n, k]: [usize; 3], size: usize) -> String {
    let count = k / size;
    format!(
        "func.func @main(%x: tensor<{m}x{k}x{element}>, %c: tensor<{n}x{count}x{size}xi4>, %s: tensor<{n}x{count}xbf16>, %o: tensor<{n}x{count}xbf16>) -> tensor<{m}x{n}x{element}> {{
    %l = stablehlo.convert %x : (tensor<{m}x{k}x{element}>) -> tensor<{m}x{k}xf32>
    %w = stablehlo.convert %c : (tensor<{n}x{count}x{size}xi4>) -> tensor<{n}x{count}x{size}xf32>
    %f = stablehlo.convert %s : (tensor<{n}x{count}xbf16>) -> tensor<{n}x{count}xf32>
    %g = stablehlo.broadcast_in_dim %f, dims = [0, 1] : (tensor<{n}x{count}xf32>) -> tensor<{n}x{count}x{size}xf32>
    %p = stablehlo.multiply %w, %g : tensor<{n}x{count}x{size}xf32>
    %h = stablehlo.convert %o : (tensor<{n}x{count}xbf16>) -> tensor<{n}x{count}xf32>
    %i = stablehlo.broadcast_in_dim %h, dims = [0, 1] : (tensor<{n}x{count}xf32>) -> tensor<{n}x{count}x{size}xf32>
    %a = stablehlo.add %p, %i : tensor<{n}x{count}x{size}xf32>
    %v = stablehlo.reshape %a : (tensor<{n}x{count}x{size}xf32>) -> tensor<{n}x{k}xf32>
    %d = stablehlo.dot_general %l, %v, contracting_dims = [1] x [1] : (tensor<{m}x{k}xf32>, tensor<{n}x{k}xf32>) -> tensor<{m}x{n}xf32>
    %t = stablehlo.tanh %d : tensor<{m}x{n}xf32>
    %r = stablehlo.convert %t : (tensor<{m}x{n}xf32>) -> tensor<{m}x{n}x{element}>
    return %r : tensor<{m}x{n}x{element}>
}}"
    )
}

/// One kernel, which reads codes and computes what the reference does.
fn one_kernel(text: &str, options: &Options) {
    let case = Case::with_weights(text);
    let emitted = case.emitted(options);
    let kernels: Vec<_> = emitted.iter().flat_map(|emitted| &emitted.kernels).collect();
    assert!(kernels.len() == 1 && kernels[0].title.contains("with weights of"), "{text}");
    nvrtc::compiles(kernels);
    check_case(&case, options, 8e-3);
}

fn codes_of_8_bits_are_multiplied_as_they_lie() {
    // Smaller weights are folded while a graph is made.
    for (element, codes, sizes) in [
        ("bf16", "i8", [1, 1040, 192]),
        ("f16", "i8", [5, 1840, 72]),
        ("bf16", "f8E4M3FN", [17, 984, 136]),
        ("f16", "f8E4M3FN", [3, 2065, 64]),
    ] {
        one_kernel(&rows(element, codes, sizes), &cuda());
    }
    // Enough columns for tiles of 16.
    one_kernel(&rows("bf16", "i8", [2, 4100, 64]), &Options { salt: Salt::Trace, ..cuda() });
}

/// Devices give a block 99 KiB at least, and no more than 48 KiB of what kernels declare themselves and what they ask for together, unless they
/// are told of the latter.
fn partial_sums_lie_in_the_shared_memory_that_is_asked_for() {
    for (rows, columns) in [(32, 4096), (25, 6000), (32, 1000), (17, 8192), (1, 8192)] {
        let case = Case::with_weights(&groups("bf16", [rows, columns, 2048], 128));
        let emitted = case.emitted(&cuda());
        let kernel = &emitted[0].kernels[0];
        let (_, body) = kernel.source.split_once("extern \"C\"").unwrap();
        assert!(!body.contains("WF_SHARED "), "{rows}x{columns}: {body}");
    }
}

fn groups_of_4_bits_are_multiplied_as_they_lie() {
    for (element, sizes, size) in [
        ("bf16", [1, 24, 512], 128),
        ("f16", [9, 20, 192], 64),
        ("bf16", [32, 17, 288], 96),
        ("bf16", [4, 4104, 256], 256),
        // Rows that do not lie in shared memory.
        ("bf16", [32, 12, 1280], 128),
        // Blocks with more than one tile, of one turn and of several.
        ("bf16", [1, 8720, 128], 32),
        ("f16", [3, 8720, 640], 128),
    ] {
        one_kernel(&groups(element, sizes, size), &cuda());
    }
}

fn other_products_with_codes_are_refused() {
    let refused = |text: &str, options: &Options| {
        let case = Case::with_weights(text);
        emit(&case.graph, &case.clusters.clusters[0], options).unwrap_err().what
    };
    assert!(refused(&rows("bf16", "i8", [33, 2056, 64]), &cuda()).contains("many rows"));
    assert!(refused(&rows("bf16", "i8", [2, 2000, 68]), &cuda()).contains("not aligned"));
    assert!(refused(&rows("f32", "i8", [2, 2056, 64]), &cuda()).contains("tensor cores"));
    assert!(refused(&groups("bf16", [2, 2056, 64], 16), &cuda()).contains("groups"));
    let turing = Options::new(Dialect::Cuda, "sm_75");
    assert!(refused(&rows("bf16", "i8", [2, 2056, 64]), &turing).contains("tensor cores"));
    let hip = Options::new(Dialect::Hip, "gfx942");
    assert!(refused(&rows("bf16", "i8", [2, 2056, 64]), &hip).contains("tensor cores"));
}

fn floats_of_8_bits_round_as_the_reference_does() {
    for element in ["f8E4M3FN", "f8E5M2"] {
        // From far below the least number to above the largest.
        let text = format!(
            "func.func @main(%x: tensor<4096xf32>, %y: tensor<4096x{element}>) -> (tensor<4096xf32>, tensor<4096x{element}>) {{
    %a = stablehlo.multiply %x, %x : tensor<4096xf32>
    %b = stablehlo.multiply %a, %a : tensor<4096xf32>
    %c = stablehlo.multiply %b, %b : tensor<4096xf32>
    %d = stablehlo.multiply %c, %c : tensor<4096xf32>
    %e = stablehlo.multiply %d, %x : tensor<4096xf32>
    %q = stablehlo.convert %e : (tensor<4096xf32>) -> tensor<4096x{element}>
    %w = stablehlo.convert %q : (tensor<4096x{element}>) -> tensor<4096xf32>
    %t = stablehlo.add %y, %q : tensor<4096x{element}>
    return %w, %t : tensor<4096xf32>, tensor<4096x{element}>
}}"
        );
        check(&text, &cuda(), 0.0);
    }
}
