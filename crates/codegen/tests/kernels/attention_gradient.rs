//! The gradients of attention in two kernels.

use warpforge_codegen::{ComputePrecision, Dialect, Effort, Options, Salt, emit};
use warpforge_fusion::cluster::Kind;

use crate::case::{Case, cuda, snapshot};
use crate::host::check;
use crate::softmax::softmax;
use crate::tool::{ALL, HOST, NONE, tests};

tests! {
    "attention_gradient";
    attention_gradients_of_16_bit_types_are_two_kernels: ALL,
    attention_gradients_of_f32_in_tf32_are_two_kernels: HOST,
    fully_masked_tiles_are_skipped: HOST,
    fully_masked_queries_have_zero_gradients: HOST,
    unsupported_gradients_are_refused: NONE,
}

/// Parameters of a program of attention and its gradients.
#[derive(Clone, Copy)]
struct Like {
    element: &'static str,
    /// Batches, heads, queries, keys, head size of queries and keys, head size of values.
    sizes: [usize; 6],
    masked: Masked,
    /// Whether the gradient of the keys is transposed, as importers write it.
    transposed: bool,
    /// Whether fully masked rows give zeros.
    safe: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Masked {
    No,
    /// Causal with an offset.
    Ahead(isize),
    /// A window of this many keys up to the query's own index.
    Window(usize),
    /// An additive mask input.
    Given,
}

impl Like {
    const fn new(element: &'static str, sizes: [usize; 6]) -> Self {
        Self { element, sizes, masked: Masked::No, transposed: false, safe: false }
    }

    fn masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// Attention and its gradients with respect to queries, keys and values.
    fn text(&self) -> String {
        let Self { element, sizes: [b, h, m, n, d, w], .. } = *self;
        let of = |rows: usize, columns: usize, element: &str| {
            format!("tensor<{b}x{h}x{rows}x{columns}x{element}>")
        };
        let (q, k, v, o) = (of(m, d, element), of(n, d, element), of(n, w, element), of(m, w, element));
        let (s, z, t) = (of(m, n, "f32"), of(m, n, element), of(d, n, element));
        let (r, seen) = (format!("tensor<{b}x{h}x{m}xf32>"), of(m, n, "i1"));
        let (argument, mask) = match self.masked {
            Masked::No => (String::new(), format!("%x = stablehlo.add %y, %y : {s}")),
            Masked::Given => (
                format!(", %mask: tensor<{b}x{n}xf32>"),
                format!(
                    "%wide = stablehlo.broadcast_in_dim %mask, dims = [0, 3] : (tensor<{b}x{n}xf32>) -> {s}
    %x = stablehlo.add %y, %wide : {s}"
                ),
            ),
            Masked::Window(width) => {
                let index = of(m, n, "i32");
                let compare = format!("({index}, {index}) -> {seen}");
                (
                    String::new(),
                    format!(
                        "%i = stablehlo.iota dim = 2 : {index}
    %j = stablehlo.iota dim = 3 : {index}
    %before = stablehlo.compare LE, %j, %i : {compare}
    %apart = stablehlo.subtract %i, %j : {index}
    %width = stablehlo.constant dense<{width}> : {index}
    %near = stablehlo.compare LT, %apart, %width : {compare}
    %see = stablehlo.and %before, %near : {seen}
    %none = stablehlo.constant dense<0xFF800000> : {s}
    %x = stablehlo.select %see, %y, %none : {seen}, {s}"
                    ),
                )
            }
            Masked::Ahead(causal) => {
                let index = of(m, n, "i32");
                (
                    String::new(),
                    format!(
                        "%i = stablehlo.iota dim = 2 : {index}
    %far = stablehlo.constant dense<{causal}> : {index}
    %until = stablehlo.add %i, %far : {index}
    %j = stablehlo.iota dim = 3 : {index}
    %see = stablehlo.compare LE, %j, %until : ({index}, {index}) -> {seen}
    %none = stablehlo.constant dense<0xFF800000> : {s}
    %x = stablehlo.select %see, %y, %none : {seen}, {s}"
                    ),
                )
            }
        };
        let share = if self.safe {
            format!(
                "%low = stablehlo.constant dense<0xFF800000> : {r}
    %empty = stablehlo.compare EQ, %max, %low : ({r}, {r}) -> tensor<{b}x{h}x{m}xi1>
    %empties = stablehlo.broadcast_in_dim %empty, dims = [0, 1, 2] : (tensor<{b}x{h}x{m}xi1>) -> {seen}
    %zeros = stablehlo.constant dense<0.0> : {s}
    %w0 = stablehlo.divide %e, %ss : {s}
    %w = stablehlo.select %empties, %zeros, %w0 : {seen}, {s}"
            )
        } else {
            format!("%w = stablehlo.divide %e, %ss : {s}")
        };
        let batches = "batching_dims = [0, 1] x [0, 1]";
        let by_key = if self.transposed {
            format!(
                "%dkt = stablehlo.dot_general %q, %dz, {batches}, contracting_dims = [2] x [2] : ({q}, {z}) -> {t}
    %dk = stablehlo.transpose %dkt, dims = [0, 1, 3, 2] : ({t}) -> {k}"
            )
        } else {
            format!(
                "%dk = stablehlo.dot_general %dz, %q, {batches}, contracting_dims = [2] x [2] : ({z}, {q}) -> {k}"
            )
        };
        let softmax = softmax(&s, &r);
        format!(
            "func.func @main(%q: {q}, %k: {k}, %v: {v}, %g: {o}{argument}) -> ({o}, {q}, {k}, {v}) {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.constant dense<0.125> : {s}
    %p = stablehlo.dot_general %q, %k, {batches}, contracting_dims = [3] x [3] : ({q}, {k}) -> {s}
    %y = stablehlo.multiply %p, %c : {s}
    {mask}
    {softmax}
    {share}
    %z = stablehlo.convert %w : ({s}) -> {z}
    %o = stablehlo.dot_general %z, %v, {batches}, contracting_dims = [3] x [2] : ({z}, {v}) -> {o}
    %dv = stablehlo.dot_general %z, %g, {batches}, contracting_dims = [2] x [2] : ({z}, {o}) -> {v}
    %dw = stablehlo.dot_general %g, %v, {batches}, contracting_dims = [3] x [3] : ({o}, {v}) -> {s}
    %wg = stablehlo.multiply %dw, %w : {s}
    %t = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [3] : ({s}, tensor<f32>) -> {r}
    %tt = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : ({r}) -> {s}
    %back = stablehlo.multiply %w, %tt : {s}
    %ds = stablehlo.subtract %wg, %back : {s}
    %dy = stablehlo.multiply %ds, %c : {s}
    %dz = stablehlo.convert %dy : ({s}) -> {z}
    %dq = stablehlo.dot_general %dz, %k, {batches}, contracting_dims = [3] x [2] : ({z}, {k}) -> {q}
    {by_key}
    return %o, %dq, %dk, %dv : {o}, {q}, {k}, {v}
}}"
        )
    }
}

/// Asserts that attention and its gradients are one cluster each, of one and two kernels.
fn is_fused(text: &str, options: &Options) {
    let case = Case::new(text);
    let kinds: Vec<&Kind> = case.clusters.clusters.iter().map(|cluster| &cluster.kind).collect();
    assert!(matches!(kinds[..], [Kind::Attention(_), Kind::AttentionGradient(_)]), "{kinds:?}");
    let kernels: Vec<usize> = case.emitted(options).iter().map(|emitted| emitted.kernels.len()).collect();
    assert_eq!(kernels, [1, 2]);
}

fn attention_gradients_of_16_bit_types_are_two_kernels() {
    let text = Like::new("bf16", [1, 2, 70, 100, 64, 64]).masked(Masked::Given).text();
    is_fused(&text, &cuda());
    snapshot("attention_gradient", &text, &cuda());
    check(&text, &cuda(), 2e-2);
    check(&text, &Options { salt: Salt::Trace, ..cuda() }, 2e-2);
    let whole = Like::new("f16", [1, 1, 64, 128, 32, 16]);
    let uneven = Like::new("bf16", [2, 1, 20, 65, 40, 24]);
    let wide = Like::new("f16", [1, 1, 9, 70, 128, 64]);
    for like in [whole, uneven, wide, Like { transposed: true, ..whole }, Like { transposed: true, ..uneven }]
    {
        is_fused(&like.text(), &cuda());
        check(&like.text(), &cuda(), 2e-2);
    }
}

fn attention_gradients_of_f32_in_tf32_are_two_kernels() {
    let tf32 = Options { compute_precision: ComputePrecision::Tf32, ..cuda() };
    let whole = Like::new("f32", [1, 1, 64, 128, 32, 16]);
    let uneven = Like::new("f32", [2, 1, 20, 65, 40, 24]);
    let masked = Like::new("f32", [1, 2, 70, 100, 64, 64]).masked(Masked::Given);
    for like in [whole, uneven, masked, Like { transposed: true, ..whole }, uneven.masked(Masked::Ahead(3))] {
        is_fused(&like.text(), &tf32);
        check(&like.text(), &tf32, 2e-3);
    }
}

fn fully_masked_tiles_are_skipped() {
    // So many that the mask is not computed while compiling.
    let square = Like::new("bf16", [1, 1, 400, 400, 16, 16]);
    for (like, first, last) in [
        (square.masked(Masked::Ahead(0)), "(first + 63 + (0)) / 64 + 1", "(first - (0)) / 64"),
        (square.masked(Masked::Ahead(37)), "(first + 63 + (37)) / 64 + 1", "(first - (37)) / 64"),
    ] {
        let text = like.text();
        let case = Case::new(&text);
        let kernels = &case.emitted(&cuda())[1].kernels;
        assert!(kernels[0].source.contains(&format!("const int seen = {first};")), "{}", kernels[0].source);
        assert!(kernels[1].source.contains(&format!("const int skipped = {last};")), "{}", kernels[1].source);
        check(&text, &cuda(), 2e-2);
    }
    let windowed = square.masked(Masked::Window(70)).text();
    let case = Case::new(&windowed);
    let kernels = &case.emitted(&cuda())[1].kernels;
    let by_queries =
        ["const int skipped = (first + (-69)) / 64;", "const int seen = (first + 63 + (0)) / 64 + 1;"];
    let by_keys =
        ["const int skipped = (first - (0)) / 64;", "const int seen = (first + 63 - (-69)) / 64 + 1;"];
    for (kernel, lines) in kernels.iter().zip([by_queries, by_keys]) {
        assert!(lines.iter().all(|line| kernel.source.contains(line)), "{}", kernel.source);
    }
    check(&windowed, &cuda(), 2e-2);
    // Fewer queries than keys: the last keys are seen by none.
    check(&Like::new("f16", [1, 1, 270, 500, 16, 16]).masked(Masked::Ahead(0)).text(), &cuda(), 2e-2);
}

fn fully_masked_queries_have_zero_gradients() {
    let like = Like { safe: true, ..Like::new("bf16", [1, 1, 80, 40, 16, 16]) };
    let text = like.masked(Masked::Ahead(-9)).text();
    is_fused(&text, &cuda());
    check(&text, &cuda(), 2e-2);
}

fn unsupported_gradients_are_refused() {
    let wide = Case::new(&Like::new("bf16", [1, 1, 16, 16, 144, 16]).text());
    let f32 = Case::new(&Like::new("f32", [1, 1, 16, 16, 8, 8]).text());
    let naive = Options { effort: Effort::Naive, ..cuda() };
    for (case, options) in
        [(&wide, cuda()), (&f32, cuda()), (&f32, naive), (&f32, Options::new(Dialect::Hip, "gfx942"))]
    {
        let refused = emit(&case.graph, &case.clusters.clusters[1], &options).unwrap_err();
        assert_eq!(refused.to_string(), "no kernel for gradients of attention in one piece");
    }
}
