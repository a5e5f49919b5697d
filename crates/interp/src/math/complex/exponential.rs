//! Exponential, logarithm and powers.

use super::{Complex, NAN, Wide, is_finite, narrow};

/// `e^z`.
#[must_use]
pub fn exp(z: Complex) -> Complex {
    let (x, y) = z;
    if y == 0.0 {
        return (libm::exp(x), y);
    }
    if is_finite(z) {
        return narrow(wide_exp(Wide::from(x), Wide::sin_cos_of(y)));
    }
    match x {
        f64::INFINITY if y.is_finite() => (x * libm::cos(y), x * libm::sin(y)),
        f64::INFINITY => (x, f64::NAN),
        f64::NEG_INFINITY if y.is_finite() => (0.0 * libm::cos(y), 0.0 * libm::sin(y)),
        f64::NEG_INFINITY => (0.0, 0.0f64.copysign(y)),
        _ => NAN,
    }
}

fn wide_exp(x: Wide, (sin, cos): (Wide, Wide)) -> (Wide, Wide) {
    let scale = x.exp();
    (scale * cos, scale * sin)
}

/// `e^z - 1`.
#[must_use]
pub fn exp_m1(z: Complex) -> Complex {
    let (x, y) = z;
    if y == 0.0 {
        return (libm::expm1(x), y);
    }
    if !is_finite(z) {
        let (re, im) = exp(z);
        return (if x == f64::NEG_INFINITY { -1.0 } else { re }, im);
    }
    let (wx, wy) = (Wide::from(x), Wide::from(y));
    // Where the linear and the quadratic terms cancel, only the series keeps the small ones.
    if wx.magnitude() < -60 && wy.magnitude() < -60 {
        return narrow(exp_m1_series(wx, wy));
    }
    let (sin, cos) = Wide::sin_cos_of(y);
    // cos y - 1 = -2 sin²(y/2)
    let versine = Wide::sin_cos_of(y / 2.0).0.square().scaled(1);
    let re = wx.exp_m1() * cos - versine;
    narrow((re, wx.exp() * sin))
}

/// `z + z²/2 + z³/6 + …` for tiny arguments.
fn exp_m1_series(x: Wide, y: Wide) -> (Wide, Wide) {
    let (mut re, mut im) = (x, y);
    let mut sum = (x, y);
    for n in 2..=6 {
        (re, im) = ((re * x - im * y).over(n), (re * y + im * x).over(n));
        sum = (sum.0 + re, sum.1 + im);
    }
    sum
}

/// The logarithm of the magnitude of a finite number that is not zero.
fn ln_norm(x: Wide, y: Wide) -> Wide {
    let (large, small) = if x.abs().magnitude() >= y.abs().magnitude() { (x.abs(), y) } else { (y.abs(), x) };
    if (-1..=2).contains(&large.magnitude()) {
        // Near the unit circle the logarithm is small: |z|² - 1 keeps its bits.
        let excess = (large - Wide::ONE) * (large + Wide::ONE) + small.square();
        return excess.ln_1p().scaled(-1);
    }
    (large.square() + small.square()).ln().scaled(-1)
}

/// The principal logarithm.
#[must_use]
pub fn ln(z: Complex) -> Complex {
    let angle = libm::atan2(z.1, z.0);
    let norm = if z.0.is_infinite() || z.1.is_infinite() {
        f64::INFINITY
    } else if z.0.is_nan() || z.1.is_nan() {
        f64::NAN
    } else if z == (0.0, 0.0) {
        f64::NEG_INFINITY
    } else {
        ln_norm(Wide::from(z.0), Wide::from(z.1)).to_f64()
    };
    (norm, angle)
}

/// `ln(1 + z)`.
#[must_use]
pub fn ln_1p(z: Complex) -> Complex {
    if !is_finite(z) || z == (-1.0, 0.0) {
        return ln((1.0 + z.0, z.1));
    }
    let (x, y) = (Wide::from(z.0), Wide::from(z.1));
    // |1 + z|² - 1 = 2x + y² + x², the smallest term last: the first two may cancel.
    let excess = x.scaled(1) + y.square() + x.square();
    let norm =
        if excess.to_f64() > -0.5 { excess.ln_1p() } else { ((x + Wide::ONE).square() + y.square()).ln() };
    let angle = libm::atan2(z.1, (x + Wide::ONE).to_f64());
    (norm.scaled(-1).to_f64(), angle)
}

/// `1 / (1 + e^-z)`.
#[must_use]
pub fn logistic(z: Complex) -> Complex {
    if z.0 == f64::INFINITY {
        return (1.0, 0.0);
    }
    if !is_finite(z) {
        return if z.0 == f64::NEG_INFINITY { (0.0, 0.0) } else { NAN };
    }
    let (sin, cos) = Wide::sin_cos_of(-z.1);
    let (re, im) = wide_exp(-Wide::from(z.0), (sin, cos));
    let re = re + Wide::ONE;
    let norm = re.square() + im.square();
    if norm.is_zero() {
        return super::reciprocal((0.0, 0.0));
    }
    let angle = (-im / norm).to_f64();
    ((re / norm).to_f64(), if angle == 0.0 { 0.0f64.copysign(z.1) } else { angle })
}

/// `z` to the power `w`.
#[must_use]
pub fn pow(z: Complex, w: Complex) -> Complex {
    if w == (0.0, 0.0) {
        return (1.0, 0.0);
    }
    if z == (0.0, 0.0) {
        return if w.0 > 0.0 { (0.0, 0.0) } else { (f64::INFINITY, f64::NAN) };
    }
    if !is_finite(z) || !is_finite(w) {
        let (norm, angle) = ln(z);
        return exp((w.0 * norm - w.1 * angle, w.0 * angle + w.1 * norm));
    }
    let [x, y, wr, wi] = [z.0, z.1, w.0, w.1].map(Wide::from);
    let norm = ln_norm(x, y);
    let angle = y.abs().atan2(x);
    let angle = if y.is_negative() { -angle } else { angle };
    let re = wr * norm - wi * angle;
    let im = wr * angle + wi * norm;
    narrow(wide_exp(re, im.sin_cos()))
}

/// The principal cube root.
#[must_use]
pub fn cbrt(z: Complex) -> Complex {
    if z == (0.0, 0.0) {
        return z;
    }
    if !is_finite(z) {
        let (norm, angle) = ln(z);
        return exp((norm / 3.0, angle / 3.0));
    }
    let (x, y) = (Wide::from(z.0), Wide::from(z.1.abs()));
    let third = y.atan2(x).over(3);
    let (re, im) = narrow(wide_exp(ln_norm(x, y).over(3), third.sin_cos()));
    (re, im.copysign(z.1))
}
