//! Idioms: what groups of operations are called by people, found by how values flow, whatever export took apart.
//!
//! Fusion does not need the names; whoever reads a report does.

mod see;

use see::See;
use warpforge_ir::OpKind;

use crate::graph::{Fold, Graph, Id};

/// A well-known computation, by the node that gives its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idiom {
    /// What people call it.
    pub name: &'static str,
    /// The node.
    pub result: Id,
}

type Pattern = fn(See<'_>, Id) -> bool;

/// What is looked for. A new idiom is a line here and a function below.
const PATTERNS: [(&str, Pattern); 10] = [
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

/// All idioms of a graph, in the order of their results.
#[must_use]
pub fn idioms(graph: &Graph) -> Vec<Idiom> {
    let see = See { graph };
    let named = |result: Id| {
        let fits = PATTERNS.iter().find(|(_, pattern)| pattern(see, result));
        fits.map(|&(name, _)| Idiom { name, result })
    };
    graph.ids().filter(|&id| see.through(id) == id).filter_map(named).collect()
}

/// exp(x - max x) / Σ exp(x - max x)
fn softmax(see: See<'_>, id: Id) -> bool {
    let Some([weights, total]) = see.apart(id, OpKind::Divide) else { return false };
    let Some([shifted]) = see.apart(weights, OpKind::Exponential) else { return false };
    see.sum_of(total) == Some(weights) && less_maximum(see, shifted)
}

/// y - log Σ exp y, where y = x - max x
fn log_softmax(see: See<'_>, id: Id) -> bool {
    let Some([shifted, total]) = see.apart(id, OpKind::Subtract) else { return false };
    let exponential = see
        .apart(total, OpKind::Log)
        .and_then(|[total]| see.sum_of(total))
        .and_then(|summed| see.apart(summed, OpKind::Exponential));
    exponential == Some([shifted]) && less_maximum(see, shifted)
}

/// x - max x
fn less_maximum(see: See<'_>, id: Id) -> bool {
    let Some([value, maximum]) = see.apart(id, OpKind::Subtract) else { return false };
    // A row of nothing but -inf is guarded against by a comparison around its maximum.
    let guarded = see
        .apart(maximum, OpKind::Select)
        .map_or(maximum, |[_, yes, no]| if see.fold_of(yes, Fold::Max).is_some() { yes } else { no });
    see.fold_of(guarded, Fold::Max).is_some_and(|(folded, _)| folded == value)
}

/// (x - mean x) · rsqrt(mean (x - mean x)² + ε) over the last dimensions
fn layer_norm(see: See<'_>, id: Id) -> bool {
    normalised(see, id).is_some_and(|(value, last)| last && less_mean(see, value))
}

/// The same over others, and not over the last.
fn batch_norm(see: See<'_>, id: Id) -> bool {
    normalised(see, id).is_some_and(|(value, last)| !last && less_mean(see, value))
}

/// x · rsqrt(mean x² + ε)
fn rms_norm(see: See<'_>, id: Id) -> bool {
    normalised(see, id).is_some_and(|(value, last)| last && !less_mean(see, value))
}

/// What is divided by the root of the mean of its own squares, and whether the mean is over the last dimension.
fn normalised(see: See<'_>, id: Id) -> Option<(Id, bool)> {
    let scaled = see.both_orders(id, OpKind::Multiply).into_iter().flatten();
    let scaled = scaled.filter_map(|[value, scale]| Some((value, see.apart::<1>(scale, OpKind::Rsqrt)?[0])));
    let divided = see.apart(id, OpKind::Divide).into_iter();
    let divided = divided.filter_map(|[value, root]| Some((value, see.apart::<1>(root, OpKind::Sqrt)?[0])));
    scaled.chain(divided).find_map(|(value, shifted)| {
        let mean = see.with_number(shifted, OpKind::Add).map_or(shifted, |(mean, _)| mean);
        let (squares, last) = see.mean_of(mean)?;
        (see.square_of(squares)? == value).then_some((value, last))
    })
}

fn less_mean(see: See<'_>, id: Id) -> bool {
    let Some([value, mean]) = see.apart(id, OpKind::Subtract) else { return false };
    see.mean_of(mean).is_some_and(|(summed, _)| summed == value)
}

/// x / 2 · (1 + erf(x / √2)), the factors in any order
fn gelu(see: See<'_>, id: Id) -> bool {
    gate_of(see, id, |gate| {
        let [scaled] = see.apart(gate, OpKind::ChloErf)?;
        let (value, factor) = see.with_number(scaled, OpKind::Multiply)?;
        near(factor, std::f64::consts::FRAC_1_SQRT_2).then_some(value)
    })
}

/// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
fn gelu_tanh(see: See<'_>, id: Id) -> bool {
    gate_of(see, id, |gate| {
        let [inner] = see.apart(gate, OpKind::Tanh)?;
        let (sum, factor) = see.with_number(inner, OpKind::Multiply)?;
        if !near(factor, (2.0 / std::f64::consts::PI).sqrt()) {
            return None;
        }
        see.both_orders(sum, OpKind::Add)?.into_iter().find_map(|[value, cubed]| {
            let (_, factor) = see.with_number(cubed, OpKind::Multiply)?;
            near(factor, 0.044_715).then_some(value)
        })
    })
}

/// Whether a node is a value times half of one more than a gate of the same value.
fn gate_of(see: See<'_>, id: Id, gated: impl Fn(Id) -> Option<Id>) -> bool {
    let opened =
        |sum: Id| see.with_number(sum, OpKind::Add).filter(|&(_, one)| near(one, 1.0)).map(|(gate, _)| gate);
    let halved =
        |id: Id| see.with_number(id, OpKind::Multiply).filter(|&(_, half)| near(half, 0.5)).map(|(of, _)| of);
    // The half belongs to the value, to the gate or to their product.
    let product = halved(id).unwrap_or(id);
    let Some(orders) = see.both_orders(product, OpKind::Multiply) else { return false };
    orders.into_iter().any(|[value, gate]| {
        let half = usize::from(product != id)
            + usize::from(halved(value).is_some())
            + usize::from(halved(gate).is_some());
        let (value, gate) = (halved(value).unwrap_or(value), halved(gate).unwrap_or(gate));
        half == 1 && opened(gate).and_then(&gated) == Some(value)
    })
}

/// x · logistic x
fn silu(see: See<'_>, id: Id) -> bool {
    let orders = see.both_orders(id, OpKind::Multiply).into_iter().flatten();
    orders.into_iter().any(|[value, gate]| see.apart(gate, OpKind::Logistic) == Some([value]))
}

/// max(x, 0)
fn relu(see: See<'_>, id: Id) -> bool {
    see.with_number(id, OpKind::Maximum).is_some_and(|(_, least)| least == 0.0)
}

/// x · cos + (-x₂, x₁) · sin, where x₁ and x₂ are the halves of x: the halves in the other order, times -1 and 1
fn rotary(see: See<'_>, id: Id) -> bool {
    let products = |id: Id| see.both_orders(id, OpKind::Multiply).into_iter().flatten();
    let turned = |id: Id| {
        let signs = |[_, signs]: &[Id; 2]| see.numbers(*signs).is_some_and(|signs| signs == [-1.0, 1.0]);
        products(id).find(signs).and_then(|[reversed, _]| see.reversed(reversed))
    };
    see.both_orders(id, OpKind::Add).into_iter().flatten().any(|[plain, other]| {
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
