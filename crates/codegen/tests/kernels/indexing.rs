//! Dynamic slices, scatters, sorts, and reductions by a function.

use warpforge_codegen::{Options, Salt};

use crate::case::{cuda, snapshot};
use crate::host::check;
use crate::tool::{ALL, HOST, tests};

tests! {
    "indexing";
    dynamic_slice_and_update: ALL,
    argmax_by_variadic_reduce: ALL,
    scatter_with_collisions: ALL,
    large_scatters_are_sorted: ALL,
    many_collisions_are_reduced_by_a_block: HOST,
    overlapping_windows_are_scattered_with_atomics: ALL,
    scatter_of_reshaped_updates: HOST,
    sort_is_stable: ALL,
    long_sorts_merge_blocks: ALL,
    select_and_scatter: ALL,
}

fn both(name: &str, text: &str) {
    snapshot(name, text, &cuda());
    check(text, &cuda(), 1e-6);
}

fn dynamic_slice_and_update() {
    both(
        "dynamic_slice",
        "func.func @main(%x: tensor<7x6xf32>, %i: tensor<i32>, %j: tensor<i64>) -> tensor<3x4xf32> {
    %k = stablehlo.convert %j : (tensor<i64>) -> tensor<i32>
    %r = stablehlo.dynamic_slice %x, %i, %k, sizes = [3, 4] : (tensor<7x6xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    return %r : tensor<3x4xf32>
}",
    );
    both(
        "dynamic_update_slice",
        "func.func @main(%x: tensor<7x6xbf16>, %u: tensor<2x3xbf16>, %i: tensor<i32>) -> tensor<7x6xbf16> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %r = stablehlo.dynamic_update_slice %x, %u, %c, %i : (tensor<7x6xbf16>, tensor<2x3xbf16>, tensor<i32>, tensor<i32>) -> tensor<7x6xbf16>
    return %r : tensor<7x6xbf16>
}",
    );
}

fn argmax_by_variadic_reduce() {
    both(
        "argmax",
        "func.func @main(%x: tensor<5x30xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
    %i = stablehlo.iota dim = 1 : tensor<5x30xi64>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1] : (tensor<5x30xf32>, tensor<5x30xi64>, tensor<f32>, tensor<i64>) -> (tensor<5xf32>, tensor<5xi64>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i64>, %d: tensor<i64>) {
      %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
      %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>
      stablehlo.return %v, %w : tensor<f32>, tensor<i64>
    }
    return %r#0, %r#1 : tensor<5xf32>, tensor<5xi64>
}",
    );
}

fn scatter_with_collisions() {
    for element in ["f32", "bf16", "f64", "i8"] {
        let text = format!(
            "func.func @main(%x: tensor<9x4x{element}>, %i: tensor<6x1xi64>, %u: tensor<6x4x{element}>) -> tensor<9x4x{element}> {{
    %r = \"stablehlo.scatter\"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : (tensor<9x4x{element}>, tensor<6x1xi64>, tensor<6x4x{element}>) -> tensor<9x4x{element}>
    return %r : tensor<9x4x{element}>
}}"
        );
        snapshot(&format!("scatter_{element}"), &text, &cuda());
        check(&text, &cuda(), 1e-2);
    }
}

/// A scatter-add of `windows` rows of `size` elements at masked random indices.
fn embedding(element: &str, rows: usize, windows: usize, size: usize, mask: usize) -> String {
    let (table, updates) =
        (format!("tensor<{rows}x{size}x{element}>"), format!("tensor<{windows}x{size}x{element}>"));
    format!(
        "func.func @main(%x: {table}, %i: tensor<{windows}x1xi64>, %u: {updates}) -> {table} {{
    %m = stablehlo.constant dense<{mask}> : tensor<{windows}x1xi64>
    %j = stablehlo.and %i, %m : tensor<{windows}x1xi64>
    %r = \"stablehlo.scatter\"(%x, %j, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : ({table}, tensor<{windows}x1xi64>, {updates}) -> {table}
    return %r : {table}
}}"
    )
}

fn large_scatters_are_sorted() {
    // Some rows are outside.
    snapshot("scatter_sorted", &embedding("f32", 12, 90, 40, 15), &cuda());
    check(&embedding("f32", 12, 90, 40, 15), &cuda(), 0.0);
    check(&embedding("bf16", 12, 90, 3, 15), &cuda(), 0.0);
    check(&embedding("i8", 5, 90, 1, 7), &Options { salt: Salt::Trace, ..cuda() }, 0.0);
}

fn many_collisions_are_reduced_by_a_block() {
    check(&embedding("f32", 2, 1400, 40, 1), &cuda(), 1e-6);
    check(&embedding("f64", 3, 700, 2, 1), &cuda(), 1e-12);
}

fn overlapping_windows_are_scattered_with_atomics() {
    let text = |windows: usize, element: &str| {
        format!(
            "func.func @main(%x: tensor<4000x{element}>, %i: tensor<{windows}x1xi64>, %u: tensor<{windows}x3x{element}>) -> tensor<4000x{element}> {{
    %r = \"stablehlo.scatter\"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : (tensor<4000x{element}>, tensor<{windows}x1xi64>, tensor<{windows}x3x{element}>) -> tensor<4000x{element}>
    return %r : tensor<4000x{element}>
}}"
        )
    };
    check(&text(40, "i32"), &cuda(), 0.0);
    snapshot("scatter_atomic", &text(5000, "i32"), &cuda());
    for element in ["i32", "i8", "bf16", "f64"] {
        check(&text(5000, element), &cuda(), 0.0);
    }
}

fn scatter_of_reshaped_updates() {
    check(
        "func.func @main(%x: tensor<4x1xf32>, %i: tensor<1xi64>, %v: tensor<f32>) -> tensor<4x1xf32> {
    %u = stablehlo.reshape %v : (tensor<f32>) -> tensor<1xf32>
    %r = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x1xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<4x1xf32>
    return %r : tensor<4x1xf32>
}",
        &cuda(),
        1e-6,
    );
}

/// A sort of keys with their positions.
fn sort(element: &str, dims: &str, axis: usize, direction: &str) -> String {
    let (keys, places) = (format!("tensor<{dims}x{element}>"), format!("tensor<{dims}xi32>"));
    format!(
        "func.func @main(%x: {keys}) -> ({keys}, {places}) {{
    %i = stablehlo.iota dim = {axis} : {places}
    %r:2 = \"stablehlo.sort\"(%x, %i) <{{dimension = {axis} : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>, %c: tensor<i32>, %d: tensor<i32>):
      %p = stablehlo.compare {direction}, %a, %b : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }}) : ({keys}, {places}) -> ({keys}, {places})
    return %r#0, %r#1 : {keys}, {places}
}}"
    )
}

fn sort_is_stable() {
    both("sort", &sort("f32", "3x37", 1, "LT"));
    check(&sort("i8", "7x50x3", 1, "GT"), &cuda(), 0.0);
    check(&sort("bf16", "1000", 0, "LT"), &cuda(), 0.0);
}

fn long_sorts_merge_blocks() {
    both("sort_long", &sort("i16", "2x2500", 1, "LT"));
    check(&sort("f64", "1025x2", 0, "GT"), &Options { salt: Salt::Trace, ..cuda() }, 0.0);
}

fn select_and_scatter() {
    let text = |element: &str| {
        format!(
            "func.func @main(%x: tensor<2x9x8x3x{element}>, %s: tensor<2x5x4x3x{element}>) -> tensor<2x9x8x3x{element}> {{
    %zero = stablehlo.constant dense<0.0> : tensor<{element}>
    %r = \"stablehlo.select_and_scatter\"(%x, %s, %zero) <{{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 1], [1, 0], [0, 0]]> : tensor<4x2xi64>}}> ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %p = stablehlo.compare GE, %a, %b : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }}, {{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %t = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %t : tensor<{element}>
    }}) : (tensor<2x9x8x3x{element}>, tensor<2x5x4x3x{element}>, tensor<{element}>) -> tensor<2x9x8x3x{element}>
    return %r : tensor<2x9x8x3x{element}>
}}"
        )
    };
    both("select_and_scatter", &text("f32"));
    check(&text("bf16"), &cuda(), 0.0);
}
