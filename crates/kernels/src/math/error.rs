//! The error function.
//!
//! For numbers that are not negative, `erfc z = e^(-z²) t p(t)` with `t = 1 / (1 + z/2)` and a polynomial `p`.

use super::exponential::exp;
use super::lanes::{Lanes, polynomial};

/// `e^(z²) erfc z`, for `z` between 0 and 10.5.
#[inline(always)]
fn scaled_complement<V: Lanes>(z: V) -> V {
    let t = V::splat(1.0).quick_div(z.mul_add(V::splat(0.5), V::splat(1.0)));
    let tail = polynomial(
        t,
        [
            0.035_767_324,
            -0.191_034_73,
            0.381_423_23,
            -0.289_597_3,
            -0.021_955_296,
            0.035_402_924,
            0.054_879_1,
            0.185_594_65,
            0.245_179_2,
            0.282_252_4,
            0.282_088_52,
        ],
    );
    t.mul(tail)
}

/// `e^(-x²)`, the square not rounded.
#[inline(always)]
fn exp_of_square<V: Lanes>(x: V) -> V {
    let square = x.mul(x);
    let lost = x.mul_add(x, square.neg());
    let power = exp(square.neg());
    power.neg().mul_add(lost, power)
}

/// `erfc |x|`.
#[inline(always)]
fn complement_of_magnitude<V: Lanes>(x: V) -> V {
    let z = V::splat(10.5).min(x.abs());
    exp_of_square(z).mul(scaled_complement(z))
}

/// The error function.
#[inline(always)]
pub(crate) fn erf<V: Lanes>(x: V) -> V {
    let tail = polynomial(
        x.mul(x),
        [
            7.853_853_5e-5,
            -8.010_191e-4,
            5.188_327_3e-3,
            -0.026_853_811,
            0.112_835_85,
            -0.376_126_26,
            0.128_379_17,
        ],
    );
    let inner = x.mul_add(tail, x);
    let outer = V::splat(1.0).sub(complement_of_magnitude(x)).or(x.sign());
    V::select(x.abs().less(V::splat(1.0)), inner, outer)
}
