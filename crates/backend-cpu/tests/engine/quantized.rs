//! Matrix products with quantized weights: exactly those of the dequantized weights, and as near to the model as their bits allow.

use warpforge_backend_cpu::Cpu;
use warpforge_fusion::Recipe;
use warpforge_fusion::precision::quantize::WeightMatrix;
use warpforge_runtime::{Backend, Precision, RunOptions, Target, Tier};
use warpforge_tensor::{FloatType, Scalar, Tensor};

use super::{program, target, tensor};

/// Two products as models have them: weights by output, a bias and a function between; and weights by input with two dimensions of columns.
fn text(m: usize, k: usize, h: usize) -> String {
    format!(
        "func.func @main(%v: tensor<{h}x{k}xf32>, %b: tensor<{h}xf32>, %w: tensor<{h}x2x8xf32>, %x: tensor<{m}x{k}xf32>)
            -> tensor<{m}x2x8xf32> {{
        %d = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1]
          : (tensor<{m}x{k}xf32>, tensor<{h}x{k}xf32>) -> tensor<{m}x{h}xf32>
        %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<{h}xf32>) -> tensor<{m}x{h}xf32>
        %s = stablehlo.add %d, %c : tensor<{m}x{h}xf32>
        %t = stablehlo.tanh %s : tensor<{m}x{h}xf32>
        %r = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0]
          : (tensor<{m}x{h}xf32>, tensor<{h}x2x8xf32>) -> tensor<{m}x2x8xf32>
        func.return %r : tensor<{m}x2x8xf32> }}"
    )
}

fn weights(k: usize, h: usize) -> Vec<Option<Tensor>> {
    vec![Some(tensor(&[h, k], 1)), Some(tensor(&[h], 2)), Some(tensor(&[h, 2, 8], 3)), None]
}

fn run(
    text: &str,
    weights: Vec<Option<Tensor>>,
    x: &Tensor,
    precision: Precision,
) -> (Vec<f64>, Vec<String>) {
    let program = program(text, weights);
    let target = Target { precision, ..target(Tier::Production, 2) };
    let executable = Cpu::default().compile(&program, &target).unwrap();
    assert!(executable.fallbacks().is_empty(), "{:?}", executable.fallbacks());
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let outcome = executable.run(std::slice::from_ref(x), &options).unwrap();
    let names = outcome.profile.events.iter().map(|event| event.name.clone()).collect();
    (outcome.outputs[0].iter().map(Scalar::to_f64).collect(), names)
}

fn sqnr(exact: &[f64], ours: &[f64]) -> f64 {
    let signal: f64 = exact.iter().map(|value| value * value).sum();
    let noise: f64 = exact.iter().zip(ours).map(|(a, b)| (a - b) * (a - b)).sum();
    10.0 * (signal / noise).log10()
}

/// Weights as a recipe that quantizes nothing else stores them, in f32 again. `values` has a row for each output.
fn dequantized(recipe: Recipe, values: &[f32], k: usize) -> Vec<f32> {
    let matrix = WeightMatrix { values, k };
    match recipe {
        Recipe::Int8WeightOnly => {
            let weights = matrix.int8();
            let of = |(at, &code): (usize, &u8)| f32::from(code.cast_signed()) * weights.scales[at / k];
            weights.codes.iter().enumerate().map(of).collect()
        }
        Recipe::Float8WeightOnly => {
            let (weights, format) = (matrix.float8(false), FloatType::F8E4M3Fn.format());
            let of = |(at, &code): (usize, &u8)| format.decode(code.into()) as f32 * weights.scales[at / k];
            weights.codes.iter().enumerate().map(of).collect()
        }
        Recipe::Int4WeightOnly { group, hqq } => {
            let (weights, group) = (matrix.int4(group as usize, hqq), group as usize);
            let of = |(at, &code): (usize, &i8)| {
                f32::from(code) * weights.scales[at / group].to_f32() + weights.offsets[at / group].to_f32()
            };
            weights.codes.iter().enumerate().map(of).collect()
        }
        other => panic!("{other} quantizes inputs too"),
    }
}

fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

#[test]
fn recipes_of_weights_compute_what_the_dequantized_weights_do() {
    for (m, k, h) in [(1, 128, 64), (7, 136, 72), (40, 256, 128)] {
        let (text, x) = (text(m, k, h), tensor(&[m, k], 9));
        for recipe in [
            Recipe::Int8WeightOnly,
            Recipe::Int4WeightOnly { group: 8, hqq: false },
            Recipe::Int4WeightOnly { group: 8, hqq: true },
            Recipe::Float8WeightOnly,
        ] {
            let mut stored = weights(k, h);
            let by_output = stored[0].as_mut().unwrap().as_slice_mut::<f32>().unwrap();
            let values = dequantized(recipe, by_output, k);
            by_output.copy_from_slice(&values);
            let by_input = stored[2].as_mut().unwrap().as_slice_mut::<f32>().unwrap();
            let values = transposed(&dequantized(recipe, &transposed(by_input, 16), h), h);
            by_input.copy_from_slice(&values);
            let (expected, _) = run(&text, stored, &x, Precision::Model);
            let (ours, _) = run(&text, weights(k, h), &x, Precision::Quantized(recipe));
            let found = sqnr(&expected, &ours);
            assert!(found > 100.0, "{recipe} {m}x{k}x{h}: {found} dB");
        }
    }
}

#[test]
fn every_recipe_reaches_the_accuracy_of_its_bits() {
    for (m, k, h) in [(1, 128, 64), (7, 136, 72), (40, 256, 128)] {
        let (text, x) = (text(m, k, h), tensor(&[m, k], 9));
        let (exact, _) = run(&text, weights(k, h), &x, Precision::Model);
        for (recipe, least) in [
            (Recipe::Int8WeightOnly, 33.0),
            (Recipe::Int8Dynamic, 27.0),
            (Recipe::Int4WeightOnly { group: 8, hqq: false }, 13.0),
            (Recipe::Int4WeightOnly { group: 8, hqq: true }, 12.0),
            (Recipe::Float8WeightOnly, 18.0),
            (Recipe::Float8DynamicTensor, 15.0),
            (Recipe::Float8DynamicRow, 15.0),
        ] {
            let (ours, names) = run(&text, weights(k, h), &x, Precision::Quantized(recipe));
            let found = sqnr(&exact, &ours);
            assert!(found > least && found < 70.0, "{recipe} {m}x{k}x{h}: {found} dB");
            let products = names.iter().filter(|name| name.starts_with("dot")).count();
            assert_eq!(products, 2, "{recipe}: {names:?}");
        }
    }
}

#[test]
fn a_model_without_constant_weights_is_refused() {
    let text = "func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
        %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
        func.return %r : tensor<4x4xf32> }";
    let target =
        Target { precision: Precision::Quantized(Recipe::Int8WeightOnly), ..target(Tier::Production, 1) };
    let error = Cpu::default().compile(&program(text, vec![None, None]), &target).err().unwrap();
    assert!(error.to_string().contains("no matrix product has constant weights"), "{error}");
}

#[test]
fn weights_without_a_scale_and_groups_that_do_not_fit_are_refused() {
    let text = text(3, 20, 16);
    let compile = |weights: Vec<Option<Tensor>>, recipe: Recipe| {
        let target = Target { precision: Precision::Quantized(recipe), ..target(Tier::Production, 1) };
        Cpu::default().compile(&program(&text, weights), &target).err().map(|error| error.to_string())
    };
    let error = compile(weights(20, 16), Recipe::Int4WeightOnly { group: 16, hqq: false }).unwrap();
    assert!(
        error.contains("group size 16") && error.contains("20x16") && !error.contains("16x16"),
        "{error}"
    );
    let mut broken = weights(20, 16);
    broken[0].as_mut().unwrap().as_slice_mut::<f32>().unwrap()[5] = f32::NAN;
    let error = compile(broken, Recipe::Int8WeightOnly).unwrap();
    assert!(error.contains("NaN"), "{error}");
}

/// A row that is not a number makes its own results none, and no others.
#[test]
fn a_row_with_nan_stays_one() {
    let text = text(2, 32, 16);
    let mut x = tensor(&[2, 32], 9);
    x.as_slice_mut::<f32>().unwrap()[3] = f32::NAN;
    let (ours, _) = run(&text, weights(32, 16), &x, Precision::Quantized(Recipe::Int8Dynamic));
    assert!(
        ours[..16].iter().all(|value| value.is_nan()) && ours[16..].iter().all(|value| value.is_finite()),
        "{ours:?}"
    );
}
