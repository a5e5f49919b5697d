//! StableHLO text of an encoder with mean pooling: token ids in, unit vectors out.

use super::architecture::Architecture;

/// A function in the making: each line defines a value, whose name is given back.
struct Text<'a> {
    of: &'a Architecture,
    batch: usize,
    length: usize,
    lines: Vec<String>,
}

/// The module of an encoder for batches of this many sentences of this many tokens.
pub(super) fn module(of: &Architecture, batch: usize, length: usize) -> String {
    let mut text = Text { of, batch, length, lines: Vec::new() };
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
        text.lines.join("\n")
    )
}

fn ty(dims: &[usize], element: &str) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

fn float(dims: &[usize]) -> String {
    ty(dims, "f32")
}

fn variable(name: &str) -> String {
    name.replace('.', "_")
}

impl Text<'_> {
    /// Adds a line that computes a value.
    fn value(&mut self, expression: &str) -> String {
        let name = format!("%v{}", self.lines.len());
        self.lines.push(format!("  {name} = {expression}"));
        name
    }

    fn number(&mut self, value: f64) -> String {
        let value = if value == f64::NEG_INFINITY { "0xFF800000".to_owned() } else { format!("{value:.9e}") };
        self.value(&format!("stablehlo.constant dense<{value}> : tensor<f32>"))
    }

    fn binary(&mut self, op: &str, left: &str, right: &str, dims: &[usize]) -> String {
        self.value(&format!("stablehlo.{op} {left}, {right} : {}", float(dims)))
    }

    fn unary(&mut self, op: &str, of: &str, dims: &[usize]) -> String {
        self.value(&format!("stablehlo.{op} {of} : {}", float(dims)))
    }

    /// Repeats a value along the dimensions that `axes` leaves out.
    fn broadcast(&mut self, of: &str, from: &[usize], axes: &[usize], to: &[usize]) -> String {
        let (from, to) = (float(from), float(to));
        self.value(&format!("stablehlo.broadcast_in_dim {of}, dims = {axes:?} : ({from}) -> {to}"))
    }

    /// A number for each element.
    fn filled(&mut self, value: f64, dims: &[usize]) -> String {
        let number = self.number(value);
        self.broadcast(&number, &[], &[], dims)
    }

    /// Reduces along one axis, which is left out.
    fn reduce(&mut self, op: &str, init: f64, of: &str, dims: &[usize], axis: usize) -> String {
        let init = self.number(init);
        let kept: Vec<usize> = (0..dims.len()).filter(|&at| at != axis).map(|at| dims[at]).collect();
        let (from, to) = (float(dims), float(&kept));
        self.value(&format!(
            "stablehlo.reduce({of} init: {init}) applies stablehlo.{op} across dimensions = [{axis}] : \
             ({from}, tensor<f32>) -> {to}"
        ))
    }

    fn states(&self) -> [usize; 3] {
        [self.batch, self.length, self.of.hidden]
    }

    /// `x W' + b`, the weight as PyTorch has it: a row per output.
    fn linear(&mut self, x: &str, name: &str, inputs: usize, outputs: usize) -> String {
        let (rows, out) = ([self.batch, self.length, inputs], [self.batch, self.length, outputs]);
        let name = variable(name);
        let product = self.value(&format!(
            "stablehlo.dot_general {x}, %{name}_weight, contracting_dims = [2] x [1] : ({}, {}) -> {}",
            float(&rows),
            float(&[outputs, inputs]),
            float(&out)
        ));
        let bias = self.broadcast(&format!("%{name}_bias"), &[outputs], &[2], &out);
        self.binary("add", &product, &bias, &out)
    }

    fn layer_norm(&mut self, x: &str, name: &str) -> String {
        let dims = self.states();
        let rows = [dims[0], dims[1]];
        let name = variable(name);
        let mean = self.mean(x, &dims);
        let mean = self.broadcast(&mean, &rows, &[0, 1], &dims);
        let centred = self.binary("subtract", x, &mean, &dims);
        let squares = self.binary("multiply", &centred, &centred, &dims);
        let variance = self.mean(&squares, &dims);
        let epsilon = self.filled(self.of.epsilon, &rows);
        let variance = self.binary("add", &variance, &epsilon, &rows);
        let scale = self.unary("rsqrt", &variance, &rows);
        let scale = self.broadcast(&scale, &rows, &[0, 1], &dims);
        let normal = self.binary("multiply", &centred, &scale, &dims);
        let weight = self.broadcast(&format!("%{name}_weight"), &[dims[2]], &[2], &dims);
        let bias = self.broadcast(&format!("%{name}_bias"), &[dims[2]], &[2], &dims);
        let scaled = self.binary("multiply", &normal, &weight, &dims);
        self.binary("add", &scaled, &bias, &dims)
    }

    /// The mean along the last axis.
    fn mean(&mut self, x: &str, dims: &[usize; 3]) -> String {
        let sum = self.reduce("add", 0.0, x, dims, 2);
        let count = self.filled(dims[2] as f64, &dims[..2]);
        self.binary("divide", &sum, &count, &dims[..2])
    }

    fn gelu(&mut self, x: &str, dims: &[usize]) -> String {
        let root = self.filled(std::f64::consts::FRAC_1_SQRT_2, dims);
        let scaled = self.binary("multiply", x, &root, dims);
        let erf = self.value(&format!("chlo.erf {scaled} : {0} -> {0}", float(dims)));
        let one = self.filled(1.0, dims);
        let sum = self.binary("add", &erf, &one, dims);
        let half = self.filled(0.5, dims);
        let halved = self.binary("multiply", x, &half, dims);
        self.binary("multiply", &halved, &sum, dims)
    }

    /// The heads of a projection: `[batch, head, token, channel]`.
    fn heads(&mut self, x: &str) -> String {
        let (batch, length, heads) = (self.batch, self.length, self.of.heads);
        let each = self.of.hidden / heads;
        let split = float(&[batch, length, heads, each]);
        let reshaped = self.value(&format!("stablehlo.reshape {x} : ({}) -> {split}", float(&self.states())));
        let to = float(&[batch, heads, length, each]);
        self.value(&format!("stablehlo.transpose {reshaped}, dims = [0, 2, 1, 3] : ({split}) -> {to}"))
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
        let dots = self.value(&format!(
            "stablehlo.dot_general {query}, {key}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : \
             ({head}, {head}) -> {score}"
        ));
        let scale = self.filled(1.0 / (each as f64).sqrt(), &scores);
        let scaled = self.binary("multiply", &dots, &scale, &scores);
        let mask = self.value(&format!(
            "stablehlo.broadcast_in_dim {visible}, dims = [0, 3] : ({}) -> {}",
            ty(&[batch, length], "i1"),
            ty(&scores, "i1")
        ));
        let nothing = self.filled(f64::NEG_INFINITY, &scores);
        let masked = self
            .value(&format!("stablehlo.select {mask}, {scaled}, {nothing} : {}, {score}", ty(&scores, "i1")));
        let shares = self.softmax(&masked, &scores);
        let mixed = self.value(&format!(
            "stablehlo.dot_general {shares}, {value}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : \
             ({score}, {head}) -> {head}"
        ));
        let turned = float(&[batch, length, heads, each]);
        let back =
            self.value(&format!("stablehlo.transpose {mixed}, dims = [0, 2, 1, 3] : ({head}) -> {turned}"));
        let joined =
            self.value(&format!("stablehlo.reshape {back} : ({turned}) -> {}", float(&self.states())));
        self.linear(&joined, &format!("{layer}.attention.output.dense"), hidden, hidden)
    }

    fn softmax(&mut self, x: &str, dims: &[usize; 4]) -> String {
        let rows = &dims[..3];
        let most = self.reduce("maximum", f64::NEG_INFINITY, x, dims, 3);
        let most = self.broadcast(&most, rows, &[0, 1, 2], dims);
        let less = self.binary("subtract", x, &most, dims);
        let powers = self.unary("exponential", &less, dims);
        let sum = self.reduce("add", 0.0, &powers, dims, 3);
        let sum = self.broadcast(&sum, rows, &[0, 1, 2], dims);
        self.binary("divide", &powers, &sum, dims)
    }

    /// What the first layer reads: the tables' rows, summed and normalized.
    fn inputs(&mut self) -> String {
        let dims = self.states();
        let [batch, length, hidden] = dims;
        let words = self.value(&format!(
            "\"stablehlo.gather\"(%embeddings_word_embeddings_weight, %input_ids) <{{dimension_numbers = \
             #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], \
             index_vector_dim = 2>, slice_sizes = array<i64: 1, {hidden}>}}> : ({}, {}) -> {}",
            float(&[self.of.vocabulary, hidden]),
            ty(&[batch, length], "i64"),
            float(&dims)
        ));
        let mut sum = words;
        let tables = [("position", self.of.positions, length), ("token_type", self.of.types, 1)];
        for (table, rows, used) in tables {
            let part = self.value(&format!(
                "stablehlo.slice %embeddings_{table}_embeddings_weight [0:{used}, 0:{hidden}] : ({}) -> {}",
                float(&[rows, hidden]),
                float(&[used, hidden])
            ));
            let (part, from, axes) = if used == 1 {
                let row = self.value(&format!(
                    "stablehlo.reshape {part} : ({}) -> {}",
                    float(&[1, hidden]),
                    float(&[hidden])
                ));
                (row, vec![hidden], vec![2])
            } else {
                (part, vec![used, hidden], vec![1, 2])
            };
            let spread = self.broadcast(&part, &from, &axes, &dims);
            sum = self.binary("add", &sum, &spread, &dims);
        }
        self.layer_norm(&sum, "embeddings.LayerNorm")
    }

    /// The last layer's states, averaged over the tokens of each sentence, as unit vectors.
    fn embeddings(&mut self) -> String {
        let dims = self.states();
        let [batch, length, hidden] = dims;
        let mask = ty(&[batch, length], "i64");
        let zero = self.value(&format!("stablehlo.constant dense<0> : {mask}"));
        let visible = self.value(&format!(
            "stablehlo.compare NE, %attention_mask, {zero} : ({mask}, {mask}) -> {}",
            ty(&[batch, length], "i1")
        ));
        let mut x = self.inputs();
        for layer in 0..self.of.layers {
            let layer = format!("encoder.layer.{layer}");
            let attended = self.attention(&x, &layer, &visible);
            let sum = self.binary("add", &attended, &x, &dims);
            x = self.layer_norm(&sum, &format!("{layer}.attention.output.LayerNorm"));
            let inner = self.linear(&x, &format!("{layer}.intermediate.dense"), hidden, self.of.intermediate);
            let inner = self.gelu(&inner, &[batch, length, self.of.intermediate]);
            let outer = self.linear(&inner, &format!("{layer}.output.dense"), self.of.intermediate, hidden);
            let sum = self.binary("add", &outer, &x, &dims);
            x = self.layer_norm(&sum, &format!("{layer}.output.LayerNorm"));
        }
        let (tokens, out) = ([batch, length], [batch, hidden]);
        let counted =
            self.value(&format!("stablehlo.convert %attention_mask : ({mask}) -> {}", float(&tokens)));
        let weights = self.broadcast(&counted, &tokens, &[0, 1], &dims);
        let weighted = self.binary("multiply", &x, &weights, &dims);
        let sum = self.reduce("add", 0.0, &weighted, &dims, 1);
        let count = self.reduce("add", 0.0, &counted, &tokens, 1);
        let count = self.broadcast(&count, &[batch], &[0], &out);
        let mean = self.binary("divide", &sum, &count, &out);
        let squares = self.binary("multiply", &mean, &mean, &out);
        let norm = self.reduce("add", 0.0, &squares, &out, 1);
        let scale = self.unary("rsqrt", &norm, &[batch]);
        let scale = self.broadcast(&scale, &[batch], &[0], &out);
        self.binary("multiply", &mean, &scale, &out)
    }
}
