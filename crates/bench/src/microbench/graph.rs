//! Functions as StableHLO text, built operation by operation so that they can be differentiated.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpforge::ElementType;

use super::layers::Layers;

/// A value of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value(pub(super) usize);

/// An operation.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Argument,
    Splat(f64),
    Convert(Value),
    Map(Function, Vec<Value>),
    /// The first where the second is greater than the third, 0 elsewhere.
    Where([Value; 3]),
    /// The largest power of two that is not above a positive value of f32.
    PowerOfTwo(Value),
    /// A value whose dimensions are those of a larger one.
    Repeat(Value, Vec<usize>),
    /// A reduction of a dimension.
    Reduce(Value, usize, Reduction),
    Reshape(Value),
    Transpose(Value, Vec<usize>),
    /// Part of the last dimension.
    Slice(Value, usize),
    /// Zeros before a value in the last dimension, and after it as many as its size leaves.
    Pad(Value, usize),
    /// A product with so many batch dimensions, contracting a dimension of each side.
    Dot([Value; 2], usize, [usize; 2], String),
}

/// A function of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
    Negate,
    Abs,
    Round,
    Exponential,
    Rsqrt,
    Logistic,
    Erf,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "stablehlo.add",
            Self::Subtract => "stablehlo.subtract",
            Self::Multiply => "stablehlo.multiply",
            Self::Divide => "stablehlo.divide",
            Self::Maximum => "stablehlo.maximum",
            Self::Minimum => "stablehlo.minimum",
            Self::Negate => "stablehlo.negate",
            Self::Abs => "stablehlo.abs",
            Self::Round => "stablehlo.round_nearest_even",
            Self::Exponential => "stablehlo.exponential",
            Self::Rsqrt => "stablehlo.rsqrt",
            Self::Logistic => "stablehlo.logistic",
            Self::Erf => "chlo.erf",
        }
    }
}

/// What a reduction applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Maximum,
    /// The maximum of values that are not negative.
    Magnitude,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) dims: Vec<usize>,
    pub(super) element: ElementType,
}

/// A product of rows by weights, with what it is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    pub(super) input: Value,
    pub(super) weights: Value,
    pub(super) result: Value,
}

/// The operations of a function.
pub(super) struct Graph {
    /// The type of the model.
    pub(super) element: ElementType,
    /// How linear layers compute; as one product of all dimensions but the last where it is not said.
    pub(super) layers: Option<Layers>,
    pub(super) nodes: Vec<Node>,
    pub(super) linears: Vec<Linear>,
}

/// An argument of a function: a value of the graph, its name, and attributes.
pub(super) type Argument = (Value, String, String);

/// A tensor type.
fn ty(dims: &[usize], element: ElementType) -> String {
    let mut text = "tensor<".to_owned();
    for dim in dims {
        let _ = write!(text, "{dim}x");
    }
    format!("{text}{element}>")
}

impl Op {
    /// What the operation reads.
    pub(super) fn inputs(&self) -> Vec<Value> {
        match self {
            Self::Argument | Self::Splat(_) => Vec::new(),
            Self::Map(_, inputs) => inputs.clone(),
            Self::Where(inputs) => inputs.to_vec(),
            Self::Dot(sides, ..) => sides.to_vec(),
            Self::Convert(of)
            | Self::PowerOfTwo(of)
            | Self::Repeat(of, _)
            | Self::Reduce(of, ..)
            | Self::Reshape(of)
            | Self::Transpose(of, _)
            | Self::Slice(of, _)
            | Self::Pad(of, _) => vec![*of],
        }
    }
}

impl Graph {
    pub(super) fn new(element: ElementType) -> Self {
        Self { element, layers: None, nodes: Vec::new(), linears: Vec::new() }
    }

    /// A graph whose linear layers compute so.
    pub(super) fn with_layers(element: ElementType, layers: Layers) -> Self {
        Self { layers: Some(layers), ..Self::new(element) }
    }

    /// The type that functions of elements are computed in.
    pub(super) fn wide(&self) -> ElementType {
        if self.element == ElementType::F64 { ElementType::F64 } else { ElementType::F32 }
    }

    pub(super) fn dims(&self, of: Value) -> &[usize] {
        &self.nodes[of.0].dims
    }

    pub(super) fn element_of(&self, of: Value) -> ElementType {
        self.nodes[of.0].element
    }

    fn push(&mut self, op: Op, dims: &[usize], element: ElementType) -> Value {
        self.nodes.push(Node { op, dims: dims.to_vec(), element });
        Value(self.nodes.len() - 1)
    }

    pub(super) fn argument(&mut self, dims: &[usize], element: ElementType) -> Value {
        self.push(Op::Argument, dims, element)
    }

    pub(super) fn convert(&mut self, of: Value, element: ElementType) -> Value {
        if self.element_of(of) == element {
            return of;
        }
        let dims = self.dims(of).to_vec();
        self.push(Op::Convert(of), &dims, element)
    }

    pub(super) fn map(&mut self, function: Function, inputs: &[Value]) -> Value {
        let Node { dims, element, .. } = self.nodes[inputs[0].0].clone();
        self.push(Op::Map(function, inputs.to_vec()), &dims, element)
    }

    /// The largest power of two that is not above a positive value of f32.
    pub(super) fn power_of_two(&mut self, of: Value) -> Value {
        let Node { dims, element, .. } = self.nodes[of.0].clone();
        self.push(Op::PowerOfTwo(of), &dims, element)
    }

    /// The first where the second is greater than the third, 0 elsewhere.
    pub(super) fn where_greater(&mut self, value: Value, left: Value, right: Value) -> Value {
        let Node { dims, element, .. } = self.nodes[value.0].clone();
        self.push(Op::Where([value, left, right]), &dims, element)
    }

    pub(super) fn splat(&mut self, value: f64, like: Value) -> Value {
        let Node { dims, element, .. } = self.nodes[like.0].clone();
        self.push(Op::Splat(value), &dims, element)
    }

    /// A value whose dimensions are those of a larger one.
    pub(super) fn repeated(&mut self, of: Value, map: &[usize], dims: &[usize]) -> Value {
        let element = self.element_of(of);
        self.push(Op::Repeat(of, map.to_vec()), dims, element)
    }

    /// A reduction of a dimension.
    pub(super) fn reduced(&mut self, of: Value, at: usize, reduction: Reduction) -> Value {
        let mut dims = self.dims(of).to_vec();
        dims.remove(at);
        let element = self.element_of(of);
        self.push(Op::Reduce(of, at, reduction), &dims, element)
    }

    pub(super) fn reshape(&mut self, of: Value, dims: &[usize]) -> Value {
        if self.dims(of) == dims {
            return of;
        }
        let element = self.element_of(of);
        self.push(Op::Reshape(of), dims, element)
    }

    pub(super) fn transpose(&mut self, of: Value, order: &[usize]) -> Value {
        let dims: Vec<usize> = order.iter().map(|&at| self.dims(of)[at]).collect();
        let element = self.element_of(of);
        self.push(Op::Transpose(of, order.to_vec()), &dims, element)
    }

    /// So many elements of the last dimension.
    pub(super) fn slice(&mut self, of: Value, first: usize, count: usize) -> Value {
        let Node { mut dims, element, .. } = self.nodes[of.0].clone();
        dims.pop();
        dims.push(count);
        self.push(Op::Slice(of, first), &dims, element)
    }

    /// The inverse of [`Graph::slice`]: zeros where nothing was taken.
    pub(super) fn pad(&mut self, of: Value, first: usize, dims: &[usize]) -> Value {
        let element = self.element_of(of);
        self.push(Op::Pad(of, first), dims, element)
    }

    /// A product with so many batch dimensions, contracting a dimension of each side.
    pub(super) fn dot(&mut self, sides: [Value; 2], batch: usize, along: [usize; 2]) -> Value {
        let element = self.element_of(sides[0]);
        self.dot_to(sides, batch, along, element, String::new())
    }

    /// A product with its result type and the algorithm asked for.
    pub(super) fn dot_to(
        &mut self,
        sides: [Value; 2],
        batch: usize,
        along: [usize; 2],
        element: ElementType,
        algorithm: String,
    ) -> Value {
        let mut dims = self.dims(sides[0])[..batch].to_vec();
        for (side, along) in sides.iter().zip(along) {
            let of = self.dims(*side);
            dims.extend((batch..of.len()).filter(|&at| at != along).map(|at| of[at]));
        }
        self.push(Op::Dot(sides, batch, along, algorithm), &dims, element)
    }

    /// The function from arguments to results. Operations behind arguments, and those that no result needs, are left out.
    pub(super) fn function(&self, arguments: &[Argument], results: &[Value]) -> String {
        let cut = |value: Value| arguments.iter().find(|(argument, ..)| *argument == value);
        let name = |value: &Value| match cut(*value) {
            Some((_, name, _)) => format!("%{name}"),
            None => format!("%v{}", value.0),
        };
        let of = |value: &Value| ty(self.dims(*value), self.element_of(*value));
        let list = |values: &[Value], part: &dyn Fn(&Value) -> String| {
            values.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        let given: Vec<String> = arguments
            .iter()
            .map(|(value, name, attributes)| format!("%{name}: {}{attributes}", of(value)))
            .collect();
        let types = list(results, &of);
        let mut text = format!("func.func @main({}) -> ({types}) {{\n", given.join(", "));
        for at in self.needed(&arguments.iter().map(|argument| argument.0).collect::<Vec<_>>(), results) {
            self.write(&mut text, at, &name, &of);
        }
        let _ = write!(text, "  func.return {} : {types}\n}}\n", list(results, &name));
        text
    }

    /// As [`Graph::function`], for arguments whose names do not matter.
    pub(super) fn function_of(&self, arguments: &[Value], results: &[Value]) -> String {
        let named = |&value: &Value| (value, format!("a{}", value.0), String::new());
        self.function(&arguments.iter().map(named).collect::<Vec<_>>(), results)
    }

    /// The operations between arguments and results, in order.
    pub(super) fn needed(&self, arguments: &[Value], results: &[Value]) -> BTreeSet<Value> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Value> = results.to_vec();
        while let Some(value) = open.pop() {
            if !arguments.contains(&value) && found.insert(value) {
                open.extend(self.nodes[value.0].op.inputs());
            }
        }
        found
    }

    /// Which of the arguments the results are made of.
    pub(super) fn read(&self, arguments: &[Value], results: &[Value]) -> BTreeSet<Value> {
        let inputs =
            self.needed(arguments, results).into_iter().flat_map(|value| self.nodes[value.0].op.inputs());
        inputs.chain(results.iter().copied()).filter(|value| arguments.contains(value)).collect()
    }

    fn write(
        &self,
        text: &mut String,
        at: Value,
        name: &dyn Fn(&Value) -> String,
        of: &dyn Fn(&Value) -> String,
    ) {
        let node = &self.nodes[at.0];
        let (id, to) = (at.0, of(&at));
        let op = match &node.op {
            Op::Argument => return,
            Op::Splat(value) => format!("stablehlo.constant dense<{value:.17}> : {to}"),
            Op::Convert(x) => format!("stablehlo.convert {} : ({}) -> {to}", name(x), of(x)),
            Op::Map(Function::Erf, inputs) => format!("chlo.erf {} : {to} -> {to}", name(&inputs[0])),
            Op::Map(function, inputs) => {
                let names: Vec<String> = inputs.iter().map(name).collect();
                format!("{} {} : {to}", function.name(), names.join(", "))
            }
            Op::PowerOfTwo(x) => {
                let bits = ty(&node.dims, ElementType::U32);
                let _ = writeln!(
                    text,
                    "  %b{id} = stablehlo.bitcast_convert {} : ({to}) -> {bits}\n  \
                     %e{id} = stablehlo.constant dense<2139095040> : {bits}\n  \
                     %p{id} = stablehlo.and %b{id}, %e{id} : {bits}",
                    name(x)
                );
                format!("stablehlo.bitcast_convert %p{id} : ({bits}) -> {to}")
            }
            Op::Where([value, left, right]) => {
                let (mask, sides) = (ty(&node.dims, ElementType::Bool), of(left));
                let _ = writeln!(
                    text,
                    "  %m{id} = stablehlo.compare GT, {}, {} : ({sides}, {sides}) -> {mask}\n  \
                     %z{id} = stablehlo.constant dense<0.0> : {to}",
                    name(left),
                    name(right),
                );
                format!("stablehlo.select %m{id}, {}, %z{id} : {mask}, {to}", name(value))
            }
            Op::Repeat(x, map) => {
                format!("stablehlo.broadcast_in_dim {}, dims = {map:?} : ({}) -> {to}", name(x), of(x))
            }
            Op::Reduce(x, along, reduction) => {
                let scalar = ty(&[], node.element);
                let (function, initial) = match reduction {
                    Reduction::Sum => ("add", "0.0"),
                    Reduction::Magnitude => ("maximum", "0.0"),
                    Reduction::Maximum if node.element == ElementType::F64 => {
                        ("maximum", "0xFFF0000000000000")
                    }
                    Reduction::Maximum => ("maximum", "0xFF800000"),
                };
                let _ = writeln!(text, "  %i{id} = stablehlo.constant dense<{initial}> : {scalar}");
                format!(
                    "stablehlo.reduce({} init: %i{id}) applies stablehlo.{function} across dimensions = [{along}] : ({}, {scalar}) -> {to}",
                    name(x),
                    of(x)
                )
            }
            Op::Reshape(x) => format!("stablehlo.reshape {} : ({}) -> {to}", name(x), of(x)),
            Op::Transpose(x, order) => {
                format!("stablehlo.transpose {}, dims = {order:?} : ({}) -> {to}", name(x), of(x))
            }
            Op::Slice(x, first) => {
                let last = node.dims.len() - 1;
                let mut ranges: Vec<String> =
                    node.dims[..last].iter().map(|dim| format!("0:{dim}")).collect();
                ranges.push(format!("{first}:{}", first + node.dims[last]));
                format!("stablehlo.slice {} [{}] : ({}) -> {to}", name(x), ranges.join(", "), of(x))
            }
            Op::Pad(x, first) => {
                let scalar = ty(&[], node.element);
                let last = node.dims.len() - 1;
                let (mut low, mut high) = (vec![0; last + 1], vec![0; last + 1]);
                (low[last], high[last]) = (*first, node.dims[last] - first - self.dims(*x)[last]);
                let none = vec![0; last + 1];
                let _ = writeln!(text, "  %i{id} = stablehlo.constant dense<0.0> : {scalar}");
                format!(
                    "stablehlo.pad {}, %i{id}, low = {low:?}, high = {high:?}, interior = {none:?} : ({}, {scalar}) -> {to}",
                    name(x),
                    of(x)
                )
            }
            Op::Dot([left, right], batch, along, algorithm) => {
                let batches: Vec<usize> = (0..*batch).collect();
                let batches = match batches.is_empty() {
                    true => String::new(),
                    false => format!("batching_dims = {batches:?} x {batches:?}, "),
                };
                format!(
                    "stablehlo.dot_general {}, {}, {batches}contracting_dims = [{}] x [{}]{algorithm} : ({}, {}) -> {to}",
                    name(left),
                    name(right),
                    along[0],
                    along[1],
                    of(left),
                    of(right)
                )
            }
        };
        let _ = writeln!(text, "  {} = {op}", name(&at));
    }
}
