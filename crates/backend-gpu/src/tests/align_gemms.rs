//! GEMMs whose rows are not aligned, with a fake BLAS.

use super::{compiled_in, input, steps};
use crate::vendor::Vendor;
use warpforge_fusion::Precision;

/// The steps of x[m, k] · w[n, k]ᵀ.
fn names([m, n, k]: [usize; 3], precision: Precision) -> Vec<String> {
    let [x, w, y] = [[m, k], [n, k], [m, n]].map(|[rows, columns]| format!("tensor<{rows}x{columns}xf32>"));
    let text = format!(
        "func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : ({x}, {w}) -> {y}
  func.return %y : {y}\n}}"
    );
    steps(&compiled_in(precision, &text, Vendor::Cuda, true), &[input(&[m, k]), input(&[n, k])])
}

fn has(found: &[String], part: &str) -> bool {
    found.iter().any(|name| name.contains(part))
}

#[test]
fn columns_are_padded_where_tensor_cores_compute() {
    for precision in [Precision::Tf32, Precision::Bf16, Precision::F16] {
        let found = names([512, 1001, 512], precision);
        assert!(has(&found, "512x1008x512"), "{precision:?}: {found:?}");
    }
    let exact = names([512, 1001, 512], Precision::Model);
    assert!(has(&exact, "512x1001x512"), "{exact:?}");
    assert_eq!(exact.len(), 1, "{exact:?}");
}

#[test]
fn sums_are_padded_on_both_sides() {
    let found = names([512, 1024, 509], Precision::Tf32);
    assert!(has(&found, "512x1024x512"), "{found:?}");
    assert_eq!(found.len(), 3, "two pads and a GEMM: {found:?}");
}

#[test]
fn what_costs_more_to_copy_stays_as_it_is() {
    for [m, n, k] in [[4, 1001, 512], [512, 1001, 64]] {
        let found = names([m, n, k], Precision::Tf32);
        assert!(has(&found, &format!("{m}x{n}x{k}")), "{found:?}");
    }
}
