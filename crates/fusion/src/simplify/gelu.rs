//! GELU in one piece: `Gelu`, `GeluTanh` and the gradient of the latter, which export takes apart into a dozen operations.
//!
//! Kernels compute them faster than their parts, and BLAS libraries have the form by the hyperbolic tangent as an epilogue. Only chains of f32 are
//! joined: a chain of a narrower type rounds after each operation.

use warpforge_tensor::elementwise::Function;

use super::rewrite::Rewrite;
use crate::graph::{Graph, NodeId};
use crate::pattern::gelu::{gelu, gelu_tanh, gelu_tanh_gradient};
use crate::pattern::matcher::Matcher;

/// The graph with each GELU as one node.
pub(super) fn join(graph: &Graph) -> Graph {
    let users = graph.users();
    let found: Vec<Option<(Function, Vec<NodeId>)>> =
        graph.ids().map(|id| joined(Matcher::exact(graph), &users, id)).collect();
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

/// The function that a node is, and its operands. A GELU by the error function stays apart where something else needs the error
/// function.
fn joined(m: Matcher<'_>, users: &[Vec<NodeId>], id: NodeId) -> Option<(Function, Vec<NodeId>)> {
    let alone = |inner: &NodeId| users[inner.index()].len() == 1;
    if let Some(found) = gelu(m, id).filter(|found| [found.gate, found.error].iter().all(alone)) {
        return Some((Function::Gelu, vec![found.x]));
    }
    if let Some(x) = gelu_tanh(m, id) {
        return Some((Function::GeluTanh, vec![x]));
    }
    let operands = gelu_tanh_gradient(m, id)?;
    Some((Function::GeluTanhGradient, operands.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Op;
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
