//! What depends on constants alone is computed while compiling.

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, RunOptions, Tier};
use warpforge_tensor::{Scalar, Tensor};

use super::{kernels, program, target, tensor};

/// Scores of queries against projected positions, as relative-position encoders have them.
const POSITIONS: &str = "func.func @main(%p: tensor<40x24xf32>, %w: tensor<24x24xf32>, %x: tensor<8x24xf32>) -> tensor<8x40xf32> {
    %0 = stablehlo.tanh %p : tensor<40x24xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<40x24xf32>, tensor<24x24xf32>) -> tensor<40x24xf32>
    %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [1]
      : (tensor<8x24xf32>, tensor<40x24xf32>) -> tensor<8x40xf32>
    func.return %2 : tensor<8x40xf32> }";

#[test]
fn projections_of_constants_are_constants() {
    let (p, w, x) = (tensor(&[40, 24], 1), tensor(&[24, 24], 2), tensor(&[8, 24], 3));
    let names = kernels(POSITIONS, vec![Some(p.clone()), Some(w.clone()), None], std::slice::from_ref(&x));
    assert_eq!(names, ["dot 8x40x24"]);
    // Weights that a run gives are none.
    assert_eq!(kernels(POSITIONS, vec![], &[p, w, x]).len(), 3);
}

#[test]
fn the_observable_tier_and_saved_runs_show_what_was_computed_while_compiling() {
    let weights = vec![Some(tensor(&[40, 24], 1)), Some(tensor(&[24, 24], 2)), None];
    let program = program(POSITIONS, weights.clone());
    let input = [tensor(&[8, 24], 3)];
    let executable = Cpu::default().compile(&program, &target(Tier::Observable, 2)).unwrap();
    let options = RunOptions { clusters: true, ..RunOptions::default() };
    let outcome = executable.run(&input, &options).unwrap();
    let once: Vec<_> =
        outcome.profile.events.iter().filter(|event| event.category == "computed once").collect();
    let greatest = |at: usize| -> f64 {
        let detail = once[at].details.iter().find(|(name, _)| *name == "max").unwrap();
        detail.1.parse().unwrap()
    };
    let values = |tensor: &Tensor| tensor.iter().map(Scalar::to_f64).fold(f64::NEG_INFINITY, f64::max);
    // The tangents of so few constants are constants of the graph.
    assert_eq!(once.len(), 1, "{:?}", outcome.profile);
    assert_eq!(outcome.clusters.len(), 2);
    let [(_, given)] = &outcome.clusters[0].values[..] else { panic!("{:?}", outcome.clusters) };
    assert!((greatest(0) - values(given)).abs() < 1e-6);
    let numbers =
        |at: usize| -> Vec<f64> { weights[at].as_ref().unwrap().iter().map(Scalar::to_f64).collect() };
    let (positions, projection) = (numbers(0), numbers(1));
    for (at, value) in given.iter().enumerate() {
        let terms = (0..24).map(|k| positions[at / 24 * 24 + k].tanh() * projection[k * 24 + at % 24]);
        assert!((value.to_f64() - terms.sum::<f64>()).abs() < 1e-5, "{at}");
    }
}

/// Weight normalisation: the weights of convolutions are computed from two constants. They are packed like others, but for
/// those of a window larger than its output, whose image is read as it lies.
#[test]
fn normalised_weights_of_convolutions_are_constants() {
    for (size, window, groups, channels) in [(9, 3, 1, 16), (9, 3, 16, 16), (34, 32, 1, 6), (12, 11, 4, 4)] {
        let (pad, inner) = (if size == 9 { 1 } else { 0 }, channels / groups);
        let out = size + 2 * pad + 1 - window;
        let (v, image) = (
            format!("tensor<{channels}x{inner}x{window}x{window}xf32>"),
            format!("tensor<2x{channels}x{size}x{size}xf32>"),
        );
        let result = format!("tensor<2x{channels}x{out}x{out}xf32>");
        let text = format!(
            "func.func @main(%v: {v}, %g: tensor<{channels}xf32>, %x: {image}) -> {result} {{
            %zero = stablehlo.constant dense<0.0> : tensor<f32>
            %square = stablehlo.multiply %v, %v : {v}
            %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1, 2, 3]
              : ({v}, tensor<f32>) -> tensor<{channels}xf32>
            %norm = stablehlo.sqrt %sum : tensor<{channels}xf32>
            %scale = stablehlo.divide %g, %norm : tensor<{channels}xf32>
            %wide = stablehlo.broadcast_in_dim %scale, dims = [0] : (tensor<{channels}xf32>) -> {v}
            %w = stablehlo.multiply %v, %wide : {v}
            %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
              window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}}
              {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({image}, {v}) -> {result}
            func.return %y : {result} }}"
        );
        let weights =
            vec![Some(tensor(&[channels, inner, window, window], 1)), Some(tensor(&[channels], 2)), None];
        let names = kernels(&text, weights, &[tensor(&[2, channels, size, size], 3)]);
        let others = names.iter().filter(|name| !name.contains("convolution") && !name.starts_with("copy"));
        assert_eq!(others.count(), 0, "{names:?}");
    }
}
