//! Loops with reductions.

use warpforge_codegen::{Effort, Options, Salt};
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use crate::case::{Case, cuda, snapshot};
use crate::host::{check, run};
use crate::tool::{ALL, COMPILERS, HOST, NONE, tests};

tests! {
    "rows";
    row_invariant_weights_are_loaded_at_first_use: COMPILERS,
    rows_of_any_count_and_length: HOST,
    row_uniform_divisions_are_correctly_rounded: HOST,
    only_narrow_quotients_may_be_approximate: NONE,
    numbers_of_rows_are_given_beside_their_elements: ALL,
}

/// A layer norm with weights, computed in f32.
fn norm(element: &str, rows: usize, columns: usize) -> String {
    let (full, row) = (format!("tensor<{rows}x{columns}xf32>"), format!("tensor<{rows}xf32>"));
    let (given, weight) =
        (format!("tensor<{rows}x{columns}x{element}>"), format!("tensor<{columns}x{element}>"));
    format!(
        "func.func @main(%x: {given}, %w: {weight}) -> {given} {{
    %v = stablehlo.convert %x : ({given}) -> {full}
    %u = stablehlo.convert %w : ({weight}) -> tensor<{columns}xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %count = stablehlo.constant dense<{columns}.0> : {row}
    %sum = stablehlo.reduce(%v init: %zero) applies stablehlo.add across dimensions = [1]
      : ({full}, tensor<f32>) -> {row}
    %mean = stablehlo.divide %sum, %count : {row}
    %m = stablehlo.broadcast_in_dim %mean, dims = [0] : ({row}) -> {full}
    %d = stablehlo.subtract %v, %m : {full}
    %q = stablehlo.multiply %d, %d : {full}
    %squares = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1]
      : ({full}, tensor<f32>) -> {row}
    %variance = stablehlo.divide %squares, %count : {row}
    %deviation = stablehlo.sqrt %variance : {row}
    %s = stablehlo.broadcast_in_dim %deviation, dims = [0] : ({row}) -> {full}
    %n = stablehlo.divide %d, %s : {full}
    %g = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<{columns}xf32>) -> {full}
    %r = stablehlo.multiply %n, %g : {full}
    %o = stablehlo.convert %r : ({full}) -> {given}
    return %o : {given}
}}"
    )
}

/// Rows rounded to 8 bits, and their scales.
fn rounded_rows(rows: usize, columns: usize) -> String {
    let (full, row) = (format!("tensor<{rows}x{columns}xf32>"), format!("tensor<{rows}xf32>"));
    let (given, codes) = (format!("tensor<{rows}x{columns}xbf16>"), format!("tensor<{rows}x{columns}xi8>"));
    format!(
        "func.func @main(%x: {given}) -> ({codes}, {row}) {{
    %v = stablehlo.convert %x : ({given}) -> {full}
    %a = stablehlo.abs %v : {full}
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %most = stablehlo.reduce(%a init: %none) applies stablehlo.maximum across dimensions = [1]
      : ({full}, tensor<f32>) -> {row}
    %part = stablehlo.constant dense<0.0078125> : {row}
    %scale = stablehlo.multiply %most, %part : {row}
    %s = stablehlo.broadcast_in_dim %scale, dims = [0] : ({row}) -> {full}
    %q = stablehlo.divide %v, %s : {full}
    %r = stablehlo.round_nearest_even %q : {full}
    %c = stablehlo.convert %r : ({full}) -> {codes}
    return %c, %scale : {codes}, {row}
}}"
    )
}

fn numbers_of_rows_are_given_beside_their_elements() {
    let text = rounded_rows(37, 200);
    snapshot("rounded_rows", &text, &cuda());
    for (rows, columns) in [(37, 200), (130, 64), (2, 4100), (1, 30000)] {
        let text = rounded_rows(rows, columns);
        let kernels = Case::new(&text).emitted(&cuda()).iter().map(|one| one.kernels.len()).sum::<usize>();
        // One block does not take part of a long row alone.
        assert_eq!(kernels, if columns > 1 << 14 { 2 } else { 1 }, "{rows}x{columns}");
        check(&text, &cuda(), 0.0);
        check(&text, &Options { salt: Salt::Trace, ..cuda() }, 0.0);
    }
}

fn row_invariant_weights_are_loaded_at_first_use() {
    let text = norm("bf16", 37, 200);
    snapshot("norm", &text, &cuda());
    let kernels: Vec<_> = Case::new(&text).emitted(&cuda()).into_iter().flat_map(|one| one.kernels).collect();
    assert_eq!(kernels.len(), 1);
    let source = &kernels[0].source;
    assert!(source.find("q1 = ") > source.rfind("wf_group_reduce"), "{source}");
}

fn rows_of_any_count_and_length() {
    for (rows, columns) in [(1, 1), (5, 8), (37, 200), (3, 1023), (130, 64), (2, 4100), (1, 30000)] {
        check(&norm("f32", rows, columns), &cuda(), 2e-6);
        check(&norm("bf16", rows, columns), &cuda(), 1e-2);
    }
}

fn row_uniform_divisions_are_correctly_rounded() {
    let text = "func.func @main(%x: tensor<9x8xf32>, %y: tensor<9x8xf32>) -> tensor<9x8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<9x8xf32>, tensor<f32>) -> tensor<9xf32>
    %s = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<9xf32>) -> tensor<9x8xf32>
    %r = stablehlo.divide %x, %s : tensor<9x8xf32>
    return %r : tensor<9x8xf32>
}";
    let case = Case::new(text);
    let source = &case.emitted(&cuda())[0].kernels[0].source;
    assert!(source.contains("wf_divisor"), "{source}");
    let dividends = [0.0, -0.0, 49.0, -3.5, 1e30, 7e-30, f64::INFINITY, f64::NAN];
    let divisors = [1.0, -2.0, 49.0, 1e-39, 2.5e38, 3e-38, 0.0, f64::NEG_INFINITY, f64::NAN];
    let tensor = |values: Vec<f64>| {
        let shape = Shape::new([9, 8]).unwrap();
        Tensor::from_scalars(ElementType::Float(FloatType::F32), shape, values.into_iter().map(Scalar::Float))
            .unwrap()
    };
    let first = |&by: &f64| [by, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let inputs = [tensor(dividends.repeat(9)), tensor(divisors.iter().flat_map(first).collect())];
    let expected = case.expected(&inputs);
    let Some(ran) = run(&case, &inputs, &cuda()) else { return };
    for (at, (ours, theirs)) in ran.outputs[0].iter().zip(expected[0].iter()).enumerate() {
        let (ours, theirs) = (ours.to_f64(), theirs.to_f64());
        let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
        // Of the smallest numbers there are few.
        let few = theirs.abs() < 2e-38 && theirs != 0.0 && (ours - theirs).abs() < 3e-45;
        let (a, by) = (dividends[at % 8], divisors[at / 8]);
        assert!(same || few, "{a} / {by} is {ours}, not {theirs}");
    }
}

fn only_narrow_quotients_may_be_approximate() {
    for (element, near) in [("f32", false), ("bf16", true), ("f16", true), ("f64", false), ("i32", false)] {
        let text = format!(
            "func.func @main(%x: tensor<9x8xf32>) -> tensor<9x8x{element}> {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<9x8xf32>, tensor<f32>) -> tensor<9xf32>
    %s = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<9xf32>) -> tensor<9x8xf32>
    %q = stablehlo.divide %x, %s : tensor<9x8xf32>
    %r = stablehlo.convert %q : (tensor<9x8xf32>) -> tensor<9x8x{element}>
    return %r : tensor<9x8x{element}>
}}"
        );
        let source = &Case::new(&text).emitted(&cuda())[0].kernels[0].source;
        assert!(source.contains(if near { "wf_div_near(" } else { "wf_div(" }), "{element}: {source}");
        let naive = Options { effort: Effort::Naive, ..cuda() };
        let source = &Case::new(&text).emitted(&naive)[0].kernels[0].source;
        assert!(!source.contains("wf_divisor"), "{element}: {source}");
    }
}
