//! GELU by the hyperbolic tangent, and its gradient, as loops: what the vendors' libraries of products have.
//!
//! Only that form is theirs. GELU by the error function is another number: at -3 the two are -0.00405 and -0.00364, a tenth
//! apart, hundreds of units of bf16. It is never given to them. And what they compute is only given to results of bf16 and
//! f16: how near their hyperbolic tangent is to that of f32 is not said anywhere.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::OpKind;
use warpforge_tensor::ElementType;

use super::epilogue::number;

/// √(2/π).
const BETA: f64 = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;

/// The share of the cube.
const CUBIC: f64 = 0.044_715;

/// Most multiplications inside each other.
const DEEPEST: usize = 8;

/// The step that a step is the GELU of.
pub(super) fn of(body: &Body, at: usize) -> Option<usize> {
    let [one, other] = times(body, at, 0.5)?.try_into().ok()?;
    let is = |x: usize, gate: usize| {
        let tanh = one_and(body, gate)?;
        is_bent(body, tanh, x).then_some(x)
    };
    is(one, other).or_else(|| is(other, one))
}

/// The steps whose product a step is: something, and the slope of GELU at something; those two.
pub(super) fn gradient(body: &Body, at: usize) -> Option<[usize; 2]> {
    let [one, other] = times(body, at, 1.0)?.try_into().ok()?;
    let is = |given: usize, slope: usize| {
        let [left, right] = both(body, slope, OpKind::Add)?;
        let x = slope_at(body, left, right).or_else(|| slope_at(body, right, left))?;
        Some([given, x])
    };
    is(one, other).or_else(|| is(other, one))
}

/// Where `gate` and `rest` together are the slope: `(1 + t) / 2` and `x (1 - t²) β (1 + 3 c x²) / 2`, t the tangent.
fn slope_at(body: &Body, gate: usize, rest: usize) -> Option<usize> {
    let [gate] = times(body, gate, 0.5)?.try_into().ok()?;
    let tanh = one_and(body, gate)?;
    let parts: [usize; 3] = times(body, rest, 0.5 * BETA)?.try_into().ok()?;
    let is_steep = |at: usize| {
        both(body, at, OpKind::Subtract).is_some_and(|[one, square]| {
            number(body, one) == Some(1.0) && times(body, square, 1.0) == Some(vec![tanh; 2])
        })
    };
    let is_wide = |at: usize, x: usize| {
        one_and(body, at).is_some_and(|square| times(body, square, 3.0 * CUBIC) == Some(vec![x; 2]))
    };
    parts.into_iter().find(|&x| {
        let others: Vec<usize> = parts.into_iter().filter(|&part| part != x).collect();
        let fits = |steep: usize, wide: usize| is_steep(steep) && is_wide(wide, x);
        matches!(others[..], [a, b] if fits(a, b) || fits(b, a)) && is_bent(body, tanh, x)
    })
}

/// Whether a step is the tangent of `β (x + c x³)`.
fn is_bent(body: &Body, tanh: usize, x: usize) -> bool {
    let inner = || {
        let step = &body.steps[tanh];
        let &inner = step.inputs.first().filter(|_| is(body, tanh, OpKind::Tanh))?;
        let [sum] = times(body, inner, BETA)?.try_into().ok()?;
        let [a, b] = both(body, sum, OpKind::Add)?;
        let cube = if a == x { b } else { a };
        Some((a == x || b == x) && times(body, cube, CUBIC)? == vec![x; 3])
    };
    inner() == Some(true)
}

fn is(body: &Body, at: usize, kind: OpKind) -> bool {
    let step = &body.steps[at];
    step.element == ElementType::F32 && matches!(step.op, BodyOp::Elementwise(known) if known == kind)
}

fn both(body: &Body, at: usize, kind: OpKind) -> Option<[usize; 2]> {
    body.steps[at].inputs.clone().try_into().ok().filter(|_| is(body, at, kind))
}

/// What 1 is added to.
fn one_and(body: &Body, at: usize) -> Option<usize> {
    let [a, b] = both(body, at, OpKind::Add)?;
    let one = |at: usize| number(body, at) == Some(1.0);
    if one(a) { Some(b) } else { one(b).then_some(a) }
}

/// The factors of a product, numbers taken out, which together must be this one to f32's precision.
fn times(body: &Body, at: usize, wanted: f64) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    let factor = factors(body, at, &mut found, 0)?;
    ((factor - wanted).abs() <= 1e-6 * wanted).then_some(found)
}

fn factors(body: &Body, at: usize, found: &mut Vec<usize>, depth: usize) -> Option<f64> {
    if depth > DEEPEST {
        return None;
    }
    if let Some(number) = number(body, at) {
        return Some(number);
    }
    match both(body, at, OpKind::Multiply) {
        Some([a, b]) => Some(factors(body, a, found, depth + 1)? * factors(body, b, found, depth + 1)?),
        None => {
            found.push(at);
            Some(1.0)
        }
    }
}
