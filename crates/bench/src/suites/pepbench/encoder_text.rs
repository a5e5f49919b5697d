//! StableHLO text of an encoder with mean pooling: token ids in, unit vectors out.

use super::architecture::Architecture;
use super::emit::{Lines, float, ty, variable};

/// A function in the making.
struct Text<'a> {
    of: &'a Architecture,
    batch: usize,
    length: usize,
    lines: Lines,
}

/// The module of an encoder for batches of this many sentences of this many tokens.
pub(super) fn module(of: &Architecture, batch: usize, length: usize) -> String {
    let mut text = Text { of, batch, length, lines: Lines::default() };
    let result = text.embeddings();
    let ids = ty(&[batch, length], "i64");
    let mut arguments: Vec<String> = ["input_ids", "attention_mask"]
        .map(|name| format!("%{name}: {ids} {{warpforge.name = \"{name}\"}}"))
        .into();
    arguments.extend(of.parameters().iter().map(|(name, dims)| {
        format!(
            "%{}: {} {{warpforge.name = \"{name}\", warpforge.role = \"parameter\"}}",
            variable(name),
            float(dims)
        )
    }));
    let out = float(&[batch, of.hidden]);
    format!(
        "func.func @main({}) -> ({out} {{warpforge.name = \"embeddings\"}}) {{\n{}\n  func.return {result} : {out}\n}}\n",
        arguments.join(", "),
        text.lines.text()
    )
}

impl Text<'_> {
    fn states(&self) -> [usize; 3] {
        [self.batch, self.length, self.of.hidden]
    }

    /// `x W' + b`, the weight as PyTorch has it: a row per output.
    fn linear(&mut self, x: &str, name: &str, inputs: usize, outputs: usize) -> String {
        let (rows, out) = ([self.batch, self.length, inputs], [self.batch, self.length, outputs]);
        let name = variable(name);
        let product = self.lines.value(&format!(
            "stablehlo.dot_general {x}, %{name}_weight, contracting_dims = [2] x [1] : ({}, {}) -> {}",
            float(&rows),
            float(&[outputs, inputs]),
            float(&out)
        ));
        let bias = self.lines.broadcast(&format!("%{name}_bias"), &[outputs], &[2], &out);
        self.lines.binary("add", &product, &bias, &out)
    }

    fn layer_norm(&mut self, x: &str, name: &str) -> String {
        let dims = self.states();
        let rows = [dims[0], dims[1]];
        let name = variable(name);
        let mean = self.mean(x, &dims);
        let mean = self.lines.broadcast(&mean, &rows, &[0, 1], &dims);
        let centred = self.lines.binary("subtract", x, &mean, &dims);
        let squares = self.lines.binary("multiply", &centred, &centred, &dims);
        let variance = self.mean(&squares, &dims);
        let epsilon = self.lines.filled(self.of.epsilon, &rows);
        let variance = self.lines.binary("add", &variance, &epsilon, &rows);
        let scale = self.lines.unary("rsqrt", &variance, &rows);
        let scale = self.lines.broadcast(&scale, &rows, &[0, 1], &dims);
        let normal = self.lines.binary("multiply", &centred, &scale, &dims);
        let weight = self.lines.broadcast(&format!("%{name}_weight"), &[dims[2]], &[2], &dims);
        let bias = self.lines.broadcast(&format!("%{name}_bias"), &[dims[2]], &[2], &dims);
        let scaled = self.lines.binary("multiply", &normal, &weight, &dims);
        self.lines.binary("add", &scaled, &bias, &dims)
    }

    /// The mean along the last axis.
    fn mean(&mut self, x: &str, dims: &[usize; 3]) -> String {
        let sum = self.lines.reduce("add", 0.0, x, dims, 2);
        let count = self.lines.filled(dims[2] as f64, &dims[..2]);
        self.lines.binary("divide", &sum, &count, &dims[..2])
    }

    fn gelu(&mut self, x: &str, dims: &[usize]) -> String {
        let root = self.lines.filled(std::f64::consts::FRAC_1_SQRT_2, dims);
        let scaled = self.lines.binary("multiply", x, &root, dims);
        let erf = self.lines.value(&format!("chlo.erf {scaled} : {0} -> {0}", float(dims)));
        let one = self.lines.filled(1.0, dims);
        let sum = self.lines.binary("add", &erf, &one, dims);
        let half = self.lines.filled(0.5, dims);
        let halved = self.lines.binary("multiply", x, &half, dims);
        self.lines.binary("multiply", &halved, &sum, dims)
    }

    /// The heads of a projection: `[batch, head, token, channel]`.
    fn heads(&mut self, x: &str) -> String {
        let (batch, length, heads) = (self.batch, self.length, self.of.heads);
        let each = self.of.hidden / heads;
        let split = float(&[batch, length, heads, each]);
        let reshaped =
            self.lines.value(&format!("stablehlo.reshape {x} : ({}) -> {split}", float(&self.states())));
        let to = float(&[batch, heads, length, each]);
        self.lines.value(&format!("stablehlo.transpose {reshaped}, dims = [0, 2, 1, 3] : ({split}) -> {to}"))
    }

    /// Attention of one layer; `visible` says of each key whether it is a token.
    fn attention(&mut self, x: &str, layer: &str, visible: &str) -> String {
        let (batch, length, heads) = (self.batch, self.length, self.of.heads);
        let (hidden, each) = (self.of.hidden, self.of.hidden / heads);
        let [query, key, value] = ["query", "key", "value"].map(|part| {
            let projected = self.linear(x, &format!("{layer}.attention.self.{part}"), hidden, hidden);
            self.heads(&projected)
        });
        let (of_heads, scores) = ([batch, heads, length, each], [batch, heads, length, length]);
        let (head, score) = (float(&of_heads), float(&scores));
        let dots = self.lines.value(&format!(
            "stablehlo.dot_general {query}, {key}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : \
             ({head}, {head}) -> {score}"
        ));
        let scale = self.lines.filled(1.0 / (each as f64).sqrt(), &scores);
        let scaled = self.lines.binary("multiply", &dots, &scale, &scores);
        let mask = self.lines.value(&format!(
            "stablehlo.broadcast_in_dim {visible}, dims = [0, 3] : ({}) -> {}",
            ty(&[batch, length], "i1"),
            ty(&scores, "i1")
        ));
        let nothing = self.lines.filled(f64::NEG_INFINITY, &scores);
        let masked = self
            .lines
            .value(&format!("stablehlo.select {mask}, {scaled}, {nothing} : {}, {score}", ty(&scores, "i1")));
        let shares = self.lines.softmax(&masked, &scores);
        let mixed = self.lines.value(&format!(
            "stablehlo.dot_general {shares}, {value}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : \
             ({score}, {head}) -> {head}"
        ));
        let turned = float(&[batch, length, heads, each]);
        let back = self
            .lines
            .value(&format!("stablehlo.transpose {mixed}, dims = [0, 2, 1, 3] : ({head}) -> {turned}"));
        let joined =
            self.lines.value(&format!("stablehlo.reshape {back} : ({turned}) -> {}", float(&self.states())));
        self.linear(&joined, &format!("{layer}.attention.output.dense"), hidden, hidden)
    }

    /// What the first layer reads: the tables' rows, summed and normalized.
    fn inputs(&mut self) -> String {
        let dims = self.states();
        let [batch, length, hidden] = dims;
        let table = [self.of.vocabulary, hidden];
        let words = "%embeddings_word_embeddings_weight";
        let words = self.lines.rows(words, &table, "f32", "%input_ids", &[batch, length]);
        let mut sum = words;
        let tables = [("position", self.of.positions, length), ("token_type", self.of.types, 1)];
        for (table, rows, used) in tables {
            let part = self.lines.value(&format!(
                "stablehlo.slice %embeddings_{table}_embeddings_weight [0:{used}, 0:{hidden}] : ({}) -> {}",
                float(&[rows, hidden]),
                float(&[used, hidden])
            ));
            let (part, from, axes) = if used == 1 {
                let row = self.lines.value(&format!(
                    "stablehlo.reshape {part} : ({}) -> {}",
                    float(&[1, hidden]),
                    float(&[hidden])
                ));
                (row, vec![hidden], vec![2])
            } else {
                (part, vec![used, hidden], vec![1, 2])
            };
            let spread = self.lines.broadcast(&part, &from, &axes, &dims);
            sum = self.lines.binary("add", &sum, &spread, &dims);
        }
        self.layer_norm(&sum, "embeddings.LayerNorm")
    }

    /// The last layer's states, averaged over the tokens of each sentence, as unit vectors.
    fn embeddings(&mut self) -> String {
        let dims = self.states();
        let [batch, length, hidden] = dims;
        let mask = ty(&[batch, length], "i64");
        let zero = self.lines.value(&format!("stablehlo.constant dense<0> : {mask}"));
        let visible = self.lines.value(&format!(
            "stablehlo.compare NE, %attention_mask, {zero} : ({mask}, {mask}) -> {}",
            ty(&[batch, length], "i1")
        ));
        let mut x = self.inputs();
        for layer in 0..self.of.layers {
            let layer = format!("encoder.layer.{layer}");
            let attended = self.attention(&x, &layer, &visible);
            let sum = self.lines.binary("add", &attended, &x, &dims);
            x = self.layer_norm(&sum, &format!("{layer}.attention.output.LayerNorm"));
            let inner = self.linear(&x, &format!("{layer}.intermediate.dense"), hidden, self.of.intermediate);
            let inner = self.gelu(&inner, &[batch, length, self.of.intermediate]);
            let outer = self.linear(&inner, &format!("{layer}.output.dense"), self.of.intermediate, hidden);
            let sum = self.lines.binary("add", &outer, &x, &dims);
            x = self.layer_norm(&sum, &format!("{layer}.output.LayerNorm"));
        }
        let (tokens, out) = ([batch, length], [batch, hidden]);
        let counted =
            self.lines.value(&format!("stablehlo.convert %attention_mask : ({mask}) -> {}", float(&tokens)));
        let weights = self.lines.broadcast(&counted, &tokens, &[0, 1], &dims);
        let weighted = self.lines.binary("multiply", &x, &weights, &dims);
        let sum = self.lines.reduce("add", 0.0, &weighted, &dims, 1);
        let count = self.lines.reduce("add", 0.0, &counted, &tokens, 1);
        let count = self.lines.broadcast(&count, &[batch], &[0], &out);
        let mean = self.lines.binary("divide", &sum, &count, &out);
        let squares = self.lines.binary("multiply", &mean, &mean, &out);
        let norm = self.lines.reduce("add", 0.0, &squares, &out, 1);
        let scale = self.lines.unary("rsqrt", &norm, &[batch]);
        let scale = self.lines.broadcast(&scale, &[batch], &[0], &out);
        self.lines.binary("multiply", &mean, &scale, &out)
    }
}
