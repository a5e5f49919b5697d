//! The decoder in plain loops, one token at a time: the answers that programs are held to.

use super::checkpoint::{Checkpoint, rounded};
use super::program::Stored;

/// A sequence in the making. Numbers are rounded where the programs store them in a narrow type; sums are f64.
pub(in crate::suites) struct Reference<'a> {
    of: &'a Checkpoint,
    stored: Stored,
    /// Keys and values of each layer: `[head][position][channel]` for `capacity` positions.
    pub(in crate::suites) cache: Vec<[Vec<f32>; 2]>,
    capacity: usize,
}

impl<'a> Reference<'a> {
    /// A sequence of at most so many tokens. The weights are rounded already.
    pub(in crate::suites) fn new(of: &'a Checkpoint, stored: Stored, capacity: usize) -> Self {
        let empty = || vec![0.0; of.sizes.keys() * capacity];
        let cache = (0..of.sizes.layers).map(|_| [empty(), empty()]).collect();
        Self { of, stored, cache, capacity }
    }

    /// Where a position's keys or values of a head are in the cache.
    pub(in crate::suites) fn place(&self, head: usize, position: usize) -> std::ops::Range<usize> {
        let channels = self.of.sizes.channels;
        let first = (head * self.capacity + position) * channels;
        first..first + channels
    }

    /// The logits after one more token at this position; the cache has what comes before.
    pub(in crate::suites) fn step(&mut self, token: usize, position: usize) -> Vec<f32> {
        let of = self.of;
        let sizes = &of.sizes;
        let embedding = of.weight("embedding");
        let mut x = embedding[token * sizes.hidden..(token + 1) * sizes.hidden].to_vec();
        let rotation: Vec<(f64, f64)> = (0..sizes.channels / 2)
            .map(|channel| {
                let frequency = sizes.theta.powf(-2.0 * channel as f64 / sizes.channels as f64);
                let angle = position as f64 * frequency;
                (angle.cos(), angle.sin())
            })
            .collect();
        for layer in 0..sizes.layers {
            let weight = |name: &str| of.matrix(&format!("layer.{layer}.{name}"));
            let normal = self.normal(&x, weight("norm.attention"));
            let mut qkv = self.multiplied(weight("qkv"), &normal);
            let (turned, values) = qkv.split_at_mut(sizes.queries() + sizes.keys());
            turned.chunks_mut(sizes.channels).for_each(|head| rotate(head, &rotation));
            let (queries, keys) = turned.split_at(sizes.queries());
            for (part, from) in [keys, &*values].into_iter().enumerate() {
                for (head, from) in from.chunks(sizes.channels).enumerate() {
                    let place = self.place(head, position);
                    for (to, from) in self.cache[layer][part][place].iter_mut().zip(from) {
                        *to = rounded(*from, self.stored);
                    }
                }
            }
            let mixed = self.attended(layer, queries, position);
            add(&mut x, &self.multiplied(weight("output"), &mixed));
            let normal = self.normal(&x, weight("norm.mlp"));
            let both = self.multiplied(weight("gate_up"), &normal);
            let (gate, up) = both.split_at(sizes.intermediate);
            let active: Vec<f32> = gate.iter().zip(up).map(|(&gate, &up)| silu(gate) * up).collect();
            add(&mut x, &self.multiplied(weight("down"), &active));
        }
        let normal = self.normal(&x, of.weight("norm"));
        self.multiplied(of.head(), &normal)
    }

    /// Attention of all heads of a token to what is in the cache up to its position.
    fn attended(&self, layer: usize, queries: &[f32], position: usize) -> Vec<f32> {
        let sizes = &self.of.sizes;
        let scale = 1.0 / (sizes.channels as f64).sqrt();
        let mut mixed = Vec::with_capacity(queries.len());
        for (head, query) in queries.chunks(sizes.channels).enumerate() {
            let query: Vec<f32> = query.iter().map(|&value| rounded(value, self.stored)).collect();
            let shared = head / sizes.group();
            let [keys, values] = &self.cache[layer];
            let scores: Vec<f64> =
                (0..=position).map(|at| dot(&keys[self.place(shared, at)], &query) * scale).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            let mut out = vec![0.0f64; sizes.channels];
            for (at, power) in powers.iter().enumerate() {
                let share = f64::from(rounded((power / sum) as f32, self.stored));
                for (out, value) in out.iter_mut().zip(&values[self.place(shared, at)]) {
                    *out += share * f64::from(*value);
                }
            }
            mixed.extend(out.into_iter().map(|value| value as f32));
        }
        mixed
    }

    /// RMS norm.
    fn normal(&self, x: &[f32], weight: &[f32]) -> Vec<f32> {
        let mean = dot(x, x) / x.len() as f64;
        let scale = (mean + self.of.sizes.epsilon).sqrt().recip();
        x.iter().zip(weight).map(|(&x, &weight)| (f64::from(x) * scale) as f32 * weight).collect()
    }

    /// A matrix times a vector.
    fn multiplied(&self, matrix: &[f32], x: &[f32]) -> Vec<f32> {
        let mut x: Vec<f32> = x.iter().map(|&value| rounded(value, self.stored)).collect();
        if let Some(recipe) = self.of.recipe {
            x = recipe.restored_activations(&x);
        }
        matrix.chunks_exact(x.len()).map(|row| dot(row, &x) as f32).collect()
    }
}

fn add(x: &mut [f32], other: &[f32]) {
    x.iter_mut().zip(other).for_each(|(x, other)| *x += other);
}

fn silu(x: f32) -> f32 {
    let x = f64::from(x);
    (x / (1.0 + (-x).exp())) as f32
}

/// Rotates the channels of the two halves of a head against each other.
fn rotate(head: &mut [f32], rotation: &[(f64, f64)]) {
    let (low, high) = head.split_at_mut(rotation.len());
    for ((low, high), (cos, sin)) in low.iter_mut().zip(high).zip(rotation) {
        let (x, y) = (f64::from(*low), f64::from(*high));
        *low = (x * cos - y * sin) as f32;
        *high = (y * cos + x * sin) as f32;
    }
}

/// A sum of products in f64, by eight sums so that it is not one chain of additions.
fn dot(left: &[f32], right: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (left, right) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder());
    let rest: f64 = rest.map(|(left, right)| f64::from(*left) * f64::from(*right)).sum();
    for (left, right) in left.zip(right) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += f64::from(*left) * f64::from(*right);
        }
    }
    sums.iter().sum::<f64>() + rest
}
