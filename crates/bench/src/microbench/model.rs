//! The models of a file as StableHLO.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpforge::{ElementType, Result, Tensor};

use super::shapes::MatrixShape;

/// Sequence length of a block.
const SEQUENCE: usize = 16;
/// Heads of a block.
const HEADS: usize = 8;

/// A module, its weights and the sizes of its input.
pub(super) struct Case {
    /// The module.
    pub(super) text: String,
    /// The weights by name, `[columns, depth]`.
    pub(super) weights: Vec<(&'static str, Vec<usize>)>,
    /// The sizes of `x`.
    pub(super) input: Vec<usize>,
}

/// The model of a type for so many rows, computing in an element type.
pub(super) fn case(model_type: &str, shape: &MatrixShape, m: usize, element: ElementType) -> Case {
    let mut text = Text::new(element);
    let MatrixShape { k, n, .. } = *shape;
    let (weights, input, result) = if model_type == "transformer_block" {
        let result = block(&mut text, m, k);
        (
            vec![
                ("wqkv", vec![3 * k, k]),
                ("wo", vec![k, k]),
                ("wu", vec![4 * k, k]),
                ("wd", vec![k, 4 * k]),
            ],
            vec![m, SEQUENCE, k],
            result,
        )
    } else {
        let x = Value { name: "%x".to_owned(), dims: vec![m, k], element };
        let x = if model_type == "linear" { x } else { text.normalized(&x, true) };
        let y = text.linear(&x, "%w", n);
        let result = text.activated(&y, model_type.trim_start_matches("ln_linear_"));
        (vec![("w", vec![n, k])], vec![m, k], result)
    };
    let mut arguments: Vec<String> = weights
        .iter()
        .map(|(name, dims)| {
            format!(
                "%{name}: {} {{warpforge.name = \"{name}\", warpforge.role = \"parameter\"}}",
                ty(dims, element)
            )
        })
        .collect();
    arguments.push(format!("%x: {} {{warpforge.name = \"x\"}}", ty(&input, element)));
    let given = ty(&result.dims, result.element);
    let text = format!(
        "func.func @main({}) -> {given} {{\n{}  func.return {} : {given}\n}}\n",
        arguments.join(", "),
        text.body,
        result.name
    );
    Case { text, weights, input }
}

impl Case {
    /// Weights with the spread of a trained layer and a few columns of outliers, rounded to a type.
    pub(super) fn weights(&self, element: ElementType) -> Result<BTreeMap<String, Tensor>> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut made = BTreeMap::new();
        for (name, dims) in &self.weights {
            let scale = (dims[1] as f32).sqrt().recip();
            let column = |random: &mut fastrand::Rng| if random.u8(..) < 3 { 8.0 * scale } else { scale };
            let gains: Vec<f32> = (0..dims[1]).map(|_| column(&mut random)).collect();
            let count = dims[0] * dims[1];
            let values: Vec<f32> = (0..count).map(|at| normal(&mut random) * gains[at % dims[1]]).collect();
            made.insert((*name).to_owned(), rounded(&values, dims, element)?);
        }
        Ok(made)
    }

    /// The input, rounded to a type.
    pub(super) fn input(&self, element: ElementType) -> Result<Tensor> {
        let mut random = fastrand::Rng::with_seed(6);
        let values: Vec<f32> = (0..self.input.iter().product()).map(|_| normal(&mut random)).collect();
        rounded(&values, &self.input, element)
    }
}

/// Nearly normal: the sum of four uniform values.
fn normal(random: &mut fastrand::Rng) -> f32 {
    let bits = random.u64(..);
    let sum: u64 = (0..4).map(|at| bits >> (16 * at) & 0xffff).sum();
    (sum as f32 / 65_536.0 - 2.0) * 3f32.sqrt()
}

fn rounded(values: &[f32], dims: &[usize], element: ElementType) -> Result<Tensor> {
    let bytes: Vec<u8> = match element {
        ElementType::BF16 => {
            values.iter().flat_map(|&value| half::bf16::from_f32(value).to_le_bytes()).collect()
        }
        ElementType::F16 => {
            values.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes()).collect()
        }
        ElementType::F64 => values.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    let element = if matches!(element, ElementType::BF16 | ElementType::F16 | ElementType::F64) {
        element
    } else {
        ElementType::F32
    };
    Ok(Tensor::from_bytes(element, warpforge::Shape::new(dims)?, &bytes)?)
}

/// A tensor type.
pub(super) fn ty(dims: &[usize], element: ElementType) -> String {
    let mut text = "tensor<".to_owned();
    for dim in dims {
        let _ = write!(text, "{dim}x");
    }
    format!("{text}{element}>")
}

/// A value of a function.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    pub(super) element: ElementType,
}

impl Value {
    pub(super) fn ty(&self) -> String {
        ty(&self.dims, self.element)
    }
}

/// The lines of a function.
pub(super) struct Text {
    /// The type of the model.
    pub(super) element: ElementType,
    body: String,
    next: usize,
}

impl Text {
    pub(super) fn new(element: ElementType) -> Self {
        Self { element, body: String::new(), next: 0 }
    }

    /// The lines as a function of arguments.
    pub(super) fn function(self, arguments: &[&Value], results: &[&Value]) -> String {
        let list = |values: &[&Value], part: &dyn Fn(&Value) -> String| {
            values.iter().map(|value| part(value)).collect::<Vec<_>>().join(", ")
        };
        let (names, types) = (list(results, &|value| value.name.clone()), list(results, &Value::ty));
        format!(
            "func.func @main({}) -> ({types}) {{\n{}  func.return {names} : {types}\n}}\n",
            list(arguments, &|value| format!("{}: {}", value.name, value.ty())),
            self.body
        )
    }

    /// The type that functions are computed in.
    fn wide(&self) -> ElementType {
        if self.element == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
    }

    pub(super) fn line(&mut self, dims: &[usize], element: ElementType, op: &str) -> Value {
        let name = format!("%v{}", self.next);
        self.next += 1;
        let _ = writeln!(self.body, "  {name} = {op}");
        Value { name, dims: dims.to_vec(), element }
    }

    pub(super) fn convert(&mut self, of: &Value, element: ElementType) -> Value {
        if of.element == element {
            return of.clone();
        }
        let op = format!("stablehlo.convert {} : ({}) -> {}", of.name, of.ty(), ty(&of.dims, element));
        self.line(&of.dims, element, &op)
    }

    pub(super) fn map(&mut self, op: &str, inputs: &[&Value]) -> Value {
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let text = match op {
            "chlo.erf" => format!("chlo.erf {} : {} -> {}", names[0], inputs[0].ty(), inputs[0].ty()),
            _ => format!("stablehlo.{op} {} : {}", names.join(", "), inputs[0].ty()),
        };
        self.line(&inputs[0].dims, inputs[0].element, &text)
    }

    pub(super) fn splat(&mut self, value: f64, like: &Value) -> Value {
        let op = format!("stablehlo.constant dense<{value:.17}> : {}", like.ty());
        self.line(&like.dims, like.element, &op)
    }

    fn repeated(&mut self, of: &Value, dims: &[usize]) -> Value {
        let map: Vec<usize> = (0..of.dims.len()).collect();
        self.repeated_along(of, &map, dims)
    }

    /// A value whose dimensions are those of a larger one.
    pub(super) fn repeated_along(&mut self, of: &Value, map: &[usize], dims: &[usize]) -> Value {
        let to = ty(dims, of.element);
        let op = format!("stablehlo.broadcast_in_dim {}, dims = {map:?} : ({}) -> {to}", of.name, of.ty());
        self.line(dims, of.element, &op)
    }

    /// A reduction of the last dimension.
    fn reduced(&mut self, of: &Value, function: &str, initial: &str) -> Value {
        self.reduced_along(of, of.dims.len() - 1, function, initial)
    }

    /// A reduction of a dimension.
    pub(super) fn reduced_along(&mut self, of: &Value, at: usize, function: &str, initial: &str) -> Value {
        let zero = ty(&[], of.element);
        let initial = self.line(&[], of.element, &format!("stablehlo.constant dense<{initial}> : {zero}"));
        let dims: Vec<usize> = (0..of.dims.len()).filter(|&dim| dim != at).map(|dim| of.dims[dim]).collect();
        let to = ty(&dims, of.element);
        let op = format!(
            "stablehlo.reduce({} init: {}) applies stablehlo.{function} across dimensions = [{at}] : ({}, {zero}) -> {to}",
            of.name,
            initial.name,
            of.ty()
        );
        self.line(&dims, of.element, &op)
    }

    fn mean(&mut self, of: &Value) -> Value {
        let sum = self.reduced(of, "add", "0.0");
        let count = self.splat(*of.dims.last().unwrap_or(&1) as f64, &sum);
        self.map("divide", &[&sum, &count])
    }

    /// LayerNorm, or RMSNorm, without weights.
    fn normalized(&mut self, x: &Value, centred: bool) -> Value {
        let mut wide = self.convert(x, self.wide());
        if centred {
            let mean = self.mean(&wide);
            let mean = self.repeated(&mean, &x.dims);
            wide = self.map("subtract", &[&wide, &mean]);
        }
        let squares = self.map("multiply", &[&wide, &wide]);
        let variance = self.mean(&squares);
        let least = self.splat(1e-5, &variance);
        let sum = self.map("add", &[&variance, &least]);
        let factor = self.map("rsqrt", &[&sum]);
        let factor = self.repeated(&factor, &x.dims);
        let result = self.map("multiply", &[&wide, &factor]);
        self.convert(&result, x.element)
    }

    /// `x · wᵀ`.
    fn linear(&mut self, x: &Value, weights: &str, n: usize) -> Value {
        let (rank, k) = (x.dims.len() - 1, x.dims[x.dims.len() - 1]);
        let dims: Vec<usize> = x.dims[..rank].iter().copied().chain([n]).collect();
        let to = ty(&dims, x.element);
        let op = format!(
            "stablehlo.dot_general {}, {weights}, contracting_dims = [{rank}] x [1] : ({}, {}) -> {to}",
            x.name,
            x.ty(),
            ty(&[n, k], x.element)
        );
        self.line(&dims, x.element, &op)
    }

    fn activated(&mut self, y: &Value, name: &str) -> Value {
        if name == "linear" {
            return y.clone();
        }
        let x = self.convert(y, self.wide());
        let number = |text: &mut Self, value: f64| text.splat(value, &x);
        let result = match name {
            "sigmoid" => self.map("logistic", &[&x]),
            "silu" => {
                let gate = self.map("logistic", &[&x]);
                self.map("multiply", &[&x, &gate])
            }
            "gelu" => {
                let (half, root, one) =
                    (number(self, 0.5), number(self, std::f64::consts::FRAC_1_SQRT_2), number(self, 1.0));
                let scaled = self.map("multiply", &[&x, &root]);
                let erf = self.map("chlo.erf", &[&scaled]);
                let sum = self.map("add", &[&erf, &one]);
                let product = self.map("multiply", &[&x, &sum]);
                self.map("multiply", &[&product, &half])
            }
            "leakyrelu" => {
                let slope = number(self, 0.01);
                let leak = self.map("multiply", &[&x, &slope]);
                self.map("maximum", &[&x, &leak])
            }
            "hardswish" => {
                let (three, zero, six) = (number(self, 3.0), number(self, 0.0), number(self, 6.0));
                let sum = self.map("add", &[&x, &three]);
                let low = self.map("maximum", &[&sum, &zero]);
                let gate = self.map("minimum", &[&low, &six]);
                let product = self.map("multiply", &[&x, &gate]);
                self.map("divide", &[&product, &six])
            }
            _ => {
                let zero = number(self, 0.0);
                let result = self.map("maximum", &[&x, &zero]);
                if name == "relu6" {
                    let six = number(self, 6.0);
                    self.map("minimum", &[&result, &six])
                } else {
                    result
                }
            }
        };
        self.convert(&result, y.element)
    }

    fn reshape(&mut self, of: &Value, dims: &[usize]) -> Value {
        let op = format!("stablehlo.reshape {} : ({}) -> {}", of.name, of.ty(), ty(dims, of.element));
        self.line(dims, of.element, &op)
    }

    fn transpose(&mut self, of: &Value, order: [usize; 4]) -> Value {
        let dims = order.map(|at| of.dims[at]);
        let op = format!(
            "stablehlo.transpose {}, dims = {order:?} : ({}) -> {}",
            of.name,
            of.ty(),
            ty(&dims, of.element)
        );
        self.line(&dims, of.element, &op)
    }

    /// A product of each head, contracting one dimension of each side.
    fn heads(&mut self, left: &Value, right: &Value, contract: usize) -> Value {
        let columns = right.dims[if contract == 3 { 2 } else { 3 }];
        let dims = [left.dims[0], left.dims[1], left.dims[2], columns];
        let op = format!(
            "stablehlo.dot_general {}, {}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [{contract}] : ({}, {}) -> {}",
            left.name,
            right.name,
            left.ty(),
            right.ty(),
            ty(&dims, left.element)
        );
        self.line(&dims, left.element, &op)
    }
}

/// Attention with 8 heads and an MLP of four times the width, each after RMSNorm, with residuals.
fn block(text: &mut Text, m: usize, k: usize) -> Value {
    let x = Value { name: "%x".to_owned(), dims: vec![m, SEQUENCE, k], element: text.element };
    let d = k / HEADS;
    let h = text.normalized(&x, false);
    let qkv = text.linear(&h, "%wqkv", 3 * k);
    let part = |text: &mut Text, at: usize| {
        let dims = [m, SEQUENCE, k];
        let op = format!(
            "stablehlo.slice {} [0:{m}, 0:{SEQUENCE}, {}:{}] : ({}) -> {}",
            qkv.name,
            at * k,
            (at + 1) * k,
            qkv.ty(),
            ty(&dims, qkv.element)
        );
        let part = text.line(&dims, qkv.element, &op);
        let split = text.reshape(&part, &[m, SEQUENCE, HEADS, d]);
        text.transpose(&split, [0, 2, 1, 3])
    };
    let (q, keys, values) = (part(text, 0), part(text, 1), part(text, 2));
    let scores = text.heads(&q, &keys, 3);
    let scores = text.convert(&scores, text.wide());
    let scale = text.splat(1.0 / (d as f64).sqrt(), &scores);
    let scores = text.map("multiply", &[&scores, &scale]);
    let least = if text.wide() == ElementType::F64 { "0xFFF0000000000000" } else { "0xFF800000" };
    let largest = text.reduced(&scores, "maximum", least);
    let largest = text.repeated(&largest, &scores.dims.clone());
    let shifted = text.map("subtract", &[&scores, &largest]);
    let powers = text.map("exponential", &[&shifted]);
    let sum = text.reduced(&powers, "add", "0.0");
    let sum = text.repeated(&sum, &scores.dims.clone());
    let shares = text.map("divide", &[&powers, &sum]);
    let shares = text.convert(&shares, text.element);
    let context = text.heads(&shares, &values, 2);
    let context = text.transpose(&context, [0, 2, 1, 3]);
    let context = text.reshape(&context, &[m, SEQUENCE, k]);
    let projected = text.linear(&context, "%wo", k);
    let x = text.map("add", &[&x, &projected]);
    let h = text.normalized(&x, false);
    let up = text.linear(&h, "%wu", 4 * k);
    let up = text.activated(&up, "gelu");
    let down = text.linear(&up, "%wd", k);
    text.map("add", &[&x, &down])
}
