//! Functions of complex numbers, given and returned as (real, imaginary).
//!
//! Finite arguments are computed in a wide software float, so that neither part loses bits to the other, near the
//! branch points, or at the ends of the range. Infinities, NaNs and signed zeros follow Annex G of the C standard.

mod arithmetic;
mod exponential;
mod hyperbolic;
mod inverse;

pub use arithmetic::{abs, div, mul, reciprocal, rsqrt, sign, sqrt, square};
pub use exponential::{cbrt, exp, exp_m1, ln, ln_1p, logistic, pow};
pub use hyperbolic::{cos, cosh, sin, sinh, tan, tanh};
pub use inverse::{acos, acosh, asin, asin_acos_kernel, asinh, atan, atanh};

use super::wide::Wide;

/// A complex number: real part, imaginary part.
pub type Complex = (f64, f64);

const NAN: Complex = (f64::NAN, f64::NAN);

fn is_finite(z: Complex) -> bool {
    z.0.is_finite() && z.1.is_finite()
}

fn narrow(z: (Wide, Wide)) -> Complex {
    (z.0.to_f64(), z.1.to_f64())
}

/// `-i f(i z)`: turns a hyperbolic function into the circular one.
fn rotated(f: fn(Complex) -> Complex, z: Complex) -> Complex {
    let (re, im) = f((-z.1, z.0));
    (im, -re)
}

#[cfg(test)]
mod tests;
