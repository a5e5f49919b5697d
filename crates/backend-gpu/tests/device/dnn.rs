//! Convolutions and attention.

use crate::case::Case;
use crate::programs::convolution_with_numbers;
use crate::softmax::softmax;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (element, within) in [("f32", 1e-5), ("bf16", 2e-2), ("f16", 5e-3)] {
        for first in [false, true] {
            let layout = if first { "channels_first" } else { "channels_last" };
            let case =
                Case::new(format!("convolution_{layout}_{element}"), convolution(element, first), within);
            all.push(case.with_step("library convolution"));
        }
    }
    all.push(Case::new("convolution", convolution("f32", true), 3e-3).in_precision("tf32"));
    all.push(Case::new(
        "convolution_of_groups",
        "func.func @main(%x: tensor<2x9x8x6xf32>, %w: tensor<3x3x3x4xf32>, %b: tensor<4xf32>) -> tensor<2x5x4x4xf32> {
    %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<2x9x8x6xf32>, tensor<3x3x3x4xf32>) -> tensor<2x5x4x4xf32>
    %s = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<4xf32>) -> tensor<2x5x4x4xf32>
    %r = stablehlo.add %c, %s : tensor<2x5x4x4xf32>
    return %r : tensor<2x5x4x4xf32>\n}",
        1e-5,
    ));
    all.extend(numbers());
    for (element, within) in [("f32", 1e-5), ("bf16", 3e-2), ("f16", 1e-2)] {
        for (masked, name) in [
            (Masked::No, "attention"),
            (Masked::Causal, "causal_attention"),
            (Masked::Given, "masked_attention"),
        ] {
            let sizes = Sizes { batch: 2, heads: 4, groups: 4, rows: 128, columns: 128, width: 64 };
            let case = Case::new(format!("{name}_{element}"), attention(element, &sizes, masked), within);
            let library = element != "f32" && masked != Masked::Given;
            all.push(if library { case.with_step("library attention") } else { case });
        }
    }
    let shared = Sizes { batch: 1, heads: 8, groups: 2, rows: 192, columns: 192, width: 64 };
    for (masked, name) in [(Masked::No, "attention"), (Masked::Causal, "causal_attention")] {
        let text = attention("bf16", &shared, masked);
        all.push(Case::new(format!("{name}_of_shared_keys"), text, 3e-2).with_step("8 of 2x"));
    }
    all
}

/// Convolutions with scalars that cuDNN mistakes for a bias if there is one channel.
fn numbers() -> Vec<Case> {
    let mut all = Vec::new();
    for (channels, to) in [(1, "one_channel"), (48, "many_channels")] {
        let chains: [&[&str]; 5] =
            [&["add"], &["add", "maximum"], &["multiply"], &["multiply", "add", "maximum"], &["subtract"]];
        for ops in chains {
            let (name, text) = (ops.join("_"), convolution_with_numbers("f32", channels, ops));
            let case = Case::new(format!("convolution_to_{to}_{name}"), text, 1e-5);
            all.push(case.with_step("library convolution"));
        }
        for (element, within) in [("bf16", 2e-2), ("f16", 5e-3)] {
            let text = convolution_with_numbers(element, channels, &["add", "maximum"]);
            all.push(Case::new(format!("convolution_to_{to}_{element}"), text, within));
        }
        let text = convolution_with_numbers("f32", channels, &["add", "maximum"]);
        all.push(Case::new(format!("convolution_to_{to}"), text, 3e-3).in_precision("tf32"));
    }
    all
}

/// A convolution with bias and ReLU.
fn convolution(element: &str, channels_first: bool) -> String {
    let (x, y, layout, channels) = if channels_first {
        (format!("tensor<2x32x14x18x{element}>"), format!("tensor<2x48x14x18x{element}>"), "b, f, 0, 1", 1)
    } else {
        (format!("tensor<2x14x18x32x{element}>"), format!("tensor<2x14x18x48x{element}>"), "b, 0, 1, f", 3)
    };
    let (w, b) = (format!("tensor<48x32x3x3x{element}>"), format!("tensor<48x{element}>"));
    format!(
        "func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {{
    %c = stablehlo.convolution(%x, %w) dim_numbers = [{layout}]x[o, i, 0, 1]->[{layout}], window = {{pad = [[1, 1], [1, 1]]}} {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : ({x}, {w}) -> {y}
    %s = stablehlo.broadcast_in_dim %b, dims = [{channels}] : ({b}) -> {y}
    %a = stablehlo.add %c, %s : {y}
    %z = stablehlo.constant dense<0.0> : {y}
    %r = stablehlo.maximum %a, %z : {y}
    return %r : {y}\n}}"
    )
}

/// The mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Masked {
    /// All.
    No,
    /// Causal.
    Causal,
    /// An input.
    Given,
}

struct Sizes {
    batch: usize,
    heads: usize,
    /// Heads of keys and values.
    groups: usize,
    rows: usize,
    columns: usize,
    width: usize,
}

/// Attention as importers write it; the output is batch, row, head, column.
fn attention(element: &str, sizes: &Sizes, masked: Masked) -> String {
    let &Sizes { batch: b, heads: h, groups: g, rows: m, columns: n, width: d } = sizes;
    let q = format!("tensor<{b}x{h}x{m}x{d}x{element}>");
    let few = format!("tensor<{b}x{g}x{n}x{d}x{element}>");
    let each = format!("tensor<{b}x{g}x{}x{n}x{d}x{element}>", h / g);
    let k = format!("tensor<{b}x{h}x{n}x{d}x{element}>");
    let o = format!("tensor<{b}x{m}x{h}x{d}x{element}>");
    let (s, r) = (format!("tensor<{b}x{h}x{m}x{n}xf32>"), format!("tensor<{b}x{h}x{m}xf32>"));
    let seen = format!("tensor<{b}x{h}x{m}x{n}xi1>");
    let (argument, mask) = match masked {
        Masked::No => (String::new(), format!("%x = stablehlo.multiply %p, %c : {s}")),
        Masked::Causal => {
            let index = format!("tensor<{m}x{n}xi32>");
            let lines = [
                format!("%i = stablehlo.iota dim = 0 : {index}"),
                format!("%j = stablehlo.iota dim = 1 : {index}"),
                format!("%le = stablehlo.compare LE, %j, %i : ({index}, {index}) -> tensor<{m}x{n}xi1>"),
                // Something that keeps the mask from being computed inside the loop.
                "%t = stablehlo.constant dense<true> : tensor<i1>".to_owned(),
                format!(
                    "%low = stablehlo.pad %le, %t, low = [0, 0], high = [1, 1], interior = [0, 0] : (tensor<{m}x{n}xi1>, tensor<i1>) -> tensor<{}x{}xi1>",
                    m + 1,
                    n + 1
                ),
                format!(
                    "%cut = stablehlo.slice %low [0:{m}, 0:{n}] : (tensor<{}x{}xi1>) -> tensor<{m}x{n}xi1>",
                    m + 1,
                    n + 1
                ),
                format!(
                    "%see = stablehlo.broadcast_in_dim %cut, dims = [2, 3] : (tensor<{m}x{n}xi1>) -> {seen}"
                ),
                format!("%y = stablehlo.multiply %p, %c : {s}"),
                format!("%none = stablehlo.constant dense<0xFF800000> : {s}"),
                format!("%x = stablehlo.select %see, %y, %none : {seen}, {s}"),
            ];
            (String::new(), lines.join("\n    "))
        }
        Masked::Given => {
            let lines = [
                format!("%y = stablehlo.multiply %p, %c : {s}"),
                format!(
                    "%wide = stablehlo.broadcast_in_dim %mask, dims = [0, 3] : (tensor<{b}x{n}xf32>) -> {s}"
                ),
                format!("%x = stablehlo.add %y, %wide : {s}"),
            ];
            (format!(", %mask: tensor<{b}x{n}xf32>"), lines.join("\n    "))
        }
    };
    let repeat = |name: &str| {
        let lines = [
            format!(
                "%{name}1 = stablehlo.broadcast_in_dim %{name}0, dims = [0, 1, 3, 4] : ({few}) -> {each}"
            ),
            format!("%{name} = stablehlo.reshape %{name}1 : ({each}) -> {k}"),
        ];
        lines.join("\n    ")
    };
    let (keys, values, repeats) = if g == h {
        ("%k", "%v", String::new())
    } else {
        ("%k0", "%v0", format!("{}\n    {}", repeat("k"), repeat("v")))
    };
    let heads = format!("tensor<{b}x{h}x{m}x{d}x{element}>");
    let softmax = softmax(&s, &r);
    format!(
        "func.func @main(%q: {q}, {keys}: {few}, {values}: {few}{argument}) -> {o} {{
    {repeats}
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.constant dense<0.5> : {s}
    %p = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : ({q}, {k}) -> {s}
    {mask}
    {softmax}
    %w = stablehlo.divide %e, %ss : {s}
    %vw = stablehlo.convert %v : ({k}) -> tensor<{b}x{h}x{n}x{d}xf32>
    %o = stablehlo.dot_general %w, %vw, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : ({s}, tensor<{b}x{h}x{n}x{d}xf32>) -> tensor<{b}x{h}x{m}x{d}xf32>
    %on = stablehlo.convert %o : (tensor<{b}x{h}x{m}x{d}xf32>) -> {heads}
    %r = stablehlo.transpose %on, dims = [0, 2, 1, 3] : ({heads}) -> {o}
    return %r : {o}
}}"
    )
}
