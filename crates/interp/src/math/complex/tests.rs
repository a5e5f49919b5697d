//! Values that the formulas' weak spots would spoil, checked against mpmath.

use super::*;

/// Whether both parts are within one unit in the last place, signs of zero included.
fn near(actual: Complex, expected: Complex) -> bool {
    let part = |a: f64, b: f64| {
        a.is_nan() && b.is_nan()
            || a.is_sign_negative() == b.is_sign_negative() && a.to_bits().abs_diff(b.to_bits()) <= 1
    };
    part(actual.0, expected.0) && part(actual.1, expected.1)
}

#[track_caller]
fn check(actual: Complex, expected: Complex) {
    assert!(near(actual, expected), "{actual:?} is not {expected:?}");
}

#[test]
fn quotients_do_not_overflow_on_the_way() {
    check(div((1e300, 1e300), (1e300, 1e300)), (1.0, 0.0));
    check(div((1e-300, 0.0), (1e-300, 1e-300)), (0.5, -0.5));
    check(div((1.0, 2.0), (0.0, 0.0)), (f64::INFINITY, f64::INFINITY));
    check(div((1.0, 1.0), (f64::INFINITY, 0.0)), (0.0, 0.0));
}

const INF: f64 = f64::INFINITY;
const MAX: f64 = f64::MAX;

/// Whether two numbers are the same: equal with equal signs, or both NaN.
fn same(actual: Complex, expected: Complex) -> bool {
    let part = |a: f64, b: f64| a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits();
    part(actual.0, expected.0) && part(actual.1, expected.1)
}

#[test]
fn products_with_an_infinity_are_infinite() {
    let table = [
        ((INF, INF), (INF, INF), (f64::NAN, INF)),
        ((INF, 0.0), (INF, INF), (INF, INF)),
        ((INF, f64::NAN), (1.0, 0.0), (INF, f64::NAN)),
        ((f64::NAN, INF), (0.0, 1.0), (-INF, f64::NAN)),
        ((INF, f64::NAN), (INF, f64::NAN), (INF, f64::NAN)),
        ((-INF, f64::NAN), (2.0, 3.0), (-INF, -INF)),
        ((2.0, 3.0), (f64::NAN, -INF), (INF, -INF)),
        ((1.0, 0.0), (INF, 0.0), (INF, f64::NAN)),
        ((f64::NAN, 1.0), (2.0, f64::NAN), (f64::NAN, f64::NAN)),
        ((0.0, 0.0), (INF, INF), (f64::NAN, f64::NAN)),
        ((MAX, MAX), (MAX, f64::NAN), (INF, INF)),
        ((2.0, 3.0), (4.0, 5.0), (-7.0, 22.0)),
    ];
    for (a, b, expected) in table {
        let product = mul(a, b, |x| x);
        assert!(same(product, expected), "{a:?} * {b:?} is {product:?}, not {expected:?}");
    }
}

#[test]
fn squares_do_not_lose_their_real_part_to_overflow() {
    let table = [
        ((MAX, MAX), (0.0, INF)),
        ((MAX, -MAX), (0.0, -INF)),
        ((MAX, 1.0), (INF, INF)),
        ((1.0, MAX), (-INF, INF)),
        ((INF, INF), (f64::NAN, INF)),
        ((-INF, INF), (f64::NAN, -INF)),
        ((INF, 0.0), (INF, f64::NAN)),
        ((0.0, INF), (-INF, f64::NAN)),
        ((INF, 1.5), (INF, INF)),
        ((1.5, -INF), (-INF, -INF)),
        ((INF, f64::NAN), (INF, f64::NAN)),
        ((f64::NAN, INF), (-INF, f64::NAN)),
        ((f64::NAN, 1.0), (f64::NAN, f64::NAN)),
        ((3.0, 4.0), (-7.0, 24.0)),
        ((0.0, 1.0), (-1.0, 0.0)),
        ((1e-200, 1e-200), (0.0, 0.0)),
    ];
    for (z, expected) in table {
        assert!(same(square(z), expected), "{z:?} squared is {:?}, not {expected:?}", square(z));
    }
    // Cancellation: (1 + e)^2 - 1 keeps its bits.
    let e = f64::EPSILON;
    assert!(same(square((1.0 + e, 1.0)), (2.0 * e + e * e, 2.0 * (1.0 + e))));
}

#[test]
fn exponentials_at_infinities_and_nan() {
    let nan = f64::NAN;
    let table = [
        ((INF, 0.0), (INF, 0.0)),
        ((INF, -0.0), (INF, -0.0)),
        ((-INF, 0.0), (0.0, 0.0)),
        ((-INF, -0.0), (0.0, -0.0)),
        ((INF, 1.0), (INF, INF)),
        ((INF, 2.0), (-INF, INF)),
        ((INF, -2.0), (-INF, -INF)),
        ((INF, 4.0), (-INF, -INF)),
        ((-INF, 2.0), (-0.0, 0.0)),
        ((-INF, 4.0), (-0.0, -0.0)),
        ((-INF, -1.0), (0.0, -0.0)),
        ((INF, INF), (INF, nan)),
        ((INF, -INF), (INF, nan)),
        ((INF, nan), (INF, nan)),
        ((-INF, INF), (0.0, 0.0)),
        ((-INF, -INF), (0.0, -0.0)),
        ((1.0, INF), (nan, nan)),
        ((1.0, nan), (nan, nan)),
        ((nan, 0.0), (nan, 0.0)),
        ((nan, -0.0), (nan, -0.0)),
        ((nan, 1.0), (nan, nan)),
        ((nan, INF), (nan, nan)),
        ((0.0, 0.0), (1.0, 0.0)),
        ((MAX, 1.0), (INF, INF)),
        ((MAX, 2.0), (-INF, INF)),
        ((MAX, MAX), (-INF, INF)),
        ((-MAX, 1.0), (0.0, 0.0)),
        ((-MAX, 2.0), (-0.0, 0.0)),
        ((1e10, f64::MIN_POSITIVE), (INF, INF)),
    ];
    for (z, expected) in table {
        assert!(same(exp(z), expected), "e^{z:?} is {:?}, not {expected:?}", exp(z));
    }
    let (re, im) = exp((-INF, nan));
    assert!(re == 0.0 && im == 0.0, "{re} {im}");
}

#[test]
fn roots_keep_the_sign_of_the_cut() {
    check(sqrt((-4.0, 0.0)), (0.0, 2.0));
    check(sqrt((-4.0, -0.0)), (0.0, -2.0));
    check(sqrt((3.0, 4.0)), (2.0, 1.0));
    check(sqrt((f64::NEG_INFINITY, 1.0)), (0.0, f64::INFINITY));
    check(rsqrt((4.0, 0.0)), (0.5, -0.0));
}

#[test]
fn logarithms_keep_their_bits_near_the_unit_circle() {
    check(ln((1.0, 1e-200)), (0.0, 1e-200));
    check(ln((1.0, 1e-100)), (5e-201, 1e-100));
    check(ln_1p((-5e-201, 1e-100)), (2.8941768603061504e-217, 1e-100));
    check(ln((-1.0, -0.0)), (0.0, -std::f64::consts::PI));
    check(ln((0.0, 0.0)), (f64::NEG_INFINITY, 0.0));
}

#[test]
fn exponentials_survive_large_exponents_and_cancellation() {
    // e^709.9 overflows, times cos(π/2 - 1e-3) it does not.
    let (re, _) = exp((712.0, 1.5697963267948967));
    assert!(re.is_finite() && re > 1e305, "{re:e}");
    check(exp_m1((1e-30, 0.0)), (1e-30, 0.0));
    let (re, _) = exp_m1((0.5f64.powi(201), 0.5f64.powi(100)));
    assert!((re / -(0.5f64.powi(400) / 12.0) - 1.0).abs() < 1e-15, "{re:e}");
    check(exp((f64::NEG_INFINITY, 1.0)), (0.0, 0.0));
    check(exp((f64::INFINITY, f64::NAN)), (f64::INFINITY, f64::NAN));
}

#[test]
fn circular_functions_reduce_huge_angles() {
    check(sin((1e300, 0.0)), (-0.8178819121159085, -0.0));
    check(tanh((1000.0, 1.0)), (1.0, 0.0));
    check(cos((0.0, 0.0)), (1.0, -0.0));
    check(sinh((0.0, f64::INFINITY)), (0.0, f64::NAN));
}

#[test]
fn inverse_functions_hold_at_the_branch_points() {
    use std::f64::consts::{FRAC_PI_2, LN_2, PI};
    check(asin((1.0, 0.0)), (FRAC_PI_2, 0.0));
    check(asin((1e-300, 1e-300)), (1e-300, 1e-300));
    check(asin((2.0, 0.0)), (FRAC_PI_2, 1.3169578969248168));
    check(acos((-1.0, -0.0)), (PI, 0.0));
    check(acosh((1e300, 0.0)), (1e300f64.ln() + LN_2, 0.0));
    check(atanh((1.0, 0.0)), (f64::INFINITY, 0.0));
    check(atan((0.0, 1e-310)), (0.0, 1e-310));
    check(atanh((2.0, f64::INFINITY)), (0.0, FRAC_PI_2));
}

#[test]
fn powers_follow_the_principal_branch() {
    check(pow((-1.0, 0.0), (0.5, 0.0)), (0.0, 1.0));
    check(pow((0.0, 0.0), (0.0, 0.0)), (1.0, 0.0));
    check(pow((0.0, 1.0), (2.0, 0.0)), (-1.0, 0.0));
    check(cbrt((-8.0, 0.0)), (1.0, 1.7320508075688772));
}
