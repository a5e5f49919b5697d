//! Patterns: what groups of operations are called by people, found by how values flow, whatever export took apart.
//!
//! Fusion does not need the names; whoever reads a report does.

mod matcher;
pub(crate) mod softmax;

use matcher::Matcher;
use softmax::less_maximum;
use warpforge_tensor::elementwise::Function;

use crate::graph::{Graph, NodeId};

/// A well-known computation, by the node that gives its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// What people call it.
    pub name: &'static str,
    /// The node.
    pub result: NodeId,
}

type Recogniser = fn(Matcher<'_>, NodeId) -> bool;

/// What is looked for. A new pattern is a line here and a function below.
const RECOGNISERS: [(&str, Recogniser); 10] = [
    ("softmax", softmax),
    ("log-softmax", log_softmax),
    ("layer norm", layer_norm),
    ("batch norm", batch_norm),
    ("RMS norm", rms_norm),
    ("GELU", gelu),
    ("GELU (tanh)", gelu_tanh),
    ("SiLU", silu),
    ("ReLU", relu),
    ("rotary embedding", rotary),
];

/// All patterns of a graph, in the order of their results.
#[must_use]
pub(crate) fn patterns(graph: &Graph) -> Vec<Pattern> {
    let m = Matcher { graph };
    let named = |result: NodeId| {
        let fits = RECOGNISERS.iter().find(|(_, pattern)| pattern(m, result));
        fits.map(|&(name, _)| Pattern { name, result })
    };
    graph.ids().filter(|&id| m.through(id) == id).filter_map(named).collect()
}

/// exp(x - max x) / Σ exp(x - max x)
fn softmax(m: Matcher<'_>, id: NodeId) -> bool {
    softmax::softmax(&m, id).is_some()
}

/// y - log Σ exp y, where y = x - max x
fn log_softmax(m: Matcher<'_>, id: NodeId) -> bool {
    let Some([shifted, total]) = m.apart(id, Function::Subtract) else { return false };
    let exponential = m
        .apart(total, Function::Log)
        .and_then(|[total]| m.sum_of(total))
        .and_then(|summed| m.apart(summed, Function::Exponential));
    exponential == Some([shifted]) && less_maximum(&m, shifted).is_some()
}

/// (x - mean x) · rsqrt(mean (x - mean x)² + ε) over the last dimensions
fn layer_norm(m: Matcher<'_>, id: NodeId) -> bool {
    normalised(m, id).is_some_and(|(value, last)| last && less_mean(m, value))
}

/// The same over others, and not over the last.
fn batch_norm(m: Matcher<'_>, id: NodeId) -> bool {
    normalised(m, id).is_some_and(|(value, last)| !last && less_mean(m, value))
}

/// x · rsqrt(mean x² + ε)
fn rms_norm(m: Matcher<'_>, id: NodeId) -> bool {
    normalised(m, id).is_some_and(|(value, last)| last && !less_mean(m, value))
}

/// What is divided by the root of the mean of its own squares, and whether the mean is over the last dimension.
fn normalised(m: Matcher<'_>, id: NodeId) -> Option<(NodeId, bool)> {
    let scaled = m.both_orders(id, Function::Multiply).into_iter().flatten();
    let scaled = scaled.filter_map(|[value, scale]| Some((value, m.apart::<1>(scale, Function::Rsqrt)?[0])));
    let divided = m.apart(id, Function::Divide).into_iter();
    let divided = divided.filter_map(|[value, root]| Some((value, m.apart::<1>(root, Function::Sqrt)?[0])));
    scaled.chain(divided).find_map(|(value, shifted)| {
        let mean = m.with_number(shifted, Function::Add).map_or(shifted, |(mean, _)| mean);
        let (squares, last) = m.mean_of(mean)?;
        (m.square_of(squares)? == value).then_some((value, last))
    })
}

fn less_mean(m: Matcher<'_>, id: NodeId) -> bool {
    let Some([value, mean]) = m.apart(id, Function::Subtract) else { return false };
    m.mean_of(mean).is_some_and(|(summed, _)| summed == value)
}

/// x / 2 · (1 + erf(x / √2)), the factors in any order
fn gelu(m: Matcher<'_>, id: NodeId) -> bool {
    m.is(id, Function::Gelu)
        || gate_of(m, id, |gate| {
            let [scaled] = m.apart(gate, Function::Erf)?;
            let (value, factor) = m.with_number(scaled, Function::Multiply)?;
            near(factor, std::f64::consts::FRAC_1_SQRT_2).then_some(value)
        })
}

/// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
fn gelu_tanh(m: Matcher<'_>, id: NodeId) -> bool {
    m.is(id, Function::GeluTanh)
        || gate_of(m, id, |gate| {
            let [inner] = m.apart(gate, Function::Tanh)?;
            let (sum, factor) = m.with_number(inner, Function::Multiply)?;
            if !near(factor, (2.0 / std::f64::consts::PI).sqrt()) {
                return None;
            }
            m.both_orders(sum, Function::Add)?.into_iter().find_map(|[value, cubed]| {
                let (_, factor) = m.with_number(cubed, Function::Multiply)?;
                near(factor, 0.044_715).then_some(value)
            })
        })
}

/// Whether a node is a value times half of one more than a gate of the same value.
fn gate_of(m: Matcher<'_>, id: NodeId, gated: impl Fn(NodeId) -> Option<NodeId>) -> bool {
    let opened = |sum: NodeId| {
        m.with_number(sum, Function::Add).filter(|&(_, one)| near(one, 1.0)).map(|(gate, _)| gate)
    };
    let halved = |id: NodeId| {
        m.with_number(id, Function::Multiply).filter(|&(_, half)| near(half, 0.5)).map(|(of, _)| of)
    };
    // The half belongs to the value, to the gate or to their product.
    let product = halved(id).unwrap_or(id);
    let Some(orders) = m.both_orders(product, Function::Multiply) else { return false };
    orders.into_iter().any(|[value, gate]| {
        let half = usize::from(product != id)
            + usize::from(halved(value).is_some())
            + usize::from(halved(gate).is_some());
        let (value, gate) = (halved(value).unwrap_or(value), halved(gate).unwrap_or(gate));
        half == 1 && opened(gate).and_then(&gated) == Some(value)
    })
}

/// x · logistic x
fn silu(m: Matcher<'_>, id: NodeId) -> bool {
    let orders = m.both_orders(id, Function::Multiply).into_iter().flatten();
    orders.into_iter().any(|[value, gate]| m.apart(gate, Function::Logistic) == Some([value]))
}

/// max(x, 0)
fn relu(m: Matcher<'_>, id: NodeId) -> bool {
    m.with_number(id, Function::Maximum).is_some_and(|(_, least)| least == 0.0)
}

/// x · cos + (-x₂, x₁) · sin, where x₁ and x₂ are the halves of x: the halves in the other order, times -1 and 1
fn rotary(m: Matcher<'_>, id: NodeId) -> bool {
    let products = |id: NodeId| m.both_orders(id, Function::Multiply).into_iter().flatten();
    let turned = |id: NodeId| {
        let signs = |[_, signs]: &[NodeId; 2]| m.numbers(*signs).is_some_and(|signs| signs == [-1.0, 1.0]);
        products(id).find(signs).and_then(|[reversed, _]| m.reversed(reversed))
    };
    m.both_orders(id, Function::Add).into_iter().flatten().any(|[plain, other]| {
        products(other).any(|[candidate, _]| {
            turned(candidate).is_some_and(|value| products(plain).any(|[factor, _]| factor == value))
        })
    })
}

/// Whether two numbers are the same but for the rounding of a narrow type.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 4e-3 * other.abs()
}

#[cfg(test)]
mod tests;
