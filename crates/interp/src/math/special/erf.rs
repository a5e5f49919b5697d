//! The error function, its complement and its inverse.

use std::f64::consts::PI;

pub use libm::{erf, erfc};

/// The inverse of the error function.
#[must_use]
pub fn erf_inv(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_nan() || magnitude > 1.0 {
        return f64::NAN;
    }
    if magnitude == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    if magnitude < 1e-100 {
        // The derivative at zero; Newton's step would divide an underflow.
        return x * (PI.sqrt() / 2.0);
    }
    // Winitzki's approximation, good to two digits, then Newton's iteration, which squares the error.
    let log = libm::log1p(-magnitude * magnitude);
    let half = 2.0 / (PI * 0.147) + log / 2.0;
    let mut y = (((half * half - log / 0.147).sqrt() - half).max(0.0)).sqrt();
    if magnitude < 0.01 {
        y = magnitude * (PI.sqrt() / 2.0);
    }
    for _ in 0..5 {
        // Near one the complement has the digits that the function itself has lost.
        let error = if magnitude < 0.5 { erf(y) - magnitude } else { (1.0 - magnitude) - erfc(y) };
        let step = error * (PI.sqrt() / 2.0) * libm::exp(y * y);
        // Halley's correction makes the iteration cubic.
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_the_function() {
        for x in [1e-200, 1e-20, 1e-5, 0.1, 0.49, 0.51, 0.9, 0.999_999, 1.0 - 1e-15] {
            let y = erf_inv(x);
            assert!((erf(y) / x - 1.0).abs() < 1e-15, "{x}: {y}");
            assert_eq!(erf_inv(-x), -y);
        }
        assert_eq!(erf_inv(1.0), f64::INFINITY);
        assert!(erf_inv(1.5).is_nan());
        assert_eq!(erf_inv(0.0), 0.0);
    }
}
