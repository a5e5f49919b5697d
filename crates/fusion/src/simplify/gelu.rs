//! GELU in one piece: `Gelu`, `GeluTanh` and the gradient of the latter, which export takes apart into a dozen operations.
//!
//! Kernels compute them faster than their parts, and BLAS libraries have the form by the hyperbolic tangent as an epilogue. Only chains of f32 are
//! joined: a chain of a narrower type rounds after each operation.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use super::Rewrite;
use crate::graph::{Graph, NodeId, Op};
use crate::view::LayoutOp;

/// √(2/π).
const BETA: f64 = SQRT_2 * FRAC_2_SQRT_PI * 0.5;

/// The factor of the cube.
const CUBIC: f64 = 0.044_715;

/// Deepest nesting of multiplications that is looked through.
const DEEPEST: usize = 8;

/// The graph with each GELU as one node.
pub(super) fn join(graph: &Graph) -> Graph {
    let chains = Chains { graph, users: graph.users() };
    let found: Vec<Option<(Function, Vec<NodeId>)>> = graph.ids().map(|id| chains.joined(id)).collect();
    if found.iter().all(Option::is_none) {
        return graph.clone();
    }
    let mut rewrite = Rewrite::new(graph);
    for (id, found) in graph.ids().zip(found) {
        match found {
            Some((function, operands)) => rewrite.elementwise(id, function, &operands),
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// A graph as chains of elementwise operations on f32.
struct Chains<'g> {
    graph: &'g Graph,
    users: Vec<Vec<NodeId>>,
}

impl Chains<'_> {
    fn joined(&self, id: NodeId) -> Option<(Function, Vec<NodeId>)> {
        let [left, right] = self.operands(id, Function::Multiply)?;
        if let Some(x) = self.gelu(id) {
            return Some((Function::Gelu, vec![x]));
        }
        if let Some(x) = self.gelu_tanh(id) {
            return Some((Function::GeluTanh, vec![x]));
        }
        let gradient = |given: NodeId, slope: NodeId| Some(vec![given, self.slope_of(slope)?]);
        let operands = gradient(left, right).or_else(|| gradient(right, left))?;
        Some((Function::GeluTanhGradient, operands))
    }

    /// What a node is `x / 2 (1 + erf(x / √2))` of, where nothing else needs the error function.
    fn gelu(&self, id: NodeId) -> Option<NodeId> {
        let (_, factors) = self.factors(id, None)?;
        factors.into_iter().find_map(|gate| {
            let error = self.beside(gate, Function::Add, 1.0)?;
            let scaled = self.operand(error, Function::Erf)?;
            let x = self
                .beside(scaled, Function::Multiply, FRAC_1_SQRT_2)
                .or_else(|| self.beside(scaled, Function::Divide, SQRT_2))?;
            let alone = [gate, error].iter().all(|inner| self.users[inner.index()].len() == 1);
            (alone && self.is_product(id, x, 0.5, &[gate, x])).then_some(x)
        })
    }

    /// What a node is `x / 2 (1 + tanh(β (x + c x³)))` of.
    fn gelu_tanh(&self, id: NodeId) -> Option<NodeId> {
        let (_, factors) = self.factors(id, None)?;
        factors.into_iter().find_map(|gate| {
            let x = self.bent(self.beside(gate, Function::Add, 1.0)?)?;
            self.is_product(id, x, 0.5, &[gate, x]).then_some(x)
        })
    }

    /// What a node is the slope of `GeluTanh` at: `(1 + t) / 2 + x (1 - t²) β (1 + 3 c x²) / 2`, t the tangent.
    fn slope_of(&self, id: NodeId) -> Option<NodeId> {
        let [left, right] = self.operands(id, Function::Add)?;
        let slope = |gate: NodeId, rest: NodeId| {
            let gate = self.beside(gate, Function::Multiply, 0.5)?;
            let tangent = self.beside(gate, Function::Add, 1.0)?;
            let x = self.bent(tangent)?;
            let (factor, factors) = self.factors(rest, Some(x))?;
            let is_steep = |at: NodeId| {
                self.operands(at, Function::Subtract).is_some_and(|[one, square]| {
                    self.number(one) == Some(1.0) && self.is_product(square, tangent, 1.0, &[tangent; 2])
                })
            };
            let is_wide = |at: NodeId| {
                self.beside(at, Function::Add, 1.0)
                    .is_some_and(|square| self.is_product(square, x, 3.0 * CUBIC, &[x; 2]))
            };
            let fits = near(factor, 0.5 * BETA)
                && factors.len() == 3
                && factors.contains(&x)
                && factors.iter().any(|&at| is_steep(at))
                && factors.iter().any(|&at| is_wide(at));
            fits.then_some(x)
        };
        slope(left, right).or_else(|| slope(right, left))
    }

    /// What a node is the tangent `tanh(β (x + c x³))` of.
    fn bent(&self, id: NodeId) -> Option<NodeId> {
        let inner = self.operand(id, Function::Tanh)?;
        let sum = self.beside(inner, Function::Multiply, BETA)?;
        let [left, right] = self.operands(sum, Function::Add)?;
        let cubed = |x: NodeId, cube: NodeId| self.is_product(cube, x, CUBIC, &[x; 3]).then_some(x);
        cubed(left, right).or_else(|| cubed(right, left))
    }

    fn is(&self, id: NodeId, function: Function) -> bool {
        let node = self.graph.node(id);
        node.element == ElementType::F32 && matches!(node.op, Op::Elementwise(known) if known == function)
    }

    fn operand(&self, id: NodeId, function: Function) -> Option<NodeId> {
        self.graph.node(id).inputs.first().copied().filter(|_| self.is(id, function))
    }

    fn operands(&self, id: NodeId, function: Function) -> Option<[NodeId; 2]> {
        self.graph.node(id).inputs.clone().try_into().ok().filter(|_| self.is(id, function))
    }

    /// The operand beside a number; a number that is divided is none.
    fn beside(&self, id: NodeId, function: Function, number: f64) -> Option<NodeId> {
        let [left, right] = self.operands(id, function)?;
        let is = |id: NodeId| self.number(id).is_some_and(|known| near(known, number));
        match (is(left), is(right)) {
            (_, true) => Some(left),
            (true, _) if function != Function::Divide => Some(right),
            _ => None,
        }
    }

    /// The number that a constant is everywhere.
    fn number(&self, id: NodeId) -> Option<f64> {
        let node = self.graph.node(id);
        let source = match &node.op {
            Op::Layout(LayoutOp::Broadcast { map, .. }) if map.is_empty() => node.inputs[0],
            _ => id,
        };
        let constant = self.graph.constant(source).filter(|constant| constant.dims().is_empty())?;
        Some(constant.get(0).to_f64())
    }

    /// Whether a node is a number times these, in any order; `whole` is not taken apart.
    fn is_product(&self, id: NodeId, whole: NodeId, number: f64, of: &[NodeId]) -> bool {
        let Some((factor, mut factors)) = self.factors(id, Some(whole)) else { return false };
        let mut of = of.to_vec();
        factors.sort_unstable();
        of.sort_unstable();
        near(factor, number) && factors == of
    }

    /// The factors of a product, and the number that those that are constants give; `whole` is not taken apart.
    fn factors(&self, id: NodeId, whole: Option<NodeId>) -> Option<(f64, Vec<NodeId>)> {
        let mut number = 1.0;
        let mut factors = Vec::new();
        let mut pending = vec![(id, 0)];
        while let Some((at, depth)) = pending.pop() {
            if depth > DEEPEST {
                return None;
            }
            match (self.number(at), self.operands(at, Function::Multiply)) {
                (Some(constant), _) => number *= constant,
                (None, Some(operands)) if Some(at) != whole => {
                    pending.extend(operands.map(|operand| (operand, depth + 1)));
                }
                _ => factors.push(at),
            }
        }
        Some((number, factors))
    }
}

/// Whether two numbers are the same to f32's precision.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * other.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    /// The names of the operations of a chain on `%x` and `%g` that ends in `%out`.
    fn names(chain: &str) -> Vec<String> {
        let ty = "tensor<8xf32>";
        let constant =
            |name: &str, value: &str| format!("%{name} = stablehlo.constant dense<{value}> : {ty}\n");
        let numbers: String = [
            ("half", "0.5"),
            ("one", "1.0"),
            ("root", "0.707106769"),
            ("sqrt2", "1.41421354"),
            ("beta", "0.797884583"),
            ("c", "0.044715"),
            ("c3", "0.134145"),
            ("halfbeta", "0.398942292"),
        ]
        .iter()
        .map(|(name, value)| constant(name, value))
        .collect();
        let body: String = chain
            .split(';')
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (name, call) = line.split_once('=').unwrap();
                let (op, operands) = call.trim().split_once(' ').unwrap();
                match op {
                    "chlo.erf" => format!("{name} = chlo.erf {operands} : {ty} -> {ty}\n"),
                    _ => format!("{name} = stablehlo.{op} {operands} : {ty}\n"),
                }
            })
            .collect();
        let text =
            format!("func.func @main(%x: {ty}, %g: {ty}) -> {ty} {{\n{numbers}{body}return %out : {ty}\n}}");
        let joined = join(&graph(&text));
        let named = joined.nodes.iter().filter(|node| matches!(node.op, Op::Elementwise(_)));
        named.map(|node| node.op.name()).collect()
    }

    #[test]
    fn a_gelu_with_its_factors_in_any_order_is_one_node() {
        let gate = "%s = multiply %x, %root; %e = chlo.erf %s; %gate = add %e, %one;";
        for rest in [
            "%h = multiply %x, %half; %out = multiply %h, %gate",
            "%h = multiply %gate, %half; %out = multiply %h, %x",
            "%p = multiply %x, %gate; %out = multiply %p, %half",
        ] {
            assert_eq!(names(&format!("{gate} {rest}")), ["gelu"], "{rest}");
        }
        let divided =
            "%s = divide %x, %sqrt2; %e = chlo.erf %s; %gate = add %one, %e; %h = multiply %x, %half;";
        assert_eq!(names(&format!("{divided} %out = multiply %h, %gate")), ["gelu"]);
    }

    #[test]
    fn a_gelu_of_a_product_is_found_below_it() {
        let chain = "%y = multiply %x, %half; %s = multiply %y, %root; %e = chlo.erf %s; %gate = add %e, %one; \
                     %h = multiply %y, %half; %out = multiply %h, %gate";
        assert_eq!(names(chain), ["multiply", "gelu"]);
    }

    #[test]
    fn what_is_not_quite_a_gelu_is_left_alone() {
        let gate = "%s = multiply %x, %root; %e = chlo.erf %s; %gate = add %e, %one;";
        for rest in [
            // Another value, another number, and an error function that is needed besides.
            "%h = multiply %g, %half; %out = multiply %h, %gate",
            "%h = multiply %x, %root; %out = multiply %h, %gate",
            "%h = multiply %x, %half; %p = multiply %h, %gate; %out = add %p, %e",
        ] {
            assert!(!names(&format!("{gate} {rest}")).contains(&"gelu".to_owned()), "{rest}");
        }
        let reciprocal =
            "%s = divide %sqrt2, %x; %e = chlo.erf %s; %gate = add %e, %one; %h = multiply %x, %half;";
        assert!(!names(&format!("{reciprocal} %out = multiply %h, %gate")).contains(&"gelu".to_owned()));
    }

    const TANGENT: &str = "%x2 = multiply %x, %x; %x3 = multiply %x2, %x; %cx = multiply %x3, %c; %in = add %x, %cx; \
                           %b = multiply %in, %beta; %t = tanh %b; %gate = add %t, %one;";

    #[test]
    fn a_gelu_by_the_tangent_and_its_gradient_are_one_node_each() {
        let forward = format!("{TANGENT} %h = multiply %x, %half; %out = multiply %h, %gate");
        assert_eq!(names(&forward), ["gelu_tanh"]);
        let backward = format!(
            "{TANGENT} %left = multiply %gate, %half; %tt = multiply %t, %t; %steep = subtract %one, %tt; \
             %q = multiply %x2, %c3; %wide = add %q, %one; %r = multiply %x, %halfbeta; %r2 = multiply %r, %steep; \
             %right = multiply %r2, %wide; %slope = add %left, %right; %out = multiply %g, %slope"
        );
        assert_eq!(names(&backward), ["gelu_tanh_gradient"]);
    }
}
