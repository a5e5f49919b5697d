//! GEMMs and convolutions with epilogues.

use warpforge_codegen::{ComputePrecision, Dialect, Effort, Options, Salt};

use crate::case::{Case, cuda, snapshot};
use crate::host::check;
use crate::tool::{ALL, HOST, tests};

tests! {
    "gemm";
    naive_gemms_support_any_strides: ALL,
    naive_convolutions_support_groups_and_epilogues: ALL,
    f32_gemms_are_tiled: ALL,
    large_f32_gemms_have_wide_tiles: HOST,
    gemms_of_16_bit_types_use_tensor_cores: ALL,
    gemms_of_16_bit_types_on_hopper_use_tma_and_wgmma: ALL,
    integers_with_an_epilogue: ALL,
    convolutions_are_implicit_gemms: ALL,
}

fn gemm(element: &str, m: usize, n: usize, k: usize, transposed: bool) -> String {
    let (a, c) = (format!("tensor<{m}x{k}x{element}>"), format!("tensor<{m}x{n}x{element}>"));
    let (b, by) = if transposed {
        (format!("tensor<{n}x{k}x{element}>"), 1)
    } else {
        (format!("tensor<{k}x{n}x{element}>"), 0)
    };
    format!(
        "func.func @main(%a: {a}, %b: {b}, %bias: tensor<{n}x{element}>) -> {c} {{
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [{by}] : ({a}, {b}) -> {c}
    %w = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<{n}x{element}>) -> {c}
    %s = stablehlo.add %p, %w : {c}
    %t = stablehlo.tanh %s : {c}
    return %t : {c}
}}"
    )
}

const BATCHED: &str = "func.func @main(%a: tensor<2x5x7x6xf32>, %b: tensor<2x5x9x6xf32>) -> tensor<2x5x7x9xf32> {
    %p = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x5x7x6xf32>, tensor<2x5x9x6xf32>) -> tensor<2x5x7x9xf32>
    return %p : tensor<2x5x7x9xf32>
}";

const CONVOLUTION: &str = "func.func @main(%x: tensor<2x9x8x6xf32>, %w: tensor<3x3x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x5x4x4xf32> {
    %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<2x9x8x6xf32>, tensor<3x3x3x4xf32>) -> tensor<2x5x4x4xf32>
    %s = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<4xf32>) -> tensor<2x5x4x4xf32>
    %r = stablehlo.add %c, %s : tensor<2x5x4x4xf32>
    return %r : tensor<2x5x4x4xf32>
}";

fn naive() -> Options {
    Options { effort: Effort::Naive, ..cuda() }
}

fn naive_gemms_support_any_strides() {
    let text = gemm("f32", 5, 12, 33, true);
    assert_eq!(Case::new(&text).clusters.clusters.len(), 1);
    snapshot("dot_naive", &text, &naive());
    check(&text, &naive(), 1e-5);
    check(&gemm("f64", 4, 3, 10, false), &naive(), 1e-12);
    check(&gemm("bf16", 4, 20, 64, false), &naive(), 2e-2);
    check(BATCHED, &naive(), 1e-5);
    check(BATCHED, &Options { salt: Salt::Trace, ..naive() }, 1e-5);
}

fn naive_convolutions_support_groups_and_epilogues() {
    snapshot("conv_naive", CONVOLUTION, &naive());
    check(CONVOLUTION, &naive(), 1e-5);
}

fn f32_gemms_are_tiled() {
    let text = gemm("f32", 128, 128, 32, false);
    snapshot("dot_tiled", &text, &cuda());
    check(&text, &cuda(), 1e-5);
    check(&gemm("f32", 140, 20, 33, true), &cuda(), 1e-5);
    check(&gemm("f32", 7, 132, 36, true), &cuda(), 1e-5);
    check(&gemm("f32", 4, 8, 0, false), &cuda(), 1e-6);
    check(BATCHED, &Options { salt: Salt::Trace, ..cuda() }, 1e-5);
    check(
        &gemm("f32", 20, 40, 24, true),
        &Options { compute_precision: ComputePrecision::Tf32, ..cuda() },
        1e-2,
    );
}

fn large_f32_gemms_have_wide_tiles() {
    for (b, by) in [("66x24x260", 1), ("66x260x24", 2)] {
        let text = format!(
            "func.func @main(%a: tensor<66x5x24xf32>, %b: tensor<{b}xf32>) -> tensor<66x5x260xf32> {{
    %p = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [{by}] : (tensor<66x5x24xf32>, tensor<{b}xf32>) -> tensor<66x5x260xf32>
    return %p : tensor<66x5x260xf32>
}}"
        );
        check(&text, &cuda(), 1e-5);
    }
}

fn gemms_of_16_bit_types_use_tensor_cores() {
    let text = gemm("bf16", 128, 128, 64, true);
    let older = Options::new(Dialect::Cuda, "sm_80");
    snapshot("dot_tensor_core", &text, &older);
    check(&text, &older, 2e-2);
    check(&gemm("f16", 140, 72, 200, false), &older, 2e-2);
    check(&gemm("bf16", 9, 133, 41, true), &cuda(), 2e-2);
}

fn gemms_of_16_bit_types_on_hopper_use_tma_and_wgmma() {
    let text = gemm("bf16", 200, 304, 136, false);
    snapshot("dot_hopper", &text, &cuda());
    check(&text, &cuda(), 2e-2);
    check(&gemm("f16", 130, 72, 328, true), &Options { salt: Salt::Trace, ..cuda() }, 2e-2);
    // Both operands run along their other dimension, several at once.
    let transposed = "func.func @main(%a: tensor<3x72x136xbf16>, %b: tensor<3x72x80xbf16>) -> tensor<3x136x80xbf16> {
    %p = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x72x136xbf16>, tensor<3x72x80xbf16>) -> tensor<3x136x80xbf16>
    return %p : tensor<3x136x80xbf16>
}";
    check(transposed, &cuda(), 2e-2);
    for text in [&text, transposed] {
        let titles = |options: &Options| Case::new(text).emitted(options)[0].kernels[0].title.clone();
        assert!(titles(&cuda()).ends_with("groups of warps"), "{}", titles(&cuda()));
    }
}

fn convolutions_are_implicit_gemms() {
    for channels in [8, 3] {
        let text = format!(
            "func.func @main(%x: tensor<2x9x8x{channels}xf32>, %w: tensor<20x{channels}x3x3xf32>, %b: tensor<20xf32>) -> tensor<2x5x4x20xf32> {{
    %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {{stride = [2, 2], pad = [[1, 1], [1, 1]]}} {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : (tensor<2x9x8x{channels}xf32>, tensor<20x{channels}x3x3xf32>) -> tensor<2x5x4x20xf32>
    %s = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<20xf32>) -> tensor<2x5x4x20xf32>
    %r = stablehlo.add %c, %s : tensor<2x5x4x20xf32>
    return %r : tensor<2x5x4x20xf32>
}}"
        );
        if channels == 8 {
            snapshot("conv_tiled", &text, &cuda());
        }
        check(&text, &cuda(), 1e-5);
    }
}

fn integers_with_an_epilogue() {
    let text = "func.func @main(%x: tensor<3x5x20xi8>, %y: tensor<20x3x7xi8>) -> tensor<3x5x7xi32> {
    %r = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<3x5x20xi8>, tensor<20x3x7xi8>) -> tensor<3x5x7xi32>
    return %r : tensor<3x5x7xi32>
}";
    snapshot("dot_integers", text, &cuda());
    check(text, &cuda(), 0.0);
    // A quantised layer.
    check(
        "func.func @main(%x: tensor<9x20xi8>, %y: tensor<7x20xi8>, %scale: tensor<7xf32>) -> tensor<9x7xf32> {
    %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<9x20xi8>, tensor<7x20xi8>) -> tensor<9x7xi32>
    %f = stablehlo.convert %d : (tensor<9x7xi32>) -> tensor<9x7xf32>
    %s = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<7xf32>) -> tensor<9x7xf32>
    %r = stablehlo.multiply %f, %s : tensor<9x7xf32>
    return %r : tensor<9x7xf32>
}",
        &cuda(),
        1e-6,
    );
}
