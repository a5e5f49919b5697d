//! Products in the precisions of recipes, and of floats of 8 bits.

use warpforge_fusion::{Precision, Recipe};
use warpforge_runtime::Executable as _;
use warpforge_tensor::{Shape, Tensor};

use super::{BF16, compiled, compiled_in, steps};
use crate::fake;
use crate::vendor::Vendor;

const GROUPS: Recipe = Recipe::Int4WeightOnly { group: 32, hqq: false };

/// `x · wᵀ` of so many rows in bf16, with weights of 256 by 64.
fn linear(rows: usize) -> String {
    let weights: String = (0..256 * 64).map(|at| format!("{:02X}3E", at * 37 % 256)).collect();
    format!(
        "func.func @main(%x: tensor<{rows}x64xbf16>) -> tensor<{rows}x256xbf16> {{
    %w = stablehlo.constant dense<\"0x{weights}\"> : tensor<256x64xbf16>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<{rows}x64xbf16>, tensor<256x64xbf16>) -> tensor<{rows}x256xbf16>
    return %y : tensor<{rows}x256xbf16>\n}}"
    )
}

/// The names of the steps of a layer with so many rows.
fn layer(recipe: Recipe, rows: usize, vendor: Vendor) -> Vec<String> {
    let compiled = compiled_in(Precision::Quantized(recipe), &linear(rows), vendor, false);
    steps(&compiled, &[Tensor::zeros(BF16, Shape::new([rows, 64]).unwrap()).unwrap()])
}

#[test]
fn few_rows_multiply_codes_and_many_rows_widened_weights() {
    for (recipe, bits) in [(Recipe::Int8WeightOnly, 8), (Recipe::Float8WeightOnly, 8), (GROUPS, 4)] {
        for rows in [1, 64] {
            let wanted = format!("gemm {rows}x256x64 with weights of {bits} bits");
            assert_eq!(layer(recipe, rows, Vendor::Cuda), [wanted]);
        }
        // The weights are widened in each run, so that codes alone stay in memory.
        let many = layer(recipe, 65, Vendor::Cuda);
        assert!(many.len() >= 2 && many[0].starts_with("elements of"), "{many:?}");
        assert!(many[1].contains("65x256x64"), "{many:?}");
        let hip = layer(recipe, 1, Vendor::Hip);
        assert!(hip[0].starts_with("elements of"), "{hip:?}");
    }
}

#[test]
fn floats_of_8_bits_are_scaled_by_the_library() {
    let gemm = "library dot 96x256x64 f8E4M3FN * scales";
    for (recipe, modes) in [(Recipe::Float8DynamicRow, 2), (Recipe::Float8DynamicTensor, 0)] {
        fake::calls();
        let names = layer(recipe, 96, Vendor::Cuda);
        assert_eq!(names.last().unwrap(), gemm);
        let calls = fake::calls();
        let set = |attribute: i32| {
            calls.iter().filter(|call| call.starts_with(&format!("matmul attribute {attribute} "))).count()
        };
        assert_eq!((set(17), set(18), set(31) + set(32), set(25)), (1, 1, modes, 1), "{calls:?}");
    }
    // Scales are found and rows rounded by one kernel.
    assert_eq!(layer(Recipe::Float8DynamicRow, 96, Vendor::Cuda).len(), 2);
    // No library of AMD's has this format: wider floats are rounded to it.
    assert!(layer(Recipe::Float8DynamicRow, 96, Vendor::Hip).iter().all(|name| !name.contains("f8")));
}

#[test]
fn scaled_products_of_a_model_are_one_call() {
    let text = |scales: &str, dims: &str| {
        format!(
            "func.func @main(%x: tensor<16x32xf8E4M3FN>, %w: tensor<48x32xf8E4M3FN>, %a: tensor<{scales}xf32>, %b: tensor<48xf32>) -> tensor<16x48xbf16> {{
    %l = stablehlo.convert %x : (tensor<16x32xf8E4M3FN>) -> tensor<16x32xf32>
    %r = stablehlo.convert %w : (tensor<48x32xf8E4M3FN>) -> tensor<48x32xf32>
    %t = stablehlo.transpose %r, dims = [1, 0] : (tensor<48x32xf32>) -> tensor<32x48xf32>
    %d = stablehlo.dot_general %l, %t, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
    %p = stablehlo.broadcast_in_dim %a, dims = {dims} : (tensor<{scales}xf32>) -> tensor<16x48xf32>
    %q = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<48xf32>) -> tensor<16x48xf32>
    %m = stablehlo.multiply %d, %p : tensor<16x48xf32>
    %n = stablehlo.multiply %m, %q : tensor<16x48xf32>
    %y = stablehlo.convert %n : (tensor<16x48xf32>) -> tensor<16x48xbf16>
    return %y : tensor<16x48xbf16>\n}}"
        )
    };
    let calls = |text: &str| {
        fake::calls();
        let compiled = compiled(text, Vendor::Cuda);
        assert!(compiled.fallbacks().is_empty());
        fake::calls()
    };
    let has = |calls: &[String], attribute: i32| {
        calls.iter().any(|call| call.starts_with(&format!("matmul attribute {attribute} ")))
    };
    let rows = calls(&text("16", "[0]"));
    // The faster sums are the recipes' alone.
    assert!(has(&rows, 17) && has(&rows, 31) && !has(&rows, 25), "{rows:?}");
    // Both scales are of columns: that is no scale of an operand each.
    let columns = calls(&text("48", "[1]"));
    assert!(!has(&columns, 17), "{columns:?}");
}
