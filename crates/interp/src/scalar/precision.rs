//! Rounding to fewer exponent and mantissa bits.

use warpforge_tensor::FloatFormat;

/// `value` of `format`, its mantissa rounded to even, then its exponent cut: too large becomes infinite, too small zero.
pub(super) fn reduce(format: &FloatFormat, exponent_bits: u32, mantissa_bits: u32, value: f64) -> f64 {
    if value.is_nan() {
        return if mantissa_bits > 0 { value } else { f64::INFINITY.copysign(value) };
    }
    let sign_mask = 1u64 << (format.bits() - 1);
    let code = format.encode(value);
    let (sign, mut magnitude) = (code & sign_mask, code & !sign_mask);
    if mantissa_bits < format.mantissa_bits && value.is_finite() {
        let dropped = format.mantissa_bits - mantissa_bits;
        let last = magnitude >> dropped & 1;
        magnitude = (magnitude + (1 << (dropped - 1)) - 1 + last) >> dropped << dropped;
    }
    if exponent_bits < format.exponent_bits && exponent_bits > 0 {
        let reduced_bias = (1i64 << (exponent_bits - 1)) - 1;
        let field = (magnitude >> format.mantissa_bits) as i64;
        if field > i64::from(format.bias) + reduced_bias {
            return f64::INFINITY.copysign(value);
        }
        if field <= i64::from(format.bias) - reduced_bias {
            return 0.0f64.copysign(value);
        }
    }
    format.decode(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_overflows_and_flushes() {
        let single = |value: f64| reduce(&FloatFormat::F32, 5, 10, value);
        assert_eq!(single(1.0 + 0.5f64.powi(11)), 1.0);
        assert_eq!(single(1.0 + 3.0 * 0.5f64.powi(11)), 1.0 + 2.0 * 0.5f64.powi(10));
        assert_eq!(single(65520.0), f64::INFINITY);
        assert_eq!(single(-1e-5), 0.0);
        assert!(single(-1e-5).is_sign_negative());
        assert!(single(f64::NAN).is_nan());
        assert_eq!(reduce(&FloatFormat::F32, 8, 23, 1e-40), FloatFormat::F32.round(1e-40));
    }
}
