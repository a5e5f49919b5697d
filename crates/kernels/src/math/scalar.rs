//! f64 scalar functions: those of `libm`, and functions derived from them.

pub(crate) use libm::{
    atan2, cbrt, cos, erf, erfc, exp, expm1, fmod as remainder, log, log1p, pow, sin, tan, tanh,
};

/// `1 / sqrt(x)`.
pub(crate) fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// `1 / (1 + e^-x)`, without overflow for large negative arguments.
pub(crate) fn logistic(x: f64) -> f64 {
    let small = libm::exp(-x.abs());
    if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// `x / 2 (1 + erf(x / √2))`.
pub(crate) fn gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}
