//! The gamma function's logarithm and derivatives, and the Hurwitz zeta function.
//!
//! All by Euler and Maclaurin: the argument is shifted to where the asymptotic series is good to the last digit, and the
//! shift undone.

use std::f64::consts::{LN_2, PI};

use super::expr::Expr;

/// The Bernoulli numbers B2, B4, ….
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174_611.0 / 330.0,
    854_513.0 / 138.0,
    -236_364_091.0 / 2730.0,
];

/// How far arguments are shifted.
const SHIFT: u32 = 9;

/// Terms of the series that are used from there on: those after them are below the last digit.
const TERMS: usize = 8;

/// `x`, and the same shifted where it is small.
fn shifted(x: &Expr) -> (Expr, Expr) {
    let small = x.lt(f64::from(SHIFT));
    let z = small.choose(x.clone() + f64::from(SHIFT), x.clone());
    (small, z)
}

/// `x`, `x + 1`, … before the shift.
fn steps(x: &Expr) -> impl Iterator<Item = Expr> + '_ {
    (0..SHIFT).map(|step| x.clone() + f64::from(step))
}

/// The distance to the nearest whole number, times π: what sine and cosine of `πx` depend on.
fn angle(x: &Expr) -> Expr {
    (x.clone() - x.round()) * PI
}

/// Whether a number is a pole of the gamma function.
fn is_pole(x: &Expr) -> Expr {
    x.lt(0.5).and(&x.eq(x.floor()))
}

/// `ln Γ(x)` for `x` from one half on.
fn lgamma_positive(x: &Expr) -> Expr {
    let (small, z) = shifted(x);
    let inverse = 1.0 / z.clone();
    let square = inverse.clone() * inverse.clone();
    let coefficients: Vec<f64> = (1..).zip(&BERNOULLI[..TERMS]).map(stirling).collect();
    let series = inverse * square.polynomial(&coefficients);
    // (z - 1/2) (ln z - 1) - 1/2 does not overflow before the result does.
    let sum = (z.clone() - 0.5) * (z.ln() - 1.0) + (series + (0.5 * (LN_2 + PI.ln()) - 0.5));
    let product = steps(x).reduce(|product, factor| product * factor).unwrap_or(Expr::number(1.0));
    sum - small.choose(product, 1.0).ln()
}

/// B2k / (2k (2k - 1)).
fn stirling((k, number): (u32, &f64)) -> f64 {
    let double = f64::from(2 * k);
    number / (double * (double - 1.0))
}

pub(super) fn lgamma(x: &Expr) -> Expr {
    let mirrored = x.lt(0.5);
    let positive = lgamma_positive(&mirrored.choose(1.0 - x.clone(), x.clone()));
    // Γ(x) Γ(1 - x) = π / sin πx.
    let reflected = PI.ln() - angle(x).sin().abs().ln() - positive.clone();
    let value = mirrored.choose(reflected, positive);
    let infinite = x.abs().eq(f64::INFINITY).or(&is_pole(x));
    let exact_zero = x.eq(1.0).or(&x.eq(2.0));
    infinite.choose(f64::INFINITY, exact_zero.choose(0.0, value))
}

/// `ψ(x)` for `x` from one half on.
fn digamma_positive(x: &Expr) -> Expr {
    let (small, z) = shifted(x);
    let inverse = 1.0 / z.clone();
    let square = inverse.clone() * inverse.clone();
    let coefficients: Vec<f64> =
        (1..).zip(&BERNOULLI[..TERMS]).map(|(k, number)| number / f64::from(2 * k)).collect();
    let series = square.clone() * square.polynomial(&coefficients);
    let sum = steps(x).map(|step| 1.0 / step).reduce(|sum, term| sum + term).unwrap_or(Expr::number(0.0));
    z.ln() - 0.5 * inverse - series - small.choose(sum, 0.0)
}

pub(super) fn digamma(x: &Expr) -> Expr {
    let mirrored = x.lt(0.5);
    let positive = digamma_positive(&mirrored.choose(1.0 - x.clone(), x.clone()));
    // ψ(x) = ψ(1 - x) - π / tan πx.
    let angle = angle(x);
    let reflected = positive.clone() - PI * angle.cos() / angle.sin();
    let value = mirrored.choose(reflected, positive);
    is_pole(x).or(&x.eq(f64::NEG_INFINITY)).choose(f64::NAN, value)
}

pub(super) fn polygamma(n: &Expr, x: &Expr) -> Expr {
    let order = n.clone() + 1.0;
    let factorial = lgamma_positive(&order.max(1.0)).exp();
    let magnitude = factorial * zeta(&order, x);
    // Of odd order it is positive.
    let half = n.clone() * 0.5;
    let even = half.eq(half.floor());
    let value = even.choose(-magnitude.clone(), magnitude);
    let natural = n.eq(n.floor()).and(&n.lt(0.0).not());
    n.eq(0.0).choose(digamma(x), natural.choose(value, f64::NAN))
}

pub(super) fn zeta(s: &Expr, q: &Expr) -> Expr {
    let power = |base: &Expr| base.pow(&-s.clone());
    let steps: Vec<Expr> = (0..12).map(|step| q.clone() + f64::from(step)).collect();
    let sum = steps.iter().map(power).reduce(|sum, term| sum + term).unwrap_or(Expr::number(0.0));
    let z = q.clone() + 12.0;
    let last = power(&z);
    let mut total = sum + last.clone() * z.clone() / (s.clone() - 1.0) + 0.5 * last.clone();
    // s (s+1) … (s+2k-2) B2k / (2k)! z^-(s+2k-1)
    let inverse = 1.0 / z;
    let square = inverse.clone() * inverse.clone();
    let mut factor = last * s.clone() * inverse;
    let mut factorial = 1.0;
    for (k, number) in (1u32..).zip(BERNOULLI) {
        let double = f64::from(2 * k);
        factorial *= double * (double - 1.0);
        total = total + factor.clone() * (number / factorial);
        factor = factor * (s.clone() + (double - 1.0)) * (s.clone() + double) * square.clone();
    }
    let infinite = s.eq(1.0).or(&is_pole(q));
    let total = q.lt(0.0).and(&s.eq(s.floor()).not()).choose(f64::NAN, total);
    // Where nothing of the sum is left, a corner of the formula may be no number.
    let total = q.eq(f64::INFINITY).choose(0.0, total);
    let numbers = s.eq(s.clone()).and(&q.eq(q.clone()));
    numbers.and(&s.lt(1.0).not()).choose(infinite.choose(f64::INFINITY, total), f64::NAN)
}
