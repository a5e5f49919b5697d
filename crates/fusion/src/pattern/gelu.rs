//! The one matcher of GELU, its form by the hyperbolic tangent and the gradient of that: of a graph for its names, and of exact
//! chains of f32 for the rewrite that makes each of them one function.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use warpforge_tensor::elementwise::Function;

use super::matcher::Matcher;
use crate::graph::NodeId;

/// √(2/π).
const BETA: f64 = SQRT_2 * FRAC_2_SQRT_PI * 0.5;

/// The factor of the cube.
const CUBIC: f64 = 0.044_715;

/// The values of a GELU by the error function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gelu {
    /// What it is of.
    pub(crate) x: NodeId,
    /// `1 + erf(x / √2)`.
    pub(crate) gate: NodeId,
    /// `erf(x / √2)`.
    pub(crate) error: NodeId,
}

/// `x / 2 (1 + erf(x / √2))`, the factors in any order
pub(crate) fn gelu(m: Matcher<'_>, id: NodeId) -> Option<Gelu> {
    m.factors(id, None)?.1.into_iter().find_map(|gate| {
        let error = m.beside(gate, Function::Add, 1.0)?;
        let [scaled] = m.apart(error, Function::Erf)?;
        let x = m
            .beside(scaled, Function::Multiply, FRAC_1_SQRT_2)
            .or_else(|| m.beside(scaled, Function::Divide, SQRT_2))?;
        m.is_product(id, x, 0.5, &[gate, x]).then_some(Gelu { x, gate, error })
    })
}

/// What a node is `x / 2 (1 + tanh(β (x + c x³)))` of, the factors in any order
pub(crate) fn gelu_tanh(m: Matcher<'_>, id: NodeId) -> Option<NodeId> {
    m.factors(id, None)?.1.into_iter().find_map(|gate| {
        let x = tangent_of(m, m.beside(gate, Function::Add, 1.0)?)?;
        m.is_product(id, x, 0.5, &[gate, x]).then_some(x)
    })
}

/// What is given and the `x` of a node that is given times the slope of GELU by the tangent at `x`.
pub(crate) fn gelu_tanh_gradient(m: Matcher<'_>, id: NodeId) -> Option<[NodeId; 2]> {
    let orders = m.both_orders(id, Function::Multiply)?;
    orders.into_iter().find_map(|[given, slope]| Some([given, slope_of(m, slope)?]))
}

/// What a node is the slope of GELU by the tangent at: `(1 + t) / 2 + x (1 - t²) β (1 + 3 c x²) / 2`, t the tangent
fn slope_of(m: Matcher<'_>, id: NodeId) -> Option<NodeId> {
    m.both_orders(id, Function::Add)?.into_iter().find_map(|[gate, rest]| {
        let gate = m.beside(gate, Function::Multiply, 0.5)?;
        let tangent = m.beside(gate, Function::Add, 1.0)?;
        let x = tangent_of(m, tangent)?;
        let (factor, factors) = m.factors(rest, Some(x))?;
        let is_steep = |at: NodeId| {
            m.apart(at, Function::Subtract).is_some_and(|[one, square]| {
                m.number(one) == Some(1.0) && m.is_product(square, tangent, 1.0, &[tangent; 2])
            })
        };
        let is_wide = |at: NodeId| {
            m.beside(at, Function::Add, 1.0)
                .is_some_and(|square| m.is_product(square, x, 3.0 * CUBIC, &[x; 2]))
        };
        let fits = m.near(factor, 0.5 * BETA)
            && factors.len() == 3
            && factors.contains(&x)
            && factors.iter().any(|&at| is_steep(at))
            && factors.iter().any(|&at| is_wide(at));
        fits.then_some(x)
    })
}

/// What a node is the tangent `tanh(β (x + c x³))` of.
fn tangent_of(m: Matcher<'_>, id: NodeId) -> Option<NodeId> {
    let [inner] = m.apart(id, Function::Tanh)?;
    let sum = m.beside(inner, Function::Multiply, BETA)?;
    let orders = m.both_orders(sum, Function::Add)?;
    orders.into_iter().find_map(|[x, cube]| m.is_product(cube, x, CUBIC, &[x; 3]).then_some(x))
}
