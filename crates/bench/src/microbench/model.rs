//! The models of a file as StableHLO.

use std::collections::BTreeMap;

use warpforge::{ElementType, Result, Tensor};

use super::graph::{Argument, Function, Graph, Linear, Reduction, Value};
use super::shapes::MatrixShape;

/// Sequence length of a block.
pub(super) const SEQUENCE: usize = 16;
/// Heads of a block.
const HEADS: usize = 8;

/// The model that `n` and rows alone do not describe.
pub(super) const BLOCK: &str = "transformer_block";

/// A model, its weights and its input.
pub(super) struct Case {
    pub(super) graph: Graph,
    /// The input, `x`.
    pub(super) x: Value,
    /// The weights by name, `[columns, depth]`.
    pub(super) weights: Vec<(&'static str, Value)>,
    pub(super) result: Value,
}

/// The model of a type for so many rows, in a graph that says how linear layers compute.
pub(super) fn case(model_type: &str, shape: &MatrixShape, m: usize, mut graph: Graph) -> Case {
    let MatrixShape { k, n, .. } = *shape;
    let element = graph.element;
    if model_type == BLOCK {
        let weights = [("wqkv", [3 * k, k]), ("wo", [k, k]), ("wu", [4 * k, k]), ("wd", [k, 4 * k])]
            .map(|(name, dims)| (name, graph.argument(&dims, element)));
        let x = graph.argument(&[m, SEQUENCE, k], element);
        let result = block(&mut graph, x, weights.map(|(_, value)| value));
        return Case { graph, x, weights: weights.to_vec(), result };
    }
    let w = graph.argument(&[n, k], element);
    let x = graph.argument(&[m, k], element);
    let rows = if model_type == "linear" { x } else { normalized(&mut graph, x, true) };
    let y = graph.linear(rows, w);
    let result = activated(&mut graph, y, model_type.trim_start_matches("ln_linear_"));
    Case { graph, x, weights: vec![("w", w)], result }
}

impl Case {
    /// The model as a function of `x` whose weights are parameters.
    pub(super) fn module(&self) -> String {
        let role = |name: &str| format!(" {{warpforge.name = \"{name}\", warpforge.role = \"parameter\"}}");
        let weights = self.weights.iter().map(|&(name, value)| (value, name.to_owned(), role(name)));
        let x = (self.x, "x".to_owned(), " {warpforge.name = \"x\"}".to_owned());
        let arguments: Vec<Argument> = weights.chain([x]).collect();
        self.graph.function(&arguments, &[self.result])
    }

    /// The input and the weights, as arguments are ordered where weights are no parameters.
    pub(super) fn arguments(&self) -> Vec<Value> {
        [self.x].into_iter().chain(self.weights.iter().map(|&(_, value)| value)).collect()
    }

    /// The values of [`Case::arguments`] in a type.
    pub(super) fn inputs(&self, element: ElementType) -> Result<Vec<Tensor>> {
        let weights = self.weights(element)?;
        let mut inputs = vec![self.input(element)?];
        inputs.extend(self.weights.iter().filter_map(|(name, _)| weights.get(*name).cloned()));
        Ok(inputs)
    }

    /// The sizes of the weights.
    pub(super) fn weight_dims(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        self.weights.iter().map(|&(_, value)| {
            let dims = self.graph.dims(value);
            [dims[0], dims[1]]
        })
    }

    /// Weights with the spread of a trained layer and a few columns of outliers, rounded to a type.
    pub(super) fn weights(&self, element: ElementType) -> Result<BTreeMap<String, Tensor>> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut made = BTreeMap::new();
        for (&(name, _), dims) in self.weights.iter().zip(self.weight_dims()) {
            let scale = (dims[1] as f32).sqrt().recip();
            let column = |random: &mut fastrand::Rng| if random.u8(..) < 3 { 8.0 * scale } else { scale };
            let gains: Vec<f32> = (0..dims[1]).map(|_| column(&mut random)).collect();
            let count = dims[0] * dims[1];
            let values: Vec<f32> = (0..count).map(|at| normal(&mut random) * gains[at % dims[1]]).collect();
            made.insert(name.to_owned(), rounded(&values, &dims, element)?);
        }
        Ok(made)
    }

    /// The input, rounded to a type.
    pub(super) fn input(&self, element: ElementType) -> Result<Tensor> {
        noise_like(self.graph.dims(self.x), element, 6, usize::MAX)
    }

    /// The gradient of the result, rounded to a type: zeros but for the first rows.
    pub(super) fn of_result(&self, element: ElementType, rows: usize) -> Result<Tensor> {
        noise_like(self.graph.dims(self.result), element, 8, rows)
    }
}

/// Values of the normal distribution in the first rows, zeros in the others.
fn noise_like(dims: &[usize], element: ElementType, seed: u64, rows: usize) -> Result<Tensor> {
    let mut random = fastrand::Rng::with_seed(seed);
    let some = dims[1..].iter().product::<usize>() * rows.min(dims[0]);
    let mut values: Vec<f32> = (0..some).map(|_| normal(&mut random)).collect();
    values.resize(dims.iter().product(), 0.0);
    rounded(&values, dims, element)
}

/// Nearly normal: the sum of four uniform values.
fn normal(random: &mut fastrand::Rng) -> f32 {
    let bits = random.u64(..);
    let sum: u64 = (0..4).map(|at| bits >> (16 * at) & 0xffff).sum();
    (sum as f32 / 65_536.0 - 2.0) * 3f32.sqrt()
}

/// Values in a type; f32 where it is none of a model.
pub(super) fn rounded(values: &[f32], dims: &[usize], element: ElementType) -> Result<Tensor> {
    let shape = warpforge::Shape::new(dims)?;
    let (element, bytes): (ElementType, Vec<u8>) = match element {
        ElementType::BF16 => {
            (element, values.iter().flat_map(|&value| half::bf16::from_f32(value).to_le_bytes()).collect())
        }
        ElementType::F16 => {
            (element, values.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect())
        }
        ElementType::F64 => {
            (element, values.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect())
        }
        _ => (ElementType::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
    };
    Ok(Tensor::from_bytes(element, shape, &bytes)?)
}

impl Graph {
    /// `x · wᵀ`.
    fn linear(&mut self, x: Value, weights: Value) -> Value {
        let Some(layers) = self.layers else {
            let along = self.dims(x).len() - 1;
            return self.dot([x, weights], 0, [along, 1]);
        };
        let mut dims = self.dims(x).to_vec();
        let k = dims.pop().unwrap_or(1);
        let rows = dims.iter().product();
        let input = self.reshape(x, &[rows, k]);
        let result = layers.product(self, input, weights);
        self.linears.push(Linear { input, weights, result });
        dims.push(self.dims(result)[1]);
        self.reshape(result, &dims)
    }
}

fn mean(graph: &mut Graph, of: Value) -> Value {
    let last = graph.dims(of).len() - 1;
    let size = graph.dims(of)[last];
    let sum = graph.reduced(of, last, Reduction::Sum);
    let count = graph.splat(size as f64, sum);
    graph.map(Function::Divide, &[sum, count])
}

/// A value for each row, in the sizes of what has the rows.
fn for_rows(graph: &mut Graph, of: Value, like: Value) -> Value {
    let (map, dims) = ((0..graph.dims(of).len()).collect::<Vec<_>>(), graph.dims(like).to_vec());
    graph.repeated(of, &map, &dims)
}

/// LayerNorm, or RMSNorm, without weights.
fn normalized(graph: &mut Graph, x: Value, centred: bool) -> Value {
    let mut wide = graph.convert(x, graph.wide());
    if centred {
        let mean = mean(graph, wide);
        let mean = for_rows(graph, mean, wide);
        wide = graph.map(Function::Subtract, &[wide, mean]);
    }
    let squares = graph.map(Function::Multiply, &[wide, wide]);
    let variance = mean(graph, squares);
    let least = graph.splat(1e-5, variance);
    let sum = graph.map(Function::Add, &[variance, least]);
    let factor = graph.map(Function::Rsqrt, &[sum]);
    let factor = for_rows(graph, factor, wide);
    let result = graph.map(Function::Multiply, &[wide, factor]);
    graph.convert(result, graph.element_of(x))
}

fn activated(graph: &mut Graph, y: Value, name: &str) -> Value {
    if name == "linear" {
        return y;
    }
    let x = graph.convert(y, graph.wide());
    let result = match name {
        "sigmoid" => graph.map(Function::Logistic, &[x]),
        "silu" => {
            let gate = graph.map(Function::Logistic, &[x]);
            graph.map(Function::Multiply, &[x, gate])
        }
        "gelu" => {
            let [half, root, one] =
                [0.5, std::f64::consts::FRAC_1_SQRT_2, 1.0].map(|value| graph.splat(value, x));
            let scaled = graph.map(Function::Multiply, &[x, root]);
            let erf = graph.map(Function::Erf, &[scaled]);
            let sum = graph.map(Function::Add, &[erf, one]);
            let product = graph.map(Function::Multiply, &[x, sum]);
            graph.map(Function::Multiply, &[product, half])
        }
        "leakyrelu" => {
            let slope = graph.splat(0.01, x);
            let leak = graph.map(Function::Multiply, &[x, slope]);
            graph.map(Function::Maximum, &[x, leak])
        }
        "hardswish" => {
            let [three, zero, six] = [3.0, 0.0, 6.0].map(|value| graph.splat(value, x));
            let sum = graph.map(Function::Add, &[x, three]);
            let low = graph.map(Function::Maximum, &[sum, zero]);
            let gate = graph.map(Function::Minimum, &[low, six]);
            let product = graph.map(Function::Multiply, &[x, gate]);
            graph.map(Function::Divide, &[product, six])
        }
        _ => {
            let zero = graph.splat(0.0, x);
            let result = graph.map(Function::Maximum, &[x, zero]);
            if name == "relu6" {
                let six = graph.splat(6.0, x);
                graph.map(Function::Minimum, &[result, six])
            } else {
                result
            }
        }
    };
    graph.convert(result, graph.element_of(y))
}

/// Shares of the last dimension.
fn softmax(graph: &mut Graph, of: Value) -> Value {
    let last = graph.dims(of).len() - 1;
    let largest = graph.reduced(of, last, Reduction::Maximum);
    let largest = for_rows(graph, largest, of);
    let shifted = graph.map(Function::Subtract, &[of, largest]);
    let powers = graph.map(Function::Exponential, &[shifted]);
    let sum = graph.reduced(powers, last, Reduction::Sum);
    let sum = for_rows(graph, sum, of);
    graph.map(Function::Divide, &[powers, sum])
}

/// Attention with 8 heads and an MLP of four times the width, each after RMSNorm, with residuals.
fn block(graph: &mut Graph, x: Value, [wqkv, wo, wu, wd]: [Value; 4]) -> Value {
    let [m, sequence, k] = [0, 1, 2].map(|at: usize| graph.dims(x)[at]);
    let d = k / HEADS;
    let h = normalized(graph, x, false);
    let qkv = graph.linear(h, wqkv);
    let [q, keys, values] = [0, k, 2 * k].map(|first| {
        let part = graph.slice(qkv, first, k);
        let split = graph.reshape(part, &[m, sequence, HEADS, d]);
        graph.transpose(split, &[0, 2, 1, 3])
    });
    let scores = graph.dot([q, keys], 2, [3, 3]);
    let scores = graph.convert(scores, graph.wide());
    let scale = graph.splat(1.0 / (d as f64).sqrt(), scores);
    let scores = graph.map(Function::Multiply, &[scores, scale]);
    let shares = softmax(graph, scores);
    let shares = graph.convert(shares, graph.element);
    let context = graph.dot([shares, values], 2, [3, 2]);
    let context = graph.transpose(context, &[0, 2, 1, 3]);
    let context = graph.reshape(context, &[m, sequence, k]);
    let projected = graph.linear(context, wo);
    let x = graph.map(Function::Add, &[x, projected]);
    let h = normalized(graph, x, false);
    let up = graph.linear(h, wu);
    let up = activated(graph, up, "gelu");
    let down = graph.linear(up, wd);
    graph.map(Function::Add, &[x, down])
}
