//! Hyperbolic functions, and the circular ones as their rotations.

use super::{Complex, NAN, Wide, is_finite, narrow, rotated};

/// The hyperbolic sine.
#[must_use]
pub fn sinh(z: Complex) -> Complex {
    let (x, y) = z;
    if y == 0.0 {
        return (libm::sinh(x), y);
    }
    if is_finite(z) {
        let (sin, cos) = Wide::sin_cos_of(y);
        let (sinh, cosh) = Wide::from(x).sinh_cosh();
        let (re, im) = narrow((sinh * cos, cosh * sin));
        return (if x == 0.0 { x.copysign(x * libm::cos(y)) } else { re }, im);
    }
    match x {
        _ if x.is_infinite() && y.is_finite() => (x * libm::cos(y), f64::INFINITY * libm::sin(y)),
        _ if x.is_infinite() => (x, f64::NAN),
        0.0 => (x, f64::NAN),
        _ => NAN,
    }
}

/// The hyperbolic cosine.
#[must_use]
pub fn cosh(z: Complex) -> Complex {
    let (x, y) = z;
    if y == 0.0 {
        return (libm::cosh(x), if x.is_nan() { y } else { y * x.signum() });
    }
    if is_finite(z) {
        let (sin, cos) = Wide::sin_cos_of(y);
        let (sinh, cosh) = Wide::from(x).sinh_cosh();
        let (re, im) = narrow((cosh * cos, sinh * sin));
        return (re, if x == 0.0 { x * libm::sin(y) } else { im });
    }
    match x {
        _ if x.is_infinite() && y.is_finite() => (f64::INFINITY * libm::cos(y), x * libm::sin(y)),
        _ if x.is_infinite() => (f64::INFINITY, f64::NAN),
        0.0 => (f64::NAN, x),
        _ => NAN,
    }
}

/// The hyperbolic tangent.
#[must_use]
pub fn tanh(z: Complex) -> Complex {
    let (x, y) = z;
    if y == 0.0 {
        return (libm::tanh(x), y);
    }
    if is_finite(z) {
        let (sin, cos) = Wide::sin_cos_of(y);
        let (sinh, cosh) = Wide::from(x).sinh_cosh();
        let norm = sinh.square() + cos.square();
        let (re, im) = narrow((sinh * cosh / norm, sin * cos / norm));
        let zero_sign = if im == 0.0 { (libm::sin(y) * libm::cos(y)).signum() * 0.0 } else { im };
        return (re.copysign(x), zero_sign);
    }
    match x {
        _ if x.is_infinite() => {
            let turn = if y.is_finite() { libm::sin(y) * libm::cos(y) } else { 0.0 };
            (1.0f64.copysign(x), 0.0f64.copysign(turn))
        }
        0.0 => (x, f64::NAN),
        _ => NAN,
    }
}

/// The sine.
#[must_use]
pub fn sin(z: Complex) -> Complex {
    rotated(sinh, z)
}

/// The cosine.
#[must_use]
pub fn cos(z: Complex) -> Complex {
    cosh((-z.1, z.0))
}

/// The tangent.
#[must_use]
pub fn tan(z: Complex) -> Complex {
    rotated(tanh, z)
}
