//! Sine and cosine.
//!
//! The argument is reduced by the nearest multiple of `π/2`, subtracted in three parts, and evaluated by the
//! polynomials of both functions; the quadrant selects the function and the sign. Vectors with larger arguments fall
//! back to `libm`.

use super::lanes::{Lanes, polynomial};
use super::scalar;

/// `π/2` in three parts.
const HALF_PI: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_5e-15];

/// Largest argument with an accurate reduction.
const LARGEST: f32 = 32_768.0;

/// The sine.
#[inline(always)]
pub(crate) fn sin<V: Lanes>(x: V) -> V {
    shifted(x, 0, scalar::sin)
}

/// The cosine.
#[inline(always)]
pub(crate) fn cos<V: Lanes>(x: V) -> V {
    shifted(x, 1, scalar::cos)
}

/// The sine of the argument plus `right_angles` right angles.
#[inline(always)]
fn shifted<V: Lanes>(x: V, right_angles: u32, exact: fn(f64) -> f64) -> V {
    let multiple = x.mul(V::splat(std::f32::consts::FRAC_2_PI)).round();
    let mut r = x;
    for part in HALF_PI {
        r = multiple.neg_mul_add(V::splat(part), r);
    }
    let quadrant = multiple.float_to_int().add_bits(V::splat_bits(right_angles));
    let square = r.mul(r);
    let sine = polynomial(square, [2.718_046_5e-6, -1.983_930_4e-4, 8.333_329e-3, -0.166_666_67]);
    let sine = r.mul(square).mul_add(sine, r);
    let cosine = polynomial(square, [-2.720_504_7e-7, 2.479_945_2e-5, -1.388_888_3e-3, 0.041_666_668]);
    let cosine = square.mul(square).mul_add(cosine, square.mul_add(V::splat(-0.5), V::splat(1.0)));
    // The lowest bit of the quadrant chooses the function, the next one the sign.
    let odd = quadrant.shift_up::<31>().shift_down::<31>();
    let chosen = odd.and(cosine.xor(sine)).xor(sine);
    let result = chosen.xor(quadrant.shift_down::<1>().shift_up::<31>());
    let result = match right_angles {
        // A zero keeps its sign.
        0 => V::select(x.equal(V::splat(0.0)), x, result),
        _ => result,
    };
    if V::any(V::splat(LARGEST).less(x.abs())) { one_by_one(x, exact) } else { result }
}

/// A scalar function of each lane.
#[cold]
#[inline(never)]
fn one_by_one<V: Lanes>(x: V, exact: fn(f64) -> f64) -> V {
    let mut numbers = [0f32; 16];
    assert!(V::COUNT <= numbers.len());
    // SAFETY: there is space for all lanes.
    unsafe { x.store(numbers.as_mut_ptr()) };
    numbers[..V::COUNT].iter_mut().for_each(|number| *number = exact(f64::from(*number)) as f32);
    // SAFETY: there are values for all lanes.
    unsafe { V::load(numbers.as_ptr()) }
}
