//! The gamma function's logarithm and derivatives, and the Hurwitz zeta function.
//!
//! All by Euler and Maclaurin: shift the argument to where the asymptotic series converges, then undo the shift.

use crate::math::wide::Wide;

/// The Bernoulli numbers B2, B4, … as fractions.
const BERNOULLI: [(i64, u64); 16] = [
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174611, 330),
    (854513, 138),
    (-236364091, 2730),
    (8553103, 6),
    (-23749461029, 870),
    (8615841276005, 14322),
    (-7709321041217, 510),
];

/// Arguments at least this large give the series above more than 100 bits.
const SHIFTED: f64 = 40.0;

fn bernoulli() -> impl Iterator<Item = (i64, Wide)> {
    BERNOULLI
        .iter()
        .zip(1i64..)
        .map(|(&(numerator, denominator), k)| (k, Wide::from(numerator).over(denominator)))
}

fn is_pole(x: f64) -> bool {
    x <= 0.0 && x == x.floor()
}

/// How many steps bring `x` to where the series converges.
fn steps_to_shift(x: f64) -> i64 {
    if x >= SHIFTED { 0 } else { (SHIFTED - x).ceil() as i64 }
}

/// The logarithm of the gamma function's magnitude.
#[must_use]
pub fn lgamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.is_infinite() || is_pole(x) {
        return f64::INFINITY;
    }
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    if x > 1e17 {
        // x (ln x - 1): the rest is below the last place.
        return x * (libm::log(x) - 1.0);
    }
    if x >= 0.5 {
        return wide_lgamma(Wide::from(x), steps_to_shift(x)).to_f64();
    }
    // Reflection: ln Γ(x) = ln(π / |sin πx|) - ln Γ(1 - x), the sine taken of the distance to the nearest integer.
    let nearest = x.round_ties_even();
    let angle = (Wide::from(x) - Wide::from(nearest)) * Wide::PI;
    let mirrored = wide_lgamma(Wide::ONE - Wide::from(x), steps_to_shift(1.0 - x));
    ((Wide::PI / angle.sin_cos().0.abs()).ln() - mirrored).to_f64()
}

/// Stirling's series after `steps` shifts.
fn wide_lgamma(x: Wide, steps: i64) -> Wide {
    let mut product = Wide::ONE;
    for i in 0..steps {
        product = product * (x + Wide::from(i));
    }
    let z = x + Wide::from(steps);
    let inverse = z.reciprocal();
    let square = inverse.square();
    let half = Wide::from(0.5);
    let mut sum = (z - half) * z.ln() - z + (Wide::PI.scaled(1)).ln().scaled(-1);
    let mut power = inverse;
    for (k, number) in bernoulli() {
        sum = sum + (number * power).over((2 * k * (2 * k - 1)) as u64);
        power = power * square;
    }
    sum - product.ln()
}

/// The derivative of the gamma function's logarithm; NaN at the poles.
#[must_use]
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || is_pole(x) || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x > 1e17 {
        return libm::log(x);
    }
    if x >= 0.5 {
        return wide_digamma(Wide::from(x), steps_to_shift(x)).to_f64();
    }
    // Reflection: ψ(x) = ψ(1 - x) - π / tan(πx).
    let angle = (Wide::from(x) - Wide::from(x.round_ties_even())) * Wide::PI;
    let (sin, cos) = angle.sin_cos();
    let mirrored = wide_digamma(Wide::ONE - Wide::from(x), steps_to_shift(1.0 - x));
    (mirrored - Wide::PI * cos / sin).to_f64()
}

fn wide_digamma(x: Wide, steps: i64) -> Wide {
    let mut sum = Wide::ZERO;
    for i in 0..steps {
        sum = sum - (x + Wide::from(i)).reciprocal();
    }
    let z = x + Wide::from(steps);
    let inverse = z.reciprocal();
    let square = inverse.square();
    sum = sum + z.ln() - inverse.scaled(-1);
    let mut power = square;
    for (k, number) in bernoulli() {
        sum = sum - (number * power).over(2 * k as u64);
        power = power * square;
    }
    sum
}

/// The derivative of order `n + 1` of the gamma function's logarithm; NaN where `n` is not a natural number.
#[must_use]
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n.is_nan() || x.is_nan() || n < 0.0 || n != n.floor() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    let value = wide_zeta(n + 1.0, x);
    match value {
        Ok(value) if n < 1e6 => {
            let log_factorial = wide_lgamma(Wide::from(n) + Wide::ONE, steps_to_shift(n + 1.0));
            sign * (value * log_factorial.exp()).to_f64()
        }
        Ok(_) => sign * f64::INFINITY,
        Err(special) => sign * special,
    }
}

/// The Hurwitz zeta function: the sum of `(q + k)^-s` over all natural numbers `k`.
#[must_use]
pub fn zeta(s: f64, q: f64) -> f64 {
    wide_zeta(s, q).map_or_else(|special| special, Wide::to_f64)
}

/// The sum, or the special value it has.
fn wide_zeta(s: f64, q: f64) -> Result<Wide, f64> {
    if s.is_nan() || q.is_nan() || s < 1.0 {
        return Err(f64::NAN);
    }
    if s == 1.0 || is_pole(q) {
        return Err(f64::INFINITY);
    }
    if q < 0.0 && s != s.floor() {
        return Err(f64::NAN);
    }
    if s.is_infinite() || q.is_infinite() || q < -1e6 {
        return Err(if q > 1.0 {
            0.0
        } else if q == 1.0 {
            1.0
        } else {
            f64::INFINITY
        });
    }
    let ws = Wide::from(s);
    let odd = s == s.floor() && s % 2.0 == 1.0;
    let mut sum = Wide::ZERO;
    // The series needs q large against s as well.
    let steps = steps_to_shift(q).max(if s < 200.0 { (s - q).ceil() as i64 } else { 0 }).max(0);
    for k in 0..steps {
        let base = Wide::from(q) + Wide::from(k);
        let term = power(base.abs(), -ws);
        sum = if base.is_negative() && odd { sum - term } else { sum + term };
    }
    let z = Wide::from(q) + Wide::from(steps);
    let inverse = z.reciprocal();
    let last = power(z, -ws);
    sum = sum + last * z / (ws - Wide::ONE) + last.scaled(-1);
    // s (s+1) … (s+2k-2) B2k / (2k)! z^-(s+2k-1)
    let mut factor = last * ws * inverse;
    for (k, number) in bernoulli() {
        factor = factor.over((2 * k * (2 * k - 1)) as u64);
        let next = sum + number * factor;
        if (next - sum).magnitude() < sum.magnitude() - 200 {
            break;
        }
        sum = next;
        let position = Wide::from(2 * k - 1);
        factor = factor * (ws + position) * (ws + position + Wide::ONE) * inverse.square();
    }
    Ok(sum)
}

/// `base^exponent` for a positive base.
fn power(base: Wide, exponent: Wide) -> Wide {
    (base.ln() * exponent).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[track_caller]
    fn near(actual: f64, expected: f64) {
        assert!((actual / expected - 1.0).abs() < 4e-16, "{actual:e} is not {expected:e}");
    }

    #[test]
    fn known_values() {
        near(lgamma(0.5), 0.5723649429247001);
        near(lgamma(10.0), 12.801827480081469);
        near(lgamma(-1.5), 0.860047015376481);
        near(lgamma(1.0 + 1e-10), -5.772157125783244e-11);
        near(digamma(1.0), -0.5772156649015329);
        near(digamma(-0.25), 2.9141391202135276);
        near(zeta(2.0, 1.0), PI * PI / 6.0);
        near(zeta(1.5, 0.25), 10.213055360466601);
        near(polygamma(1.0, 1.0), PI * PI / 6.0);
        near(polygamma(3.0, 2.5), 0.22390584881725206);
    }

    #[test]
    fn poles_and_domains() {
        assert_eq!((lgamma(1.0), lgamma(2.0)), (0.0, 0.0));
        assert_eq!(lgamma(-3.0), f64::INFINITY);
        assert!(digamma(0.0).is_nan() && digamma(-2.0).is_nan());
        assert!(zeta(0.5, 1.0).is_nan());
        assert_eq!(zeta(1.0, 1.0), f64::INFINITY);
        assert!(polygamma(0.5, 1.0).is_nan());
    }
}
