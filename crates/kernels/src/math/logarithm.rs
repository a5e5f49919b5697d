//! Logarithms.
//!
//! `x = 2^e m` with `m` between `√½` and `√2`; `ln m` is a polynomial of `m - 1`.

use super::lanes::{Lanes, polynomial};

/// `ln 2` in two parts; products of the first with exponents are exact.
const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// `e` and `m` of a positive normal number.
#[inline(always)]
fn parts<V: Lanes>(x: V) -> (V, V) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let above = x.sub_bits(V::splat_bits(SQRT_HALF));
    let mantissa = above.and(V::splat_bits(0x007f_ffff)).add_bits(V::splat_bits(SQRT_HALF));
    (above.shift_down::<23>().int_to_float(), mantissa)
}

/// `e ln 2 + ln(1 + f)`.
#[inline(always)]
fn joined<V: Lanes>(e: V, f: V) -> V {
    let tail = polynomial(
        f,
        [
            -0.076_344_125,
            0.127_614_86,
            -0.131_601_72,
            0.142_017_7,
            -0.166_233_6,
            0.200_012_27,
            -0.250_008_2,
            0.333_333_3,
        ],
    );
    let square = f.mul(f);
    let low = e.mul_add(V::splat(LN_2.1), f.mul(square).mul(tail));
    e.mul_add(V::splat(LN_2.0), f.add(square.mul_add(V::splat(-0.5), low)))
}

/// Handles arguments that are not positive and finite.
#[inline(always)]
fn with_exceptions<V: Lanes>(x: V, logarithm: V) -> V {
    let zero = V::splat(0.0);
    let positive = V::select(x.equal(V::splat(f32::INFINITY)), x, logarithm);
    let not_negative = V::select(x.equal(zero), V::splat(f32::NEG_INFINITY), positive);
    // NaN is neither below zero nor not below it.
    let negative = V::select(x.less(zero), V::splat(f32::NAN), not_negative);
    V::select(x.unordered(x), x, negative)
}

/// The natural logarithm.
#[inline(always)]
pub(crate) fn log<V: Lanes>(x: V) -> V {
    let tiny = x.less(V::splat(f32::MIN_POSITIVE));
    let normal = V::select(tiny, x.mul(V::splat((1u32 << 25) as f32)), x);
    let (e, m) = parts(normal);
    let e = V::select(tiny, e.sub(V::splat(25.0)), e);
    with_exceptions(x, joined(e, m.sub(V::splat(1.0))))
}

/// The natural logarithm of one plus the number.
#[inline(always)]
pub(crate) fn log1p<V: Lanes>(x: V) -> V {
    let one = V::splat(1.0);
    let sum = x.add(one);
    // What the sum has lost, exactly.
    let of_x = sum.sub(one);
    let lost = one.sub(sum.sub(of_x)).add(x.sub(of_x));
    let (e, m) = parts(sum);
    let f = m.sub(one).add(lost.scale(e.neg()));
    let logarithm = with_exceptions(sum, joined(e, f));
    V::select(x.abs().less(V::splat(1e-20)), x, logarithm)
}
