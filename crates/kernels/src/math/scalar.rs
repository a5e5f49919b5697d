//! Functions of single binary64 numbers: those of `libm`, and what is made of them.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

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

/// `x (1 + erf(x / √2)) / 2`; the complement keeps the digits of the negative side.
pub(crate) fn gelu_erf(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2`, which is `x` times a logistic function.
pub(crate) fn gelu_tanh(x: f64) -> f64 {
    // √(2/π) is 2/√π over √2, and the logistic function takes twice the hyperbolic tangent's argument.
    x * logistic(2.0 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (x + 0.044715 * x * x * x))
}

/// `x / (1 + e^-x)`.
pub(crate) fn silu(x: f64) -> f64 {
    x * logistic(x)
}
