//! Attention with its gradients, as importers write a training step.

use crate::case::Case;
use crate::dnn::Masked;
use crate::softmax::softmax;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (element, within) in [("bf16", 3e-2), ("f16", 1e-2), ("f32", 1e-5)] {
        for (masked, name) in [(Masked::No, ""), (Masked::Causal, "causal_"), (Masked::Given, "masked_")] {
            let sizes = Sizes { batch: 2, heads: 4, rows: 200, columns: 200, width: 64 };
            let name = format!("{name}attention_gradient_{element}");
            let case = Case::new(name, text(element, &sizes, masked), within);
            all.push(if element == "f32" { case } else { case.with_step("attention gradient") });
        }
    }
    for (masked, name) in [(Masked::No, ""), (Masked::Causal, "causal_"), (Masked::Given, "masked_")] {
        let sizes = Sizes { batch: 2, heads: 4, rows: 200, columns: 200, width: 64 };
        let case = Case::new(format!("{name}attention_gradient"), text("f32", &sizes, masked), 4e-3);
        all.push(case.in_precision("tf32").with_step("attention gradient"));
    }
    let wide = Sizes { batch: 1, heads: 2, rows: 96, columns: 130, width: 128 };
    all.push(Case::new("attention_gradient_of_wide_heads", text("bf16", &wide, Masked::Given), 3e-2));
    let small = Sizes { batch: 1, heads: 2, rows: 96, columns: 130, width: 24 };
    all.push(
        Case::new("causal_attention_gradient_rounded_to", text("f32", &small, Masked::Causal), 3e-2)
            .in_precision("bf16"),
    );
    all
}

struct Sizes {
    batch: usize,
    heads: usize,
    rows: usize,
    columns: usize,
    width: usize,
}

/// Attention and its gradients with respect to queries, keys and values, computed in f32. A mask input is added to the scores.
fn text(element: &str, sizes: &Sizes, masked: Masked) -> String {
    let &Sizes { batch: b, heads: h, rows: m, columns: n, width: d } = sizes;
    let of =
        |rows: usize, columns: usize, element: &str| format!("tensor<{b}x{h}x{rows}x{columns}x{element}>");
    let (q, k) = (of(m, d, element), of(n, d, element));
    let (qw, kw, s) = (of(m, d, "f32"), of(n, d, "f32"), of(m, n, "f32"));
    let r = format!("tensor<{b}x{h}x{m}xf32>");
    let (argument, mask) = match masked {
        Masked::No => (String::new(), format!("%x = stablehlo.multiply %p, %c : {s}")),
        Masked::Given => (
            format!(", %mask: tensor<{b}x{n}xf32>"),
            format!(
                "%y = stablehlo.multiply %p, %c : {s}
    %wide = stablehlo.broadcast_in_dim %mask, dims = [0, 3] : (tensor<{b}x{n}xf32>) -> {s}
    %x = stablehlo.add %y, %wide : {s}"
            ),
        ),
        Masked::Causal => {
            let (index, seen) = (of(m, n, "i32"), of(m, n, "i1"));
            (
                String::new(),
                format!(
                    "%y = stablehlo.multiply %p, %c : {s}
    %i = stablehlo.iota dim = 2 : {index}
    %j = stablehlo.iota dim = 3 : {index}
    %see = stablehlo.compare LE, %j, %i : ({index}, {index}) -> {seen}
    %none = stablehlo.constant dense<0xFF800000> : {s}
    %x = stablehlo.select %see, %y, %none : {seen}, {s}"
                ),
            )
        }
    };
    let dot = |operands: &str, sums: &str, types: String| {
        format!(
            "stablehlo.dot_general {operands}, batching_dims = [0, 1] x [0, 1], contracting_dims = {sums} : {types}"
        )
    };
    let softmax = softmax(&s, &r);
    format!(
        "func.func @main(%q: {q}, %k: {k}, %v: {k}, %g: {q}{argument}) -> ({q}, {q}, {k}, {k}) {{
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.constant dense<0.5> : {s}
    %qw = stablehlo.convert %q : ({q}) -> {qw}
    %kw = stablehlo.convert %k : ({k}) -> {kw}
    %vw = stablehlo.convert %v : ({k}) -> {kw}
    %gw = stablehlo.convert %g : ({q}) -> {qw}
    %p = {}
    {mask}
    {softmax}
    %w = stablehlo.divide %e, %ss : {s}
    %ow = {}
    %dvw = {}
    %dw = {}
    %wg = stablehlo.multiply %dw, %w : {s}
    %t = stablehlo.reduce(%wg init: %zero) applies stablehlo.add across dimensions = [3] : ({s}, tensor<f32>) -> {r}
    %tt = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : ({r}) -> {s}
    %back = stablehlo.multiply %w, %tt : {s}
    %ds = stablehlo.subtract %wg, %back : {s}
    %dx = stablehlo.multiply %ds, %c : {s}
    %dqw = {}
    %dkw = {}
    %o = stablehlo.convert %ow : ({qw}) -> {q}
    %dq = stablehlo.convert %dqw : ({qw}) -> {q}
    %dk = stablehlo.convert %dkw : ({kw}) -> {k}
    %dv = stablehlo.convert %dvw : ({kw}) -> {k}
    return %o, %dq, %dk, %dv : {q}, {q}, {k}, {k}
}}",
        dot("%qw, %kw", "[3] x [3]", format!("({qw}, {kw}) -> {s}")),
        dot("%w, %vw", "[3] x [2]", format!("({s}, {kw}) -> {qw}")),
        dot("%w, %gw", "[2] x [2]", format!("({s}, {qw}) -> {kw}")),
        dot("%gw, %vw", "[3] x [3]", format!("({qw}, {kw}) -> {s}")),
        dot("%dx, %kw", "[3] x [2]", format!("({s}, {kw}) -> {qw}")),
        dot("%dx, %qw", "[2] x [2]", format!("({s}, {qw}) -> {kw}")),
    )
}
