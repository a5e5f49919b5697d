//! StableHLO text of a decoder: the prefill of prompts, and one step of decoding with a cache.

use std::fmt::Write as _;

use super::super::emit::{Lines, float, ty, variable};
use super::sizes::Sizes;

/// What a program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::suites) enum Step {
    /// The logits after prompts of so many tokens, and the keys and values of all of them.
    Prefill { tokens: usize },
    /// The logits after one more token; keys and values go to a cache for so many tokens, which is state.
    Decode { capacity: usize },
}

/// The type of weights, cache and operands of matrix products. Sums, norms and softmax are f32 in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::suites) enum Stored {
    F32,
    Bf16,
}

impl Stored {
    pub(in crate::suites) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    pub(in crate::suites) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
        }
    }
}

/// A program for so many sequences of the same length.
#[derive(Debug, Clone, Copy)]
pub(in crate::suites) struct Program<'a> {
    pub(in crate::suites) of: &'a Sizes,
    pub(in crate::suites) batch: usize,
    pub(in crate::suites) step: Step,
    pub(in crate::suites) stored: Stored,
    /// Whether the embedding is the last matrix too.
    pub(in crate::suites) tied: bool,
}

/// A value and its sizes.
struct Shaped<const N: usize> {
    name: String,
    dims: [usize; N],
}

impl Program<'_> {
    /// The name of a cache, which is an argument or a result: `k` or `v` of a layer.
    pub(in crate::suites) fn cache(part: &str, layer: usize) -> String {
        format!("cache.{layer}.{part}")
    }

    /// The sizes of a cache.
    pub(in crate::suites) fn cache_dims(&self) -> [usize; 4] {
        [self.batch, self.of.kv_heads, self.positions(), self.of.channels]
    }

    /// Positions that the rotations are needed for.
    pub(in crate::suites) fn positions(&self) -> usize {
        match self.step {
            Step::Prefill { tokens } => tokens,
            Step::Decode { capacity } => capacity,
        }
    }

    /// The parameters by name, with sizes and type.
    pub(in crate::suites) fn parameters(&self) -> Vec<(String, Vec<usize>, &'static str)> {
        let (of, stored) = (self.of, self.stored.name());
        let table = vec![of.vocabulary, of.hidden];
        let rotations = vec![self.positions(), of.channels];
        let mut list = vec![
            ("rotary.cos".to_owned(), rotations.clone(), "f32"),
            ("rotary.sin".to_owned(), rotations, "f32"),
            ("embedding".to_owned(), table.clone(), stored),
            ("norm".to_owned(), vec![of.hidden], "f32"),
        ];
        if !self.tied {
            list.push(("head".to_owned(), table, stored));
        }
        for layer in 0..of.layers {
            for norm in ["norm.attention", "norm.mlp"] {
                list.push((format!("layer.{layer}.{norm}"), vec![of.hidden], "f32"));
            }
            for (name, rows, columns) in of.matrices() {
                list.push((format!("layer.{layer}.{name}"), vec![rows, columns], stored));
            }
        }
        list
    }

    /// The text of the module.
    pub(in crate::suites) fn module(&self) -> String {
        let mut text = Text { program: self, lines: Lines::default() };
        let (logits, caches) = text.logits();
        let cache = ty(&self.cache_dims(), self.stored.name());
        let parts = (0..self.of.layers).flat_map(|layer| ["k", "v"].map(|part| Self::cache(part, layer)));
        let parts: Vec<String> = parts.collect();
        let mut arguments = Vec::new();
        match self.step {
            Step::Prefill { tokens } => {
                arguments
                    .push(format!("%ids: {} {{warpforge.name = \"ids\"}}", ty(&[self.batch, tokens], "i64")));
            }
            Step::Decode { .. } => {
                arguments.push(format!("%ids: {} {{warpforge.name = \"ids\"}}", ty(&[self.batch, 1], "i64")));
                arguments.push("%position: tensor<i64> {warpforge.name = \"position\"}".to_owned());
                arguments.extend(parts.iter().enumerate().map(|(at, name)| {
                    format!(
                        "%{}: {cache} {{warpforge.name = \"{name}\", warpforge.role = \"state\", tf.aliasing_output = {} : \
                         i32}}",
                        variable(name),
                        at + 1
                    )
                }));
            }
        }
        arguments.extend(self.parameters().iter().map(|(name, dims, element)| {
            let (variable, ty) = (variable(name), ty(dims, element));
            format!("%{variable}: {ty} {{warpforge.name = \"{name}\", warpforge.role = \"parameter\"}}")
        }));
        let out = float(&[self.batch, self.of.vocabulary]);
        let (mut results, mut types) = (format!("{out} {{warpforge.name = \"logits\"}}"), out);
        for name in &parts {
            let name =
                if matches!(self.step, Step::Decode { .. }) { format!("new.{name}") } else { name.clone() };
            let _ = write!(results, ", {cache} {{warpforge.name = \"{name}\"}}");
            let _ = write!(types, ", {cache}");
        }
        let values = std::iter::once(logits).chain(caches).collect::<Vec<String>>().join(", ");
        format!(
            "func.func @main({}) -> ({results}) {{\n{}\n  func.return {values} : {types}\n}}\n",
            arguments.join(", "),
            text.lines.text()
        )
    }
}

/// A function in the making.
struct Text<'a> {
    program: &'a Program<'a>,
    lines: Lines,
}

/// What all layers read.
struct Shared {
    /// Cosine and sine of the tokens' rotations, and which axes of queries and keys they belong to.
    rotations: [String; 2],
    rotation_dims: Vec<usize>,
    rotation_axes: Vec<usize>,
    /// Which keys each query sees, and which axes of the scores that belongs to.
    visible: String,
    visible_dims: Vec<usize>,
    visible_axes: Vec<usize>,
}

impl Text<'_> {
    fn tokens(&self) -> usize {
        match self.program.step {
            Step::Prefill { tokens } => tokens,
            Step::Decode { .. } => 1,
        }
    }

    /// A value as an operand of a matrix product.
    fn narrow(&mut self, x: &str, dims: &[usize]) -> String {
        self.converted(x, dims, "f32", self.program.stored.name())
    }

    fn converted(&mut self, x: &str, dims: &[usize], from: &str, to: &str) -> String {
        if from == to {
            return x.to_owned();
        }
        self.lines.value(&format!("stablehlo.convert {x} : ({}) -> {}", ty(dims, from), ty(dims, to)))
    }

    /// `x W'`, the weight with a row per output.
    fn linear(&mut self, x: &str, rows: usize, weight: &str, inputs: usize, outputs: usize) -> String {
        let stored = self.program.stored.name();
        let x = self.narrow(x, &[rows, inputs]);
        self.lines.value(&format!(
            "stablehlo.dot_general {x}, %{}, contracting_dims = [1] x [1] : ({}, {}) -> {}",
            variable(weight),
            ty(&[rows, inputs], stored),
            ty(&[outputs, inputs], stored),
            float(&[rows, outputs])
        ))
    }

    /// A batched product of operands in the stored type.
    fn product(
        &mut self,
        left: &Shaped<5>,
        right: (&str, &[usize]),
        batch: [&str; 2],
        contract: [usize; 2],
        to: &[usize],
    ) -> String {
        let stored = self.program.stored.name();
        self.lines.value(&format!(
            "stablehlo.dot_general {}, {}, batching_dims = {} x {}, contracting_dims = [{}] x [{}] : ({}, {}) -> {}",
            left.name,
            right.0,
            batch[0],
            batch[1],
            contract[0],
            contract[1],
            ty(&left.dims, stored),
            ty(right.1, stored),
            float(to)
        ))
    }

    fn rms_norm(&mut self, x: &str, rows: usize, weight: &str) -> String {
        let hidden = self.program.of.hidden;
        let dims = [rows, hidden];
        let squares = self.lines.binary("multiply", x, x, &dims);
        let sum = self.lines.reduce("add", 0.0, &squares, &dims, 1);
        let count = self.lines.filled(hidden as f64, &[rows]);
        let mean = self.lines.binary("divide", &sum, &count, &[rows]);
        let epsilon = self.lines.filled(self.program.of.epsilon, &[rows]);
        let mean = self.lines.binary("add", &mean, &epsilon, &[rows]);
        let scale = self.lines.unary("rsqrt", &mean, &[rows]);
        let scale = self.lines.broadcast(&scale, &[rows], &[0], &dims);
        let normal = self.lines.binary("multiply", x, &scale, &dims);
        let weight = self.lines.broadcast(&format!("%{}", variable(weight)), &[hidden], &[1], &dims);
        self.lines.binary("multiply", &normal, &weight, &dims)
    }

    /// Rotary embedding in halves: `x · cos + (-x₂, x₁) · sin`.
    fn rotated(&mut self, x: &str, dims: &[usize], shared: &Shared) -> String {
        let channels = self.program.of.channels;
        let [cos, sin] = &shared.rotations;
        let [cos, sin] = [cos, sin]
            .map(|table| self.lines.broadcast(table, &shared.rotation_dims, &shared.rotation_axes, dims));
        let mut half = dims.to_vec();
        if let Some(last) = half.last_mut() {
            *last = channels / 2;
        }
        let low = self.lines.columns(x, dims, 0, channels / 2);
        let high = self.lines.columns(x, dims, channels / 2, channels);
        let high = self.lines.unary("negate", &high, &half);
        let axis = dims.len() - 1;
        let (part, whole) = (float(&half), float(dims));
        let turned = self.lines.value(&format!(
            "stablehlo.concatenate {high}, {low}, dim = {axis} : ({part}, {part}) -> {whole}"
        ));
        let straight = self.lines.binary("multiply", x, &cos, dims);
        let turned = self.lines.binary("multiply", &turned, &sin, dims);
        self.lines.binary("add", &straight, &turned, dims)
    }

    /// Puts a token's keys or values into the cache.
    fn cached(&mut self, name: &str, part: &str) -> String {
        let program = self.program;
        let dims = program.cache_dims();
        let one = ty(&[dims[0], dims[1], 1, dims[3]], program.stored.name());
        let cache = ty(&dims, program.stored.name());
        let zero = self.lines.value("stablehlo.constant dense<0> : tensor<i64>");
        self.lines.value(&format!(
            "stablehlo.dynamic_update_slice %{}, {part}, {zero}, {zero}, %position, {zero} : ({cache}, {one}, \
             tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> {cache}",
            variable(name)
        ))
    }

    /// Attention of one layer, and its keys and values.
    fn attention(&mut self, x: &str, layer: usize, shared: &Shared) -> (String, [String; 2]) {
        let of = self.program.of;
        let (batch, tokens) = (self.program.batch, self.tokens());
        let (rows, queries, keys) = (batch * tokens, of.queries(), of.keys());
        let all = [rows, queries + 2 * keys];
        let projected = self.linear(x, rows, &format!("layer.{layer}.qkv"), of.hidden, all[1]);
        let part = |text: &mut Self, first: usize, end: usize, heads: usize| {
            let columns = text.lines.columns(&projected, &all, first, end);
            let dims = [batch, tokens, heads, of.channels];
            (text.lines.reshape(&columns, &[rows, end - first], &dims), dims)
        };
        let (query, dims) = part(self, 0, queries, of.heads);
        let query = self.rotated(&query, &dims, shared);
        let (kv_heads, group, channels) = (of.kv_heads, of.group(), of.channels);
        let (key, dims) = part(self, queries, queries + keys, kv_heads);
        let key = self.rotated(&key, &dims, shared);
        let (value, _) = part(self, queries + keys, queries + 2 * keys, kv_heads);
        // [batch, head, token, channel], as the cache has them.
        let [key, value] = [key, value].map(|part| {
            let turned = self.lines.transpose(&part, &dims, &[0, 2, 1, 3]);
            self.narrow(&turned, &[batch, kv_heads, tokens, channels])
        });
        let split = [batch, tokens, kv_heads, group, channels];
        let query = self.lines.reshape(&query, &[batch, tokens, of.heads, channels], &split);
        let query_dims = [batch, kv_heads, group, tokens, channels];
        let query = self.lines.transpose(&query, &split, &[0, 2, 3, 1, 4]);
        let query = Shaped { name: self.narrow(&query, &query_dims), dims: query_dims };
        let (mixed, kept) = match self.program.step {
            Step::Prefill { .. } => {
                let [wide_key, wide_value] = [&key, &value].map(|part| {
                    let stored = self.program.stored.name();
                    let (from, to) =
                        (ty(&[batch, kv_heads, tokens, channels], stored), ty(&query_dims, stored));
                    self.lines.value(&format!(
                        "stablehlo.broadcast_in_dim {part}, dims = [0, 1, 3, 4] : ({from}) -> {to}"
                    ))
                });
                let heads = ["[0, 1, 2]", "[0, 1, 2]"];
                let scores_dims = [batch, kv_heads, group, tokens, tokens];
                let scores = self.product(&query, (&wide_key, &query_dims), heads, [4, 4], &scores_dims);
                let weights = self.weights(&scores, scores_dims, shared);
                (self.product(&weights, (&wide_value, &query_dims), heads, [4, 3], &query_dims), [key, value])
            }
            Step::Decode { capacity } => {
                let names = ["k", "v"].map(|part| Program::cache(part, layer));
                let kept = [self.cached(&names[0], &key), self.cached(&names[1], &value)];
                let cache = self.program.cache_dims();
                let heads = ["[0, 1]", "[0, 1]"];
                let scores_dims = [batch, kv_heads, group, tokens, capacity];
                let scores = self.product(&query, (&kept[0], &cache), heads, [4, 3], &scores_dims);
                let weights = self.weights(&scores, scores_dims, shared);
                (self.product(&weights, (&kept[1], &cache), heads, [4, 2], &query_dims), kept)
            }
        };
        let back = self.lines.transpose(&mixed, &query_dims, &[0, 3, 1, 2, 4]);
        let joined = self.lines.reshape(&back, &split, &[rows, queries]);
        let out = self.linear(&joined, rows, &format!("layer.{layer}.output"), queries, of.hidden);
        (out, kept)
    }

    /// The weights of the values: scores, scaled and masked, as shares.
    fn weights(&mut self, scores: &str, dims: [usize; 5], shared: &Shared) -> Shaped<5> {
        let scale = self.lines.filled(1.0 / (self.program.of.channels as f64).sqrt(), &dims);
        let scaled = self.lines.binary("multiply", scores, &scale, &dims);
        let mask = self.lines.value(&format!(
            "stablehlo.broadcast_in_dim {}, dims = {:?} : ({}) -> {}",
            shared.visible,
            shared.visible_axes,
            ty(&shared.visible_dims, "i1"),
            ty(&dims, "i1")
        ));
        let nothing = self.lines.filled(f64::NEG_INFINITY, &dims);
        let masked = self.lines.value(&format!(
            "stablehlo.select {mask}, {scaled}, {nothing} : {}, {}",
            ty(&dims, "i1"),
            float(&dims)
        ));
        let shares = self.lines.softmax(&masked, &dims);
        Shaped { name: self.narrow(&shares, &dims), dims }
    }

    /// `down(silu(gate x) · up x)`.
    fn mlp(&mut self, x: &str, rows: usize, layer: usize) -> String {
        let (hidden, inner) = (self.program.of.hidden, self.program.of.intermediate);
        let both = self.linear(x, rows, &format!("layer.{layer}.gate_up"), hidden, 2 * inner);
        let gate = self.lines.columns(&both, &[rows, 2 * inner], 0, inner);
        let up = self.lines.columns(&both, &[rows, 2 * inner], inner, 2 * inner);
        let dims = [rows, inner];
        let logistic = self.lines.unary("logistic", &gate, &dims);
        let active = self.lines.binary("multiply", &gate, &logistic, &dims);
        let product = self.lines.binary("multiply", &active, &up, &dims);
        self.linear(&product, rows, &format!("layer.{layer}.down"), inner, hidden)
    }

    /// What all layers read.
    fn shared(&mut self) -> Shared {
        let channels = self.program.of.channels;
        let truth = |dims: &[usize]| ty(dims, "i1");
        match self.program.step {
            Step::Prefill { tokens } => {
                let square = ty(&[tokens, tokens], "i64");
                let [row, column] =
                    [0, 1].map(|dim| self.lines.value(&format!("stablehlo.iota dim = {dim} : {square}")));
                let visible = self.lines.value(&format!(
                    "stablehlo.compare GE, {row}, {column} : ({square}, {square}) -> {}",
                    truth(&[tokens, tokens])
                ));
                Shared {
                    rotations: ["%rotary_cos".to_owned(), "%rotary_sin".to_owned()],
                    rotation_dims: vec![tokens, channels],
                    rotation_axes: vec![1, 3],
                    visible,
                    visible_dims: vec![tokens, tokens],
                    visible_axes: vec![3, 4],
                }
            }
            Step::Decode { capacity } => {
                let zero = self.lines.value("stablehlo.constant dense<0> : tensor<i64>");
                let rotations = ["%rotary_cos", "%rotary_sin"].map(|table| {
                    let (from, row) = (float(&[capacity, channels]), float(&[1, channels]));
                    let row_of = self.lines.value(&format!(
                        "stablehlo.dynamic_slice {table}, %position, {zero}, sizes = [1, {channels}] : ({from}, \
                         tensor<i64>, tensor<i64>) -> {row}"
                    ));
                    self.lines.reshape(&row_of, &[1, channels], &[channels])
                });
                let places = ty(&[capacity], "i64");
                let place = self.lines.value(&format!("stablehlo.iota dim = 0 : {places}"));
                let last = self.lines.value(&format!(
                    "stablehlo.broadcast_in_dim %position, dims = [] : (tensor<i64>) -> {places}"
                ));
                let visible = self.lines.value(&format!(
                    "stablehlo.compare LE, {place}, {last} : ({places}, {places}) -> {}",
                    truth(&[capacity])
                ));
                Shared {
                    rotations,
                    rotation_dims: vec![channels],
                    rotation_axes: vec![3],
                    visible,
                    visible_dims: vec![capacity],
                    visible_axes: vec![4],
                }
            }
        }
    }

    /// The logits after the last token, and the keys and values of all layers in turn.
    fn logits(&mut self) -> (String, Vec<String>) {
        let program = self.program;
        let (of, stored) = (program.of, program.stored.name());
        let (batch, tokens, hidden) = (program.batch, self.tokens(), of.hidden);
        let rows = batch * tokens;
        let shared = self.shared();
        let table = [of.vocabulary, hidden];
        let embedded = self.lines.rows("%embedding", &table, stored, "%ids", &[batch, tokens]);
        let embedded = self.converted(&embedded, &[batch, tokens, hidden], stored, "f32");
        let mut x = self.lines.reshape(&embedded, &[batch, tokens, hidden], &[rows, hidden]);
        let mut caches = Vec::new();
        for layer in 0..of.layers {
            let normal = self.rms_norm(&x, rows, &format!("layer.{layer}.norm.attention"));
            let (attended, kept) = self.attention(&normal, layer, &shared);
            caches.extend(kept);
            x = self.lines.binary("add", &x, &attended, &[rows, hidden]);
            let normal = self.rms_norm(&x, rows, &format!("layer.{layer}.norm.mlp"));
            let moved = self.mlp(&normal, rows, layer);
            x = self.lines.binary("add", &x, &moved, &[rows, hidden]);
        }
        if tokens > 1 {
            let whole = [batch, tokens, hidden];
            let apart = self.lines.reshape(&x, &[rows, hidden], &whole);
            let last = self.lines.value(&format!(
                "stablehlo.slice {apart} [0:{batch}, {}:{tokens}, 0:{hidden}] : ({}) -> {}",
                tokens - 1,
                float(&whole),
                float(&[batch, 1, hidden])
            ));
            x = self.lines.reshape(&last, &[batch, 1, hidden], &[batch, hidden]);
        }
        let normal = self.rms_norm(&x, batch, "norm");
        let head = if program.tied { "embedding" } else { "head" };
        (self.linear(&normal, batch, head, hidden, of.vocabulary), caches)
    }
}
