//! Products in the precisions of recipes, and of floats of 8 bits.

use std::sync::Arc;

use warpforge_diag::Source;
use warpforge_fusion::{Precision, Recipe};
use warpforge_runtime::{Executable as _, Program, Tier, Weights};
use warpforge_snakeburger::text;
use warpforge_tensor::{Shape, Tensor};

use super::{BF16, compiled, compiled_in, steps};
use crate::compile::{CompileRequest, build};
use crate::fake;
use crate::vendor::Vendor;

const GROUPS: Recipe = Recipe::Int4WeightOnly { group: 32, hqq: false };

/// `x · wᵀ` in bf16.
fn linear([m, n, k]: [usize; 3]) -> String {
    let weights: String = (0..n * k).map(|at| format!("{:02X}3E", at * 37 % 256)).collect();
    format!(
        "func.func @main(%x: tensor<{m}x{k}xbf16>) -> tensor<{m}x{n}xbf16> {{
    %w = stablehlo.constant dense<\"0x{weights}\"> : tensor<{n}x{k}xbf16>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<{m}x{k}xbf16>, tensor<{n}x{k}xbf16>) -> tensor<{m}x{n}xbf16>
    return %y : tensor<{m}x{n}xbf16>\n}}"
    )
}

/// The names of the steps of a layer with so many rows.
fn layer(recipe: Recipe, rows: usize, vendor: Vendor) -> Vec<String> {
    layer_of([rows, 256, 64], recipe, vendor)
}

fn layer_of([m, n, k]: [usize; 3], recipe: Recipe, vendor: Vendor) -> Vec<String> {
    let compiled = compiled_in(Precision::Quantized(recipe), &linear([m, n, k]), vendor, false);
    steps(&compiled, &[Tensor::zeros(BF16, Shape::new([m, k]).unwrap()).unwrap()])
}

#[test]
fn few_rows_multiply_codes_and_many_rows_widened_weights() {
    for (recipe, bits) in [(Recipe::Int8WeightOnly, 8), (Recipe::Float8WeightOnly, 8), (GROUPS, 4)] {
        for rows in [1, 32] {
            let wanted = format!("gemm {rows}x256x64 with weights of {bits} bits");
            assert_eq!(layer(recipe, rows, Vendor::Cuda), [wanted]);
        }
        // The weights are widened in each run, so that codes alone stay in memory.
        let many = layer(recipe, 33, Vendor::Cuda);
        assert!(many.len() >= 2 && many[0].starts_with("elements of"), "{many:?}");
        assert!(many[1].contains("33x256x64"), "{many:?}");
        let hip = layer(recipe, 1, Vendor::Hip);
        assert!(hip[0].starts_with("elements of"), "{hip:?}");
    }
}

#[test]
fn every_recipe_compiles_in_every_tier() {
    for tier in Tier::ALL {
        for recipe in
            [GROUPS].into_iter().chain(Recipe::ALL.into_iter().filter(|recipe| recipe.group().is_none()))
        {
            let precision = Precision::Quantized(recipe);
            for rows in [1, 33] {
                let module =
                    text::parse(&Source::new("m", linear([rows, 256, 64])), &text::Options::default())
                        .unwrap();
                let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
                let gpu = fake::gpu(Vendor::Cuda).unwrap();
                let blas = Some(fake::blas(&gpu).unwrap());
                let request = CompileRequest { precision, blas, ..fake::request(&program, tier) };
                let made = build(&gpu, &request);
                assert!(made.is_ok(), "{tier:?} {recipe}");
            }
        }
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
fn operands_of_8_bits_are_padded_for_the_library() {
    let has = |names: &[String], part: &str| names.iter().any(|name| name.contains(part));
    for (recipe, wanted) in [
        (Recipe::Float8DynamicRow, "library dot 96x256x512 f8E4M3FN"),
        (Recipe::Int8Dynamic, "library dot 96x256x512 i8"),
        (Recipe::Int8WeightOnly, "library dot 96x256x504 bf16"),
    ] {
        let names = layer_of([96, 250, 504], recipe, Vendor::Cuda);
        assert!(has(&names, wanted), "{recipe}: {names:?}");
    }
    // Copying costs more than a product of so few rows: what is rounded to 8 bits is multiplied in a type that needs no padding.
    let few = layer_of([8, 250, 504], Recipe::Float8DynamicRow, Vendor::Cuda);
    assert!(!has(&few, "f8E4M3FN * scales") && has(&few, "8x250x504"), "{few:?}");
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
    let model = text("16", "[0]");
    let rows = calls(&model);
    assert!(has(&rows, 17) && has(&rows, 31) && !has(&rows, 25), "{rows:?}");
    let algorithm = "contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f8E4M3FN, rhs_precision_type = f8E4M3FN, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = true>";
    let fast = calls(&model.replace("contracting_dims = [1] x [0]", algorithm));
    assert!(has(&fast, 17) && has(&fast, 25), "{fast:?}");
    // Both scales are of columns: that is no scale of an operand each.
    let columns = calls(&text("48", "[1]"));
    assert!(!has(&columns, 17), "{columns:?}");
}
