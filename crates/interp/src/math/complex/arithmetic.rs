//! Products, quotients, roots and magnitude.

use super::{Complex, NAN, Wide, is_finite, narrow};

/// The product, each operation rounded to `round`'s type.
///
/// Where both parts come out as NaN although an operand is infinite or a partial product overflows, the result is the
/// infinity of Annex G, example 1.
pub fn mul(a: Complex, b: Complex, round: impl Fn(f64) -> f64) -> Complex {
    let part = |x: f64| round(x);
    let [ac, bd] = [part(a.0 * b.0), part(a.1 * b.1)];
    let [ad, bc] = [part(a.0 * b.1), part(a.1 * b.0)];
    let (re, im) = (part(ac - bd), part(ad + bc));
    if re.is_nan() && im.is_nan() {
        let overflow = [ac, bd, ad, bc].iter().any(|product| product.is_infinite());
        return mul_special(a, b, overflow).unwrap_or((re, im));
    }
    (re, im)
}

/// One for an infinity and zero for everything else, with the sign of the number.
fn boxed(x: f64) -> f64 {
    f64::from(u8::from(x.is_infinite())).copysign(x)
}

/// A product that is infinite although both of its parts were computed as NaN; `None` where it is NaN.
fn mul_special(mut a: Complex, mut b: Complex, overflow: bool) -> Option<Complex> {
    let infinite = |z: Complex| z.0.is_infinite() || z.1.is_infinite();
    let zero_for_nan = |x: f64| if x.is_nan() { 0.0f64.copysign(x) } else { x };
    let without_nan = |z: Complex| (zero_for_nan(z.0), zero_for_nan(z.1));
    let (of_a, of_b) = (infinite(a), infinite(b));
    if of_a {
        (a, b) = ((boxed(a.0), boxed(a.1)), without_nan(b));
    }
    if of_b {
        (a, b) = (without_nan(a), (boxed(b.0), boxed(b.1)));
    }
    if !of_a && !of_b {
        if !overflow {
            return None;
        }
        (a, b) = (without_nan(a), without_nan(b));
    }
    let infinity = f64::INFINITY;
    Some((infinity * (a.0 * b.0 - a.1 * b.1), infinity * (a.0 * b.1 + a.1 * b.0)))
}

/// The square. The real part is `(x - y)(x + y)`, so that it is zero and not NaN where both squares overflow.
///
/// Infinities and NaNs are those of the product.
#[must_use]
pub fn square(z: Complex) -> Complex {
    let (x, y) = z;
    if !is_finite(z) {
        return mul(z, z, |part| part);
    }
    let (wx, wy) = (Wide::from(x), Wide::from(y));
    let re = if x.abs() == y.abs() { 0.0 } else { ((wx - wy) * (wx + wy)).to_f64() };
    (re, 2.0 * (x * y))
}

/// The quotient.
#[must_use]
pub fn div(a: Complex, b: Complex) -> Complex {
    let zero = b.0 == 0.0 && b.1 == 0.0;
    if is_finite(a) && is_finite(b) && !zero {
        let [ar, ai, br, bi] = [a.0, a.1, b.0, b.1].map(Wide::from);
        let norm = br.square() + bi.square();
        let re = signed((ar * br + ai * bi) / norm, || a.0 * b.0 + a.1 * b.1);
        let im = signed((ai * br - ar * bi) / norm, || a.1 * b.0 - a.0 * b.1);
        return (re, im);
    }
    div_special(a, b, zero)
}

/// A result that is zero gets the sign that plain arithmetic gives it, unless that overflows.
fn signed(value: Wide, plain: impl Fn() -> f64) -> f64 {
    if !value.is_zero() {
        return value.to_f64();
    }
    let plain = plain();
    if plain.is_nan() { 0.0 } else { 0.0f64.copysign(plain) }
}

/// Quotients with an infinity, a NaN or a zero divisor: Annex G, example 2.
fn div_special(a: Complex, b: Complex, zero: bool) -> Complex {
    if zero && !(a.0.is_nan() && a.1.is_nan()) {
        let infinity = f64::INFINITY.copysign(b.0);
        return (infinity * a.0, infinity * a.1);
    }
    if (a.0.is_infinite() || a.1.is_infinite()) && is_finite(b) {
        let (x, y) = (boxed(a.0), boxed(a.1));
        return (f64::INFINITY * (x * b.0 + y * b.1), f64::INFINITY * (y * b.0 - x * b.1));
    }
    if (b.0.is_infinite() || b.1.is_infinite()) && is_finite(a) {
        let (x, y) = (boxed(b.0), boxed(b.1));
        return (0.0 * (a.0 * x + a.1 * y), 0.0 * (a.1 * x - a.0 * y));
    }
    NAN
}

/// `1 / z`.
#[must_use]
pub fn reciprocal(z: Complex) -> Complex {
    div((1.0, 0.0), z)
}

/// The magnitude.
#[must_use]
pub fn abs(z: Complex) -> f64 {
    libm::hypot(z.0, z.1)
}

/// `z / |z|`; zero stays zero, and what is not a number is none.
#[must_use]
pub fn sign(z: Complex) -> Complex {
    if z == (0.0, 0.0) {
        return z;
    }
    if !is_finite(z) {
        return NAN;
    }
    let (x, y) = (Wide::from(z.0), Wide::from(z.1));
    let norm = (x.square() + y.square()).sqrt();
    ((x / norm).to_f64().copysign(z.0), (y / norm).to_f64().copysign(z.1))
}

/// The square root with a real part that is not negative, of a finite number.
pub(super) fn wide_sqrt(x: Wide, y: Wide) -> (Wide, Wide) {
    if x.is_zero() && y.is_zero() {
        return (Wide::ZERO, y);
    }
    let norm = (x.square() + y.square()).sqrt();
    let large = (norm + x.abs()).scaled(-1).sqrt();
    let small = (y.abs() / large).scaled(-1);
    let (re, im) = if x.is_negative() && !x.is_zero() { (small, large) } else { (large, small) };
    (re, if y.is_negative() { -im } else { im })
}

/// The square root with a real part that is not negative.
#[must_use]
pub fn sqrt(z: Complex) -> Complex {
    let (x, y) = z;
    if y.is_infinite() {
        return (f64::INFINITY, y);
    }
    if x == f64::INFINITY {
        return (x, if y.is_nan() { y } else { 0.0f64.copysign(y) });
    }
    if x == f64::NEG_INFINITY {
        return if y.is_nan() { (y, f64::INFINITY) } else { (0.0, f64::INFINITY.copysign(y)) };
    }
    if x.is_nan() || y.is_nan() {
        return NAN;
    }
    let (re, im) = narrow(wide_sqrt(Wide::from(x), Wide::from(y.abs())));
    (re, im.copysign(y))
}

/// `1 / sqrt(z)`.
#[must_use]
pub fn rsqrt(z: Complex) -> Complex {
    if z == (0.0, 0.0) {
        return (f64::INFINITY, f64::NAN);
    }
    if z.0.is_infinite() || z.1.is_infinite() {
        return if z.0.is_nan() || z.1.is_nan() { NAN } else { (0.0, 0.0f64.copysign(-z.1)) };
    }
    if !is_finite(z) {
        return NAN;
    }
    let (x, y) = (Wide::from(z.0), Wide::from(z.1.abs()));
    let (re, im) = wide_sqrt(x, y);
    let norm = (x.square() + y.square()).sqrt();
    ((re / norm).to_f64(), (im / norm).to_f64().copysign(-z.1))
}
