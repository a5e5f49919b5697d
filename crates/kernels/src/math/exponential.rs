//! Exponentials and functions derived from them.
//!
//! `e^x = 2^n e^r` with `n` the integer next to `x / ln 2` and `r` at most half of `ln 2`; `e^r` is a polynomial. The
//! coefficients are minimax approximations of the relative error.

use super::lanes::{Lanes, polynomial};

/// `ln 2` in two parts; products of the first with the integers that occur are exact.
const LN_2: (f32, f32) = (0.693_145_75, 1.428_606_8e-6);

/// Beyond these the result is zero, or infinite.
const RANGE: (f32, f32) = (-104.0, 89.0);

/// Values of this size have a spacing of one: adding it rounds a small value to an integer.
const ROUNDING: f32 = 12_582_912.0;

/// `x` as `n` and `r`.
#[inline(always)]
fn reduced<V: Lanes>(x: V) -> (V, V) {
    let n = x.mul_add(V::splat(std::f32::consts::LOG2_E), V::splat(ROUNDING)).sub(V::splat(ROUNDING));
    let r = n.neg_mul_add(V::splat(LN_2.0), x);
    (n, n.neg_mul_add(V::splat(LN_2.1), r))
}

/// `e^r - 1` for `|r|` at most half of `ln 2`, accurate to 2^-32.
#[inline(always)]
fn expm1_reduced<V: Lanes>(r: V) -> V {
    let tail = polynomial(r, [1.984_589_6e-4, 1.394_062_8e-3, 8.333_39e-3, 0.041_666_362, 0.166_666_66, 0.5]);
    r.mul(r).mul_add(tail, r)
}

/// `e^x` for `x` that is NaN or at most the upper end of [`RANGE`]; zero for `x` below the lower end. Those lanes are
/// not scaled: scaling into the subnormal range is about a hundred times slower, and attention masks are full of minus
/// infinity.
#[inline(always)]
fn exp_within<V: Lanes>(x: V) -> V {
    let (n, r) = reduced(x);
    let power =
        polynomial(r, [1.381_458_8e-3, 8.368_717e-3, 0.041_668_39, 0.166_665_21, 0.499_999_94, 1.0, 1.0]);
    power.scale_where(x.not_less(V::splat(RANGE.0)), n)
}

/// `e^x`.
#[inline(always)]
pub(crate) fn exp<V: Lanes>(x: V) -> V {
    exp_within(V::splat(RANGE.1).min(x))
}

/// `e^x - 1`.
#[inline(always)]
pub(crate) fn expm1<V: Lanes>(x: V) -> V {
    let within = V::splat(RANGE.1).min(V::splat(-20.0).max(x));
    let (n, r) = reduced(within);
    // Half of the power, which does not overflow before its double does.
    let half = V::splat(0.5).scale(n);
    let halved = expm1_reduced(r).mul_add(half, half.sub(V::splat(0.5)));
    // Zeros keep their sign, and values next to them are not halved away.
    V::select(x.abs().less(V::splat(1e-20)), x, halved.add(halved))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn logistic<V: Lanes>(x: V) -> V {
    let small = exp_of_negative_magnitude(x);
    let numerator = V::select(x.less(V::splat(0.0)), small, V::splat(1.0));
    divide_by_one_plus(numerator, small)
}

/// `numerator / (1 + small)`.
#[inline(always)]
fn divide_by_one_plus<V: Lanes>(numerator: V, small: V) -> V {
    let one = V::splat(1.0);
    let sum = small.add(one);
    numerator.quick_div_by_sum(sum, small.sub(sum.sub(one)))
}

/// `e^-|x|`.
#[inline(always)]
fn exp_of_negative_magnitude<V: Lanes>(x: V) -> V {
    exp_within(x.or(V::splat(-0.0)))
}

/// The hyperbolic tangent: with `m = e^(-2|x|) - 1`, `-m / (m + 2)`.
#[inline(always)]
pub(crate) fn tanh<V: Lanes>(x: V) -> V {
    // From ten on it is one.
    let magnitude = V::splat(10.0).min(x.abs());
    let (n, r) = reduced(magnitude.mul(V::splat(-2.0)));
    let power = V::splat(1.0).scale(n);
    let expm1_reduced = expm1_reduced(r).mul_add(power, power.sub(V::splat(1.0)));
    let sum = expm1_reduced.add(V::splat(2.0));
    let lost = expm1_reduced.sub(sum.sub(V::splat(2.0)));
    let tangent = expm1_reduced.abs().quick_div_by_sum(sum, lost).or(x.sign());
    // Next to zero the quotient would lose digits below the normal range.
    V::select(x.abs().less(V::splat(1e-10)), x, tangent)
}
