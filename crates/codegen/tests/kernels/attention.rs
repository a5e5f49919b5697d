//! Attention in one kernel and in three.

use warpforge_codegen::{ComputePrecision, Dialect, Effort, Options, Salt, emit};

use crate::case::{Case, cuda, snapshot};
use crate::host::check;
use crate::softmax::softmax;
use crate::tool::{ALL, HOST, NONE, tests};

tests! {
    "attention";
    attention_of_16_bit_types_is_one_kernel: ALL,
    attention_of_f32_in_tf32_is_one_kernel: ALL,
    fully_masked_key_tiles_are_skipped: HOST,
    key_tiles_outside_a_window_are_skipped: HOST,
    unsupported_attention_is_refused: NONE,
}

/// Softmax of scaled scores, masked by `mask` (a tensor of the scores' shape), times values.
fn attention(element: &str, [b, h, m, n, d]: [usize; 5], masked: bool) -> String {
    let q = format!("tensor<{b}x{h}x{m}x{d}x{element}>");
    let k = format!("tensor<{b}x{h}x{n}x{d}x{element}>");
    let (s, r) = (format!("tensor<{b}x{h}x{m}x{n}xf32>"), format!("tensor<{b}x{h}x{m}xf32>"));
    let (o, wide) =
        (format!("tensor<{b}x{h}x{m}x{d}x{element}>"), format!("tensor<{b}x{h}x{m}x{n}x{element}>"));
    let (argument, mask) = if masked {
        (
            format!(", %mask: tensor<{n}xf32>"),
            format!(
                "%wide = stablehlo.broadcast_in_dim %mask, dims = [3] : (tensor<{n}xf32>) -> {s}\n    %x = stablehlo.add %y, %wide : {s}"
            ),
        )
    } else {
        (String::new(), format!("%x = stablehlo.add %y, %y : {s}"))
    };
    let softmax = softmax(&s, &r);
    format!(
        "func.func @main(%q: {q}, %k: {k}, %v: {k}{argument}) -> {o} {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.constant dense<0.125> : {s}
    %p = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ({q}, {k}) -> {s}
    %y = stablehlo.multiply %p, %c : {s}
    {mask}
    {softmax}
    %w = stablehlo.divide %e, %ss : {s}
    %z = stablehlo.convert %w : ({s}) -> {wide}
    %r = stablehlo.dot_general %z, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : ({wide}, {k}) -> {o}
    return %r : {o}
}}"
    )
}

/// Options for f32 operands that may be rounded to tf32.
fn tf32() -> Options {
    Options { compute_precision: ComputePrecision::Tf32, ..cuda() }
}

fn kernels(text: &str, options: &Options) -> usize {
    let case = Case::new(text);
    assert_eq!(case.clusters.clusters.len(), 1, "not one cluster");
    case.emitted(options)[0].kernels.len()
}

fn attention_of_16_bit_types_is_one_kernel() {
    let text = attention("bf16", [1, 2, 70, 100, 64], true);
    assert_eq!(kernels(&text, &cuda()), 1);
    snapshot("attention", &text, &cuda());
    check(&text, &cuda(), 2e-2);
    check(&text, &Options { salt: Salt::Trace, ..cuda() }, 2e-2);
    for (element, sizes) in [
        ("f16", [1, 1, 16, 128, 32]),
        ("bf16", [1, 1, 20, 65, 40]),
        ("f16", [1, 2, 9, 70, 128]),
        ("bf16", [1, 1, 3, 40, 256]),
    ] {
        let text = attention(element, sizes, false);
        assert_eq!(kernels(&text, &cuda()), 1);
        check(&text, &cuda(), 2e-2);
    }
}

fn attention_of_f32_in_tf32_is_one_kernel() {
    let text = attention("f32", [1, 2, 70, 100, 64], true);
    assert_eq!(kernels(&text, &tf32()), 1);
    snapshot("attention_tf32", &text, &tf32());
    check(&text, &tf32(), 2e-3);
    for sizes in [[1, 1, 16, 128, 32], [1, 1, 20, 65, 40], [1, 2, 9, 70, 128]] {
        let text = attention("f32", sizes, false);
        assert_eq!(kernels(&text, &tf32()), 1);
        check(&text, &tf32(), 2e-3);
    }
}

/// Attention of 400 queries and keys whose scores `%x` are made of `%y` by these lines. `SCORES` stands for the type of the
/// scores, `INDEX` and `TRUTH` for the same of i32 and i1.
fn masked(lines: &str) -> String {
    let scores = "tensor<1x1x400x400xf32>";
    let [index, truth] = ["i32", "i1"].map(|element| scores.replace("f32", element));
    let lines = lines.replace("SCORES", scores).replace("INDEX", &index).replace("TRUTH", &truth);
    attention("bf16", [1, 1, 400, 400, 32], false)
        .replace(&format!("%x = stablehlo.add %y, %y : {scores}"), lines.trim_end())
}

const INDICES: &str = "%i = stablehlo.iota dim = 2 : INDEX
    %j = stablehlo.iota dim = 3 : INDEX
    %none = stablehlo.constant dense<0xFF800000> : SCORES
";

/// The emitted kernel skips tiles by these lines, and gives what the reference gives.
fn skips(text: &str, lines: &[&str]) {
    let emitted = Case::new(text).emitted(&cuda());
    let [kernel] = emitted.last().unwrap().kernels.as_slice() else { panic!("not one kernel") };
    for line in lines {
        assert!(kernel.source.contains(line), "{line}: {}", kernel.source);
    }
    check(text, &cuda(), 2e-2);
}

fn fully_masked_key_tiles_are_skipped() {
    let seen = "const int seen = (first + 127 + (0)) / 64 + 1;";
    let causal = "%see = stablehlo.compare LE, %j, %i : (INDEX, INDEX) -> TRUTH
    %x = stablehlo.select %see, %y, %none : TRUTH, SCORES
";
    skips(&masked(&format!("{INDICES}{causal}")), &[seen]);
    // Added, and a number instead of infinity.
    for fill in ["0xFF800000", "-3.40282347E+38", "-1.0E+9"] {
        let added = format!(
            "%hidden = stablehlo.compare GT, %j, %i : (INDEX, INDEX) -> TRUTH
    %low = stablehlo.constant dense<{fill}> : SCORES
    %nothing = stablehlo.constant dense<0.0> : SCORES
    %mask = stablehlo.select %hidden, %low, %nothing : TRUTH, SCORES
    %x = stablehlo.add %y, %mask : SCORES
"
        );
        skips(&masked(&format!("{INDICES}{added}")), &[seen]);
    }
    // A number that is not so low hides nothing.
    let near = "%see = stablehlo.compare LE, %j, %i : (INDEX, INDEX) -> TRUTH
    %low = stablehlo.constant dense<-1.0E+3> : SCORES
    %x = stablehlo.select %see, %y, %low : TRUTH, SCORES
";
    skips(&masked(&format!("{INDICES}{near}")), &["const int steps = 7;"]);
}

fn key_tiles_outside_a_window_are_skipped() {
    let window = "%before = stablehlo.compare LE, %j, %i : (INDEX, INDEX) -> TRUTH
    %apart = stablehlo.subtract %i, %j : INDEX
    %width = stablehlo.constant dense<70> : INDEX
    %near = stablehlo.compare LT, %apart, %width : (INDEX, INDEX) -> TRUTH
    %see = stablehlo.and %before, %near : TRUTH
    %x = stablehlo.select %see, %y, %none : TRUTH, SCORES
";
    let hidden = "const int hidden = (first + (-69)) / 64;";
    let seen = "const int seen = (first + 127 + (0)) / 64 + 1;";
    skips(&masked(&format!("{INDICES}{window}")), &[hidden, seen]);
}

fn unsupported_attention_is_refused() {
    let case = Case::new(&attention("f32", [1, 2, 12, 20, 8], true));
    let naive = Options { effort: Effort::Naive, ..cuda() };
    let hip = Options { compute_precision: ComputePrecision::Tf32, ..Options::new(Dialect::Hip, "gfx942") };
    for options in [naive, cuda(), hip] {
        let refused = emit(&case.graph, &case.clusters.clusters[0], &options).unwrap_err();
        assert_eq!(refused.to_string(), "no kernel for attention in one piece");
    }
}
