//! The neighbour of a number in its own format.

use warpforge_tensor::FloatFormat;

/// The value of the format next to `x` in the direction of `y`; `y` where they are equal, NaN with a NaN.
#[must_use]
pub fn next_after(format: &FloatFormat, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x == y {
        return y;
    }
    let up = y > x;
    if x == 0.0 {
        let smallest = format.min_positive();
        return if up { smallest } else { -smallest };
    }
    let code = format.encode(x);
    format.decode(if up == (x > 0.0) { code + 1 } else { code - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_code_away() {
        let half = FloatFormat::F16;
        assert_eq!(next_after(&half, 1.0, 2.0), 1.0009765625);
        assert_eq!(next_after(&half, 1.0, 0.0), 0.99951171875);
        assert_eq!(next_after(&half, 0.0, -1.0), -(0.5f64.powi(24)));
        assert_eq!(next_after(&half, 65504.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(next_after(&half, -0.5f64.powi(24), 1.0), 0.0);
        assert_eq!(next_after(&FloatFormat::F64, 1.0, 1.0), 1.0);
        assert!(next_after(&half, f64::NAN, 1.0).is_nan());
    }
}
