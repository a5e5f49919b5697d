//! Elementary functions of one or two real numbers: those of `libm`, and what needs more than a call of it.

pub use libm::{acos, asin, atan, atan2, cbrt, cos, cosh, exp, expm1, log, log1p, pow, sin, sinh, tan, tanh};

use super::wide::Wide;

/// `1 / sqrt(x)`.
#[must_use]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// `1 / (1 + e^-x)`, without overflow for large negative arguments.
#[must_use]
pub fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let exp = libm::exp(x);
        exp / (1.0 + exp)
    }
}

/// The inverse hyperbolic tangent.
#[must_use]
pub fn atanh(x: f64) -> f64 {
    // ln1p(2x / (1 - x)) / 2: one cancellation-free formula on the whole range.
    let magnitude = x.abs();
    if magnitude.is_nan() || magnitude > 1.0 {
        return f64::NAN;
    }
    let result = 0.5 * libm::log1p(2.0 * magnitude / (1.0 - magnitude));
    result.copysign(x)
}

/// The inverse hyperbolic sine.
#[must_use]
pub fn asinh(x: f64) -> f64 {
    let magnitude = x.abs();
    // Outside this range the textbook's formula is exact enough, inside it two roundings too many add up.
    if (1e-4..1e4).contains(&magnitude) { Wide::from(x).asinh().to_f64() } else { libm::asinh(x) }
}

/// The inverse hyperbolic cosine.
#[must_use]
pub fn acosh(x: f64) -> f64 {
    if !(1.0..1e8).contains(&x) {
        return if x < 1.0 { f64::NAN } else { libm::log(x) + std::f64::consts::LN_2 };
    }
    // ln1p(t + sqrt(t (t + 2))) with t = x - 1, which is exact near one.
    let t = x - 1.0;
    libm::log1p(t + (t * (x + 1.0)).sqrt())
}

/// The remainder with the sign of the dividend.
#[must_use]
pub fn rem(a: f64, b: f64) -> f64 {
    libm::fmod(a, b)
}
