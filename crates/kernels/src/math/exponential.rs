//! Exponentials, and what is made of them.
//!
//! `e^x = 2^n e^r` with `n` the integer next to `x / ln 2` and `r` at most half of `ln 2`; `e^r` is a polynomial. The
//! coefficients are minimax approximations of the relative error.

use super::lanes::{Lanes, polynomial};

/// `ln 2` in two parts; products of the first with the integers that occur are exact.
const LN_2: (f32, f32) = (0.693_145_75, 1.428_606_8e-6);

/// Beyond these the result is zero, or infinite.
const RANGE: (f32, f32) = (-104.0, 89.0);

/// Of numbers of this size neighbours are one apart: adding it rounds what is small beside it to an integer.
const ROUNDING: f32 = 12_582_912.0;

/// `x` as `n` and `r`.
#[inline(always)]
fn reduced<V: Lanes>(x: V) -> (V, V) {
    let n = x.mul_add(V::splat(std::f32::consts::LOG2_E), V::splat(ROUNDING)).sub(V::splat(ROUNDING));
    let r = n.neg_mul_add(V::splat(LN_2.0), x);
    (n, n.neg_mul_add(V::splat(LN_2.1), r))
}

/// `e^r - 1` for `r` at most half of `ln 2`, good to a part in 2^32.
#[inline(always)]
fn less_one<V: Lanes>(r: V) -> V {
    let tail = polynomial(r, [1.984_589_6e-4, 1.394_062_8e-3, 8.333_39e-3, 0.041_666_362, 0.166_666_66, 0.5]);
    r.mul(r).mul_add(tail, r)
}

/// `e^x` for `x` that is NaN or at most the upper end of [`RANGE`]; zero for `x` below the lower end. Those are not scaled:
/// scaling down to what is no normal number takes a hundred times as long as anything else here, and masks are full of
/// minus infinity.
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
    let halved = less_one(r).mul_add(half, half.sub(V::splat(0.5)));
    // Zeros keep their sign, and numbers next to them are not halved away.
    V::select(x.abs().less(V::splat(1e-20)), x, halved.add(halved))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn logistic<V: Lanes>(x: V) -> V {
    let small = exp_of_negative_magnitude(x);
    let numerator = V::select(x.less(V::splat(0.0)), small, V::splat(1.0));
    over_one_and(numerator, small)
}

/// `numerator / (1 + small)`.
#[inline(always)]
fn over_one_and<V: Lanes>(numerator: V, small: V) -> V {
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
    let less_one = less_one(r).mul_add(power, power.sub(V::splat(1.0)));
    let sum = less_one.add(V::splat(2.0));
    let lost = less_one.sub(sum.sub(V::splat(2.0)));
    let tangent = less_one.abs().quick_div_by_sum(sum, lost).or(x.sign());
    // Next to zero the quotient would lose digits below the normal range.
    V::select(x.abs().less(V::splat(1e-10)), x, tangent)
}
