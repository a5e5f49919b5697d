//! Patterns: what groups of operations are called by people, found by how values flow, whatever export took apart.
//!
//! Each pattern has one matcher. Names are for whoever reads a report; what is computed faster as a whole (GELU, rotary embedding,
//! attention's softmax) is rewritten or described by means of the same matcher.

pub(crate) mod gelu;
pub(crate) mod matcher;
pub(crate) mod rotary;
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
    let m = Matcher::seeing_through(graph);
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

/// x / 2 · (1 + erf(x / √2))
fn gelu(m: Matcher<'_>, id: NodeId) -> bool {
    m.is(id, Function::Gelu) || gelu::gelu(m, id).is_some()
}

/// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
fn gelu_tanh(m: Matcher<'_>, id: NodeId) -> bool {
    m.is(id, Function::GeluTanh) || gelu::gelu_tanh(m, id).is_some()
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

/// x · cos + (-x₂, x₁) · sin, where x₁ and x₂ are the halves of x
fn rotary(m: Matcher<'_>, id: NodeId) -> bool {
    rotary::rotary(m.graph, id).is_some()
}

#[cfg(test)]
mod tests;
