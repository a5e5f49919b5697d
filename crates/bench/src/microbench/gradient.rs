//! Reverse-mode differentiation of a [`Graph`].
//!
//! Gradients of linear layers are products of their own, with operands rounded as the graph says. The maximum of a softmax only shifts
//! exponents, which their quotient does not depend on: nothing flows through it.

use std::collections::BTreeMap;

use super::graph::{Function, Graph, Linear, Op, Reduction, Value};

/// The gradients of values, from that of a result.
pub(super) fn gradients(graph: &mut Graph, result: Value, of_result: Value, of: &[Value]) -> Vec<Value> {
    let mut reverse =
        Reverse { depends: dependents(graph, of), known: BTreeMap::from([(result, of_result)]), graph };
    for at in (0..=result.0).rev().map(Value) {
        let Some(&gradient) = reverse.known.get(&at) else { continue };
        match reverse.graph.linears.iter().find(|linear| linear.result == at).copied() {
            Some(linear) => reverse.linear(linear, gradient),
            None => reverse.operation(at, gradient),
        }
    }
    of.iter()
        .map(|value| reverse.known.get(value).copied().unwrap_or_else(|| reverse.graph.splat(0.0, *value)))
        .collect()
}

/// Whether each value depends on one of those given.
fn dependents(graph: &Graph, of: &[Value]) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let found = of.contains(&Value(at)) || node.op.inputs().iter().any(|input| depends[input.0]);
        depends.push(found);
    }
    depends
}

struct Reverse<'g> {
    graph: &'g mut Graph,
    depends: Vec<bool>,
    known: BTreeMap<Value, Value>,
}

impl Reverse<'_> {
    /// Adds to the gradient of a value, computed only where something wanted depends on it.
    fn add(&mut self, to: Value, part: impl FnOnce(&mut Graph) -> Value) {
        if !self.depends[to.0] {
            return;
        }
        let part = part(self.graph);
        let sum = match self.known.get(&to) {
            Some(&before) => self.graph.map(Function::Add, &[before, part]),
            None => part,
        };
        self.known.insert(to, sum);
    }

    fn linear(&mut self, Linear { input, weights, .. }: Linear, d: Value) {
        self.add(input, |graph| graph.gradient_of_input(d, weights));
        self.add(weights, |graph| graph.gradient_of_weights(d, input));
    }

    fn operation(&mut self, at: Value, d: Value) {
        match self.graph.nodes[at.0].op.clone() {
            Op::Argument
            | Op::Splat(_)
            | Op::PowerOfTwo(_)
            | Op::Reduce(_, _, Reduction::Maximum | Reduction::Magnitude) => {}
            Op::Map(function, inputs) => self.function(at, d, function, &inputs),
            Op::Convert(x) => self.add(x, |graph| graph.convert(d, graph.element_of(x))),
            Op::Where([value, left, right]) => {
                self.add(value, |graph| graph.where_greater(d, left, right));
            }
            Op::Repeat(x, map) => self.add(x, |graph| {
                let kept = |dim: &usize| !map.contains(dim);
                let dims = (0..graph.dims(d).len()).rev().filter(kept);
                dims.fold(d, |d, dim| graph.reduced(d, dim, Reduction::Sum))
            }),
            Op::Reduce(x, along, Reduction::Sum) => self.add(x, |graph| {
                let dims = graph.dims(x).to_vec();
                let map: Vec<usize> = (0..dims.len()).filter(|&dim| dim != along).collect();
                graph.repeated(d, &map, &dims)
            }),
            Op::Reshape(x) => self.add(x, |graph| {
                let dims = graph.dims(x).to_vec();
                graph.reshape(d, &dims)
            }),
            Op::Transpose(x, order) => self.add(x, |graph| {
                let mut back = vec![0; order.len()];
                for (to, &from) in order.iter().enumerate() {
                    back[from] = to;
                }
                graph.transpose(d, &back)
            }),
            Op::Slice(x, first) => self.add(x, |graph| {
                let dims = graph.dims(x).to_vec();
                graph.pad(d, first, &dims)
            }),
            Op::Pad(x, first) => self.add(x, |graph| {
                let count = graph.dims(x)[graph.dims(x).len() - 1];
                graph.slice(d, first, count)
            }),
            Op::Dot([left, right], batch, [along_left, along_right], _) => {
                // Rows and columns are the dimension of each side that is neither batch nor contracted.
                let free = |along: usize| 2 * batch + 1 - along;
                let mut side = |of: Value, own: usize, other: Value, along: usize, of_gradient: usize| {
                    self.add(of, |graph| match own == batch {
                        true => graph.dot([other, d], batch, [free(along), of_gradient]),
                        false => graph.dot([d, other], batch, [of_gradient, free(along)]),
                    });
                };
                side(left, along_left, right, along_right, batch + 1);
                side(right, along_right, left, along_left, batch);
            }
        }
    }

    fn function(&mut self, y: Value, d: Value, function: Function, inputs: &[Value]) {
        let x = inputs[0];
        let other = *inputs.last().unwrap_or(&x);
        match function {
            Function::Add => {
                self.add(x, |_| d);
                self.add(other, |_| d);
            }
            Function::Subtract => {
                self.add(x, |_| d);
                self.add(other, |graph| graph.map(Function::Negate, &[d]));
            }
            Function::Multiply => {
                self.add(x, |graph| graph.map(Function::Multiply, &[d, other]));
                self.add(other, |graph| graph.map(Function::Multiply, &[d, x]));
            }
            Function::Divide => {
                self.add(x, |graph| graph.map(Function::Divide, &[d, other]));
                self.add(other, |graph| {
                    let part = graph.map(Function::Multiply, &[d, y]);
                    let part = graph.map(Function::Divide, &[part, other]);
                    graph.map(Function::Negate, &[part])
                });
            }
            Function::Maximum => {
                self.add(x, |graph| graph.where_greater(d, x, other));
                self.add(other, |graph| graph.where_greater(d, other, x));
            }
            Function::Minimum => {
                self.add(x, |graph| graph.where_greater(d, other, x));
                self.add(other, |graph| graph.where_greater(d, x, other));
            }
            Function::Exponential => self.add(x, |graph| graph.map(Function::Multiply, &[d, y])),
            Function::Rsqrt => self.add(x, |graph| {
                let square = graph.map(Function::Multiply, &[y, y]);
                let cube = graph.map(Function::Multiply, &[square, y]);
                let part = graph.map(Function::Multiply, &[d, cube]);
                let half = graph.splat(-0.5, part);
                graph.map(Function::Multiply, &[part, half])
            }),
            Function::Logistic => self.add(x, |graph| {
                let one = graph.splat(1.0, y);
                let rest = graph.map(Function::Subtract, &[one, y]);
                let slope = graph.map(Function::Multiply, &[y, rest]);
                graph.map(Function::Multiply, &[d, slope])
            }),
            Function::Erf => self.add(x, |graph| {
                let square = graph.map(Function::Multiply, &[x, x]);
                let square = graph.map(Function::Negate, &[square]);
                let bell = graph.map(Function::Exponential, &[square]);
                let part = graph.map(Function::Multiply, &[d, bell]);
                let factor = graph.splat(std::f64::consts::FRAC_2_SQRT_PI, part);
                graph.map(Function::Multiply, &[part, factor])
            }),
            // Rounding has no slope that anything is trained by.
            Function::Round => {}
            Function::Negate => self.add(x, |graph| graph.map(Function::Negate, &[d])),
            Function::Abs => {
                let zero = self.graph.splat(0.0, x);
                self.add(x, |graph| graph.where_greater(d, x, zero));
                self.add(x, |graph| {
                    let negative = graph.where_greater(d, zero, x);
                    graph.map(Function::Negate, &[negative])
                });
            }
        }
    }
}
