//! Matches GELU (tanh approximation) and its gradient, as BLAS epilogues compute them.
//!
//! GELU by erf differs: at -3 the two are -0.00364 and -0.00405, hundreds of bf16 ULPs. It is not matched. Only bf16
//! and f16 results are matched: the accuracy of the libraries' tanh in f32 is undocumented.

use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::OpKind;
use warpforge_tensor::ElementType;

use super::epilogue::constant_value;

/// √(2/π).
const BETA: f64 = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;

/// The coefficient of the cubic term.
const CUBIC: f64 = 0.044_715;

/// Largest nesting of multiplications.
const MAX_DEPTH: usize = 8;

/// The argument of a GELU.
pub(super) fn of(body: &Body, at: usize) -> Option<usize> {
    let [one, other] = product_of(body, at, 0.5)?.try_into().ok()?;
    let is = |x: usize, gate: usize| {
        let tanh = one_plus(body, gate)?;
        is_tanh_of_cubic(body, tanh, x).then_some(x)
    };
    is(one, other).or_else(|| is(other, one))
}

/// Matches a product of a factor and the derivative of GELU at `x`; returns both.
pub(super) fn gradient(body: &Body, at: usize) -> Option<[usize; 2]> {
    let [one, other] = product_of(body, at, 1.0)?.try_into().ok()?;
    let is = |factor: usize, gradient: usize| {
        let [left, right] = operands(body, gradient, OpKind::Add)?;
        let x = gradient_at(body, left, right).or_else(|| gradient_at(body, right, left))?;
        Some([factor, x])
    };
    is(one, other).or_else(|| is(other, one))
}

/// The `x` for which `gate` + `rest` is the derivative: `(1 + t) / 2` and `x (1 - t²) β (1 + 3 c x²) / 2`, with t the
/// tanh.
fn gradient_at(body: &Body, gate: usize, rest: usize) -> Option<usize> {
    let [gate] = product_of(body, gate, 0.5)?.try_into().ok()?;
    let tanh = one_plus(body, gate)?;
    let parts: [usize; 3] = product_of(body, rest, 0.5 * BETA)?.try_into().ok()?;
    let is_tanh_gradient = |at: usize| {
        operands(body, at, OpKind::Subtract).is_some_and(|[one, square]| {
            constant_value(body, one) == Some(1.0) && product_of(body, square, 1.0) == Some(vec![tanh; 2])
        })
    };
    let is_cubic_gradient = |at: usize, x: usize| {
        one_plus(body, at).is_some_and(|square| product_of(body, square, 3.0 * CUBIC) == Some(vec![x; 2]))
    };
    parts.into_iter().find(|&x| {
        let others: Vec<usize> = parts.into_iter().filter(|&part| part != x).collect();
        let fits = |steep: usize, wide: usize| is_tanh_gradient(steep) && is_cubic_gradient(wide, x);
        matches!(others[..], [a, b] if fits(a, b) || fits(b, a)) && is_tanh_of_cubic(body, tanh, x)
    })
}

/// Whether a step is the tanh of `β (x + c x³)`.
fn is_tanh_of_cubic(body: &Body, tanh: usize, x: usize) -> bool {
    let inner = || {
        let step = &body.steps[tanh];
        let &inner = step.inputs.first().filter(|_| is(body, tanh, OpKind::Tanh))?;
        let [sum] = product_of(body, inner, BETA)?.try_into().ok()?;
        let [a, b] = operands(body, sum, OpKind::Add)?;
        let cube = if a == x { b } else { a };
        Some((a == x || b == x) && product_of(body, cube, CUBIC)? == vec![x; 3])
    };
    inner() == Some(true)
}

fn is(body: &Body, at: usize, kind: OpKind) -> bool {
    let step = &body.steps[at];
    step.element == ElementType::F32 && matches!(step.op, BodyOp::Elementwise(known) if known == kind)
}

fn operands(body: &Body, at: usize, kind: OpKind) -> Option<[usize; 2]> {
    body.steps[at].inputs.clone().try_into().ok().filter(|_| is(body, at, kind))
}

/// The other operand of an addition of 1.
fn one_plus(body: &Body, at: usize) -> Option<usize> {
    let [a, b] = operands(body, at, OpKind::Add)?;
    let one = |at: usize| constant_value(body, at) == Some(1.0);
    if one(a) { Some(b) } else { one(b).then_some(a) }
}

/// The factors of a product without its constants, whose product must be `wanted` to f32 precision.
fn product_of(body: &Body, at: usize, wanted: f64) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    let factor = factors(body, at, &mut found, 0)?;
    ((factor - wanted).abs() <= 1e-6 * wanted).then_some(found)
}

fn factors(body: &Body, at: usize, found: &mut Vec<usize>, depth: usize) -> Option<f64> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(number) = constant_value(body, at) {
        return Some(number);
    }
    match operands(body, at, OpKind::Multiply) {
        Some([a, b]) => Some(factors(body, a, found, depth + 1)? * factors(body, b, found, depth + 1)?),
        None => {
            found.push(at);
            Some(1.0)
        }
    }
}
