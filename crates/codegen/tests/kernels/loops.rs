//! Elementwise chains and reductions.

use warpforge_codegen::{Effort, Options, Salt};
use warpforge_fusion::View;
use warpforge_fusion::cluster::{BodyOp, Kind};

use crate::case::{Case, close, cuda, snapshot};
use crate::host::{check, run};
use crate::tool::{ALL, HOST, tests};

tests! {
    "loops";
    an_elementwise_chain_is_vectorised: ALL,
    an_elementwise_chain_may_be_naive_or_instrumented: ALL,
    loops_over_the_same_elements_are_one_kernel: ALL,
    softmax_is_one_kernel: ALL,
    reductions_over_any_dimensions: ALL,
    booleans_are_packed_into_bits: ALL,
    transposed_loads_go_through_shared_memory: ALL,
    transposed_outputs_go_through_shared_memory: HOST,
    elementwise_operations_match_the_reference: HOST,
}

const CHAIN: &str = "func.func @main(%x: tensor<6x64xf32>, %b: tensor<64xf32>) -> tensor<6x64xf32> {
    %w = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xf32>) -> tensor<6x64xf32>
    %s = stablehlo.add %x, %w : tensor<6x64xf32>
    %t = stablehlo.tanh %s : tensor<6x64xf32>
    %r = stablehlo.multiply %t, %x : tensor<6x64xf32>
    return %r : tensor<6x64xf32>
}";

fn softmax(element: &str, rows: usize, columns: usize) -> String {
    let (full, row) = (format!("tensor<{rows}x{columns}x{element}>"), format!("tensor<{rows}x{element}>"));
    let least = match element {
        "f32" => "0xFF800000",
        "f64" => "0xFFF0000000000000",
        "bf16" => "0xFF80",
        _ => "0xFC00",
    };
    format!(
        "func.func @main(%x: {full}) -> {full} {{
    %least = stablehlo.constant dense<{least}> : tensor<{element}>
    %zero = stablehlo.constant dense<0.0> : tensor<{element}>
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
      : ({full}, tensor<{element}>) -> {row}
    %m = stablehlo.broadcast_in_dim %max, dims = [0] : ({row}) -> {full}
    %d = stablehlo.subtract %x, %m : {full}
    %e = stablehlo.exponential %d : {full}
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : ({full}, tensor<{element}>) -> {row}
    %s = stablehlo.broadcast_in_dim %sum, dims = [0] : ({row}) -> {full}
    %p = stablehlo.divide %e, %s : {full}
    return %p : {full}
}}"
    )
}

fn sum(dims: &str, axes: &str, result: &str) -> String {
    format!(
        "func.func @main(%x: tensor<{dims}xf32>) -> tensor<{result}f32> {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %q = stablehlo.multiply %x, %x : tensor<{dims}xf32>
    %s = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [{axes}]
      : (tensor<{dims}xf32>, tensor<f32>) -> tensor<{result}f32>
    return %s : tensor<{result}f32>
}}"
    )
}

fn an_elementwise_chain_is_vectorised() {
    snapshot("chain", CHAIN, &cuda());
    check(CHAIN, &cuda(), 1e-6);
}

fn an_elementwise_chain_may_be_naive_or_instrumented() {
    let naive = Options { effort: Effort::Naive, ..cuda() };
    check(CHAIN, &naive, 1e-6);
    let trace = Options { salt: Salt::Trace, ..cuda() };
    snapshot("chain_traced", CHAIN, &trace);
    let case = Case::new(CHAIN);
    let inputs = case.inputs();
    let Some(ran) = run(&case, &inputs, &trace) else { return };
    let records = Salt::Trace.records(&ran.salt[0]);
    assert_eq!(records.len(), 1);
    let written = records[0].written.unwrap();
    assert_eq!((written.count, written.nan, written.bytes), (384, 0, 384 * 4));
    let expected = case.expected(&inputs);
    let largest = expected[0].iter().map(warpforge_tensor::Scalar::to_f64).fold(f64::MIN, f64::max);
    assert!((written.largest - largest).abs() < 1e-5 && records[0].end > records[0].start);
}

fn softmax_is_one_kernel() {
    snapshot("softmax", &softmax("f32", 40, 128), &cuda());
    for (element, rows, columns, tolerance) in [
        ("f32", 3, 50, 1e-6),
        ("f32", 5, 1, 1e-6),
        ("f64", 2, 300, 1e-14),
        ("bf16", 4, 512, 5e-2),
        ("f16", 3, 96, 1e-3),
        ("f32", 2, 4096, 1e-6),
        ("f32", 2, 20000, 1e-6),
    ] {
        let text = softmax(element, rows, columns);
        assert!(columns == 1 || Case::new(&text).clusters.clusters.len() == 1);
        check(&text, &cuda(), tolerance);
        check(&text, &Options { salt: Salt::Trace, ..cuda() }, tolerance);
    }
}

fn reductions_over_any_dimensions() {
    snapshot("column_sum", &sum("200x64", "0", "64x"), &cuda());
    for (dims, axes, result) in [
        ("200x64", "0", "64x"),
        ("200x64", "1", "200x"),
        ("7x30x5", "0, 2", "30x"),
        ("7x30x50", "1", "7x50x"),
        ("3000", "0", ""),
    ] {
        check(&sum(dims, axes, result), &cuda(), 1e-6);
    }
}

/// One bit per positive element; enough elements that bit indices are not folded into a constant.
fn bits(element: &str) -> String {
    let dims = "1025x16x8";
    let (x, truth, bytes) =
        (format!("tensor<{dims}x{element}>"), format!("tensor<{dims}xi1>"), format!("tensor<{dims}xui8>"));
    format!(
        "func.func @main(%x: {x}) -> tensor<1025x16xui8> {{
    %zero = stablehlo.constant dense<0.0> : {x}
    %clear = stablehlo.constant dense<0> : {bytes}
    %one = stablehlo.constant dense<1> : {bytes}
    %none = stablehlo.constant dense<0> : tensor<ui8>
    %r = stablehlo.sqrt %x : {x}
    %c = stablehlo.compare LE, %r, %zero : ({x}, {x}) -> {truth}
    %i = stablehlo.iota dim = 2 : {bytes}
    %b = stablehlo.shift_left %one, %i : {bytes}
    %s = stablehlo.select %c, %clear, %b : {truth}, {bytes}
    %o = stablehlo.reduce(%s init: %none) applies stablehlo.or across dimensions = [2]
      : ({bytes}, tensor<ui8>) -> tensor<1025x16xui8>
    return %o : tensor<1025x16xui8>
}}"
    )
}

fn booleans_are_packed_into_bits() {
    snapshot("bits", &bits("bf16"), &cuda());
    for element in ["f32", "bf16", "f16"] {
        // Roots of numbers below zero are NaN, which is not zero or less.
        check(&bits(element), &cuda(), 0.0);
        check(&bits(element).replace("sqrt", "negate"), &cuda(), 0.0);
    }
}

const TRANSPOSED: &str =
    "func.func @main(%x: tensor<3x40x33xf32>, %b: tensor<33xf32>) -> tensor<3x33x40xf32> {
    %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<3x40x33xf32>) -> tensor<3x33x40xf32>
    %w = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<33xf32>) -> tensor<3x33x40xf32>
    %s = stablehlo.iota dim = 2 : tensor<3x33x40xf32>
    %u = stablehlo.add %t, %w : tensor<3x33x40xf32>
    %r = stablehlo.multiply %u, %s : tensor<3x33x40xf32>
    return %r : tensor<3x33x40xf32>
}";

/// A parameter, both its moments, and the parameter in bf16; the number of elements is no multiple of a vector's.
fn update(elements: usize) -> String {
    let (wide, narrow) = (format!("tensor<{elements}xf32>"), format!("tensor<{elements}xbf16>"));
    format!(
        "func.func @main(%p: {wide}, %m: {wide}, %v: {wide}, %g: {wide}) -> ({wide}, {wide}, {wide}, {narrow}) {{
    %b = stablehlo.constant dense<0.9> : {wide}
    %m1 = stablehlo.multiply %m, %b : {wide}
    %m2 = stablehlo.add %m1, %g : {wide}
    %g2 = stablehlo.multiply %g, %g : {wide}
    %v1 = stablehlo.multiply %v, %b : {wide}
    %v2 = stablehlo.add %v1, %g2 : {wide}
    %e = stablehlo.exponential %v2 : {wide}
    %s = stablehlo.divide %m2, %e : {wide}
    %p2 = stablehlo.subtract %p, %s : {wide}
    %n = stablehlo.convert %p2 : ({wide}) -> {narrow}
    return %p2, %m2, %v2, %n : {wide}, {wide}, {wide}, {narrow}
}}"
    )
}

fn loops_over_the_same_elements_are_one_kernel() {
    snapshot("joined_loops", &update(1024), &cuda());
    for elements in [1, 33, 1000, 1024] {
        let case = Case::new(&update(elements));
        assert_eq!(case.clusters.clusters.len(), 1, "{elements} elements");
        check(&update(elements), &cuda(), 1e-6);
        check(&update(elements), &Options { effort: Effort::Naive, salt: Salt::Trace, ..cuda() }, 1e-6);
    }
}

fn transposed_loads_go_through_shared_memory() {
    snapshot("transposed", TRANSPOSED, &cuda());
    check(TRANSPOSED, &cuda(), 1e-6);
    check(TRANSPOSED, &Options { salt: Salt::Trace, ..cuda() }, 1e-6);
}

fn transposed_outputs_go_through_shared_memory() {
    let mut case = Case::new(TRANSPOSED);
    // The same loop by the dimensions of what it reads.
    for cluster in &mut case.clusters.clusters {
        let Kind::Loop(body) = &mut cluster.kind else { continue };
        let swap = |view: &mut View| {
            view.dims.swap(1, 2);
            view.strides.swap(1, 2);
        };
        body.dims.swap(1, 2);
        body.loads.iter_mut().for_each(|load| swap(&mut load.view));
        swap(&mut body.output);
        body.steps.iter_mut().for_each(|step| {
            if let BodyOp::Iota(view) = &mut step.op {
                swap(view);
            }
        });
    }
    let kernels: Vec<_> = case.emitted(&cuda()).into_iter().flat_map(|emitted| emitted.kernels).collect();
    assert!(kernels.iter().any(|kernel| kernel.title.ends_with("transposed")), "{}", kernels[0].title);
    let inputs = case.inputs();
    let expected = case.expected(&inputs);
    let Some(ran) = run(&case, &inputs, &cuda()) else { return };
    close(&ran.outputs[0], &expected[0], 1e-6).unwrap();
}

fn elementwise_operations_match_the_reference() {
    let mut steps = String::from(
        "func.func @main(%x: tensor<300xf32>, %y: tensor<300xf32>, %i: tensor<300xi8>, %j: tensor<300xi8>, %u: tensor<300xui32>) -> (",
    );
    let floats = [
        "abs",
        "cbrt",
        "ceil",
        "cosine",
        "exponential",
        "exponential_minus_one",
        "floor",
        "log",
        "log_plus_one",
        "logistic",
        "negate",
        "round_nearest_afz",
        "round_nearest_even",
        "rsqrt",
        "sign",
        "sine",
        "sqrt",
        "tan",
        "tanh",
    ];
    let pairs =
        ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"];
    let whole = [
        "add",
        "and",
        "divide",
        "maximum",
        "minimum",
        "multiply",
        "or",
        "power",
        "remainder",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "subtract",
        "xor",
    ];
    let (f, i) = ("tensor<300xf32>", "tensor<300xi8>");
    let types: Vec<&str> = floats
        .iter()
        .chain(&pairs)
        .map(|_| f)
        .chain(whole.iter().map(|_| i))
        .chain([i, f, "tensor<300xbf16>"])
        .collect();
    steps += &format!("{}) {{\n", types.join(", "));
    for name in floats {
        steps += &format!("  %f_{name} = stablehlo.{name} %x : {f}\n");
    }
    for name in pairs {
        steps += &format!("  %p_{name} = stablehlo.{name} %x, %y : {f}\n");
    }
    for name in whole {
        steps += &format!("  %w_{name} = stablehlo.{name} %i, %j : {i}\n");
    }
    steps +=
        &format!("  %c0 = stablehlo.constant dense<100.0> : {f}\n  %c1 = stablehlo.multiply %x, %c0 : {f}\n");
    steps += &format!(
        "  %c2 = stablehlo.convert %c1 : ({f}) -> {i}\n  %c3 = stablehlo.convert %u : (tensor<300xui32>) -> {f}\n"
    );
    steps += &format!("  %c4 = stablehlo.convert %x : ({f}) -> tensor<300xbf16>\n");
    let names: Vec<String> = floats
        .iter()
        .map(|name| format!("%f_{name}"))
        .chain(pairs.iter().map(|name| format!("%p_{name}")))
        .chain(whole.iter().map(|name| format!("%w_{name}")))
        .chain(["%c2".to_owned(), "%c3".to_owned(), "%c4".to_owned()])
        .collect();
    steps += &format!("  return {} : {}\n}}", names.join(", "), types.join(", "));
    check(&steps, &cuda(), 2e-6);
}
