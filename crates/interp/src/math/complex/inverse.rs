//! Inverse circular and hyperbolic functions, by Kahan's formulas ("Branch cuts for complex elementary functions").

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use super::arithmetic::wide_sqrt;
use super::{Complex, NAN, Wide, is_finite, rotated};

/// The square roots of `1 - z` and `1 + z` for a finite `z` in the upper half plane.
fn roots(x: Wide, y: Wide) -> ((Wide, Wide), (Wide, Wide)) {
    (wide_sqrt(Wide::ONE - x, -y), wide_sqrt(Wide::ONE + x, y))
}

/// The inverse sine.
#[must_use]
pub fn asin(z: Complex) -> Complex {
    let (x, y) = z;
    if is_finite(z) {
        // The function is odd in both parts: the first quadrant is enough.
        let (wx, wy) = (Wide::from(x.abs()), Wide::from(y.abs()));
        let (minus, plus) = roots(wx, wy);
        let re = wx.atan2(minus.0 * plus.0 - minus.1 * plus.1);
        let im = (minus.0 * plus.1 - minus.1 * plus.0).asinh();
        return (re.to_f64().copysign(x), im.to_f64().copysign(y));
    }
    let re = match (x.is_infinite(), y.is_infinite()) {
        (true, true) => FRAC_PI_4.copysign(x),
        (true, false) if y.is_nan() => return (y, x),
        (true, false) => FRAC_PI_2.copysign(x),
        (false, true) if x.is_nan() => x,
        (false, true) => 0.0f64.copysign(x),
        (false, false) if x == 0.0 => return (x, y),
        (false, false) => return NAN,
    };
    (re, f64::INFINITY.copysign(y))
}

/// What CHLO's inverse functions are made of: `atan2(x, w.re)` is the real part of the inverse sine of `z = x + i y`, and
/// `w.im` the magnitude of its imaginary part.
#[must_use]
pub fn asin_acos_kernel(z: Complex) -> Complex {
    let magnitude = asin(z).1.abs();
    if is_finite(z) {
        let (minus, plus) = roots(Wide::from(z.0.abs()), Wide::from(z.1.abs()));
        return ((minus.0 * plus.0 - minus.1 * plus.1).to_f64(), magnitude);
    }
    let re = if z.0.is_nan() || z.1.is_nan() {
        f64::NAN
    } else if z.1.is_infinite() {
        f64::INFINITY
    } else {
        0.0
    };
    (re, magnitude)
}

/// The inverse cosine.
#[must_use]
pub fn acos(z: Complex) -> Complex {
    let (x, y) = z;
    if is_finite(z) {
        let (wx, wy) = (Wide::from(x), Wide::from(y.abs()));
        let (minus, plus) = roots(wx, wy);
        let re = minus.0.atan2(plus.0).scaled(1);
        let im = (plus.0 * minus.1 - plus.1 * minus.0).asinh();
        return (re.to_f64(), im.to_f64().abs().copysign(-y));
    }
    let re = match (x.is_infinite(), y.is_infinite()) {
        (true, true) => {
            if x > 0.0 {
                FRAC_PI_4
            } else {
                3.0 * FRAC_PI_4
            }
        }
        (true, false) if y.is_nan() => return (y, x),
        (true, false) => {
            if x > 0.0 {
                0.0
            } else {
                PI
            }
        }
        (false, true) if x.is_nan() => x,
        (false, true) => FRAC_PI_2,
        (false, false) if x == 0.0 => return (FRAC_PI_2, y),
        (false, false) => return NAN,
    };
    (re, f64::INFINITY.copysign(-y))
}

/// The inverse hyperbolic cosine.
#[must_use]
pub fn acosh(z: Complex) -> Complex {
    // acosh z = ±i acos z with the sign that makes the real part positive.
    let (re, im) = acos(z);
    if z.0.is_nan() && !z.1.is_nan() && z.1.is_finite() || z.1.is_nan() && z.0.is_finite() {
        return NAN;
    }
    (im.abs(), re.copysign(z.1))
}

/// The inverse hyperbolic sine.
#[must_use]
pub fn asinh(z: Complex) -> Complex {
    rotated(asin, z)
}

/// The inverse hyperbolic tangent.
#[must_use]
pub fn atanh(z: Complex) -> Complex {
    let (x, y) = z;
    if x.abs() == 1.0 && y == 0.0 {
        return (f64::INFINITY.copysign(x), y);
    }
    if is_finite(z) {
        let (wx, wy) = (Wide::from(x.abs()), Wide::from(y.abs()));
        let less = Wide::ONE - wx;
        let ratio = wx.scaled(2) / (less.square() + wy.square());
        let re = ratio.ln_1p().scaled(-2);
        let im = wy.scaled(1).atan2(less * (Wide::ONE + wx) - wy.square()).scaled(-1);
        return (re.to_f64().copysign(x), im.to_f64().copysign(y));
    }
    if y.is_infinite() || x.is_infinite() && !y.is_nan() {
        return (0.0f64.copysign(x), FRAC_PI_2.copysign(y));
    }
    match x {
        _ if x.is_infinite() => (0.0f64.copysign(x), f64::NAN),
        0.0 => z,
        _ => NAN,
    }
}

/// The inverse tangent.
#[must_use]
pub fn atan(z: Complex) -> Complex {
    rotated(atanh, z)
}
