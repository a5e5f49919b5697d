//! Floating-point numbers as MLIR writes them, so that they read back bit for bit.

use crate::types::FloatType;

/// A double as MLIR writes it.
pub fn float_text(value: f64) -> String {
    float_code_text(FloatType::F64, value.to_bits())
}

/// The number that `code` is in a format.
///
/// Six digits and an exponent when that reads back as the same code, else as many digits as the format can need, else
/// (infinities, NaNs and large whole numbers) the code in hexadecimal. Digits are cut and rounded as LLVM does it, so
/// that its tools print the same text.
pub fn float_code_text(format: FloatType, code: u64) -> String {
    let layout = format.format();
    let value = layout.decode(code);
    if value.is_finite() {
        let reads_back = |text: &str| text.parse::<f64>().is_ok_and(|v| layout.encode(v) == code);
        let short = six_digits(value);
        if reads_back(&short) {
            return short;
        }
        let long = significant_digits(value, 2 + (layout.mantissa_bits as usize + 1) * 59 / 196);
        if long.contains('.') && reads_back(&long) {
            return long;
        }
    }
    let width = layout.bits().div_ceil(4) as usize;
    format!("0x{code:0width$X}")
}

/// `d.dddddde+XX`.
fn six_digits(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value == 0.0 {
        return format!("{sign}0.000000e+00");
    }
    let Decimal { digits, exponent } = Decimal::cut(value, 6);
    let (first, rest) = digits.split_at(1);
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}.{rest:0<6}e{exponent_sign}{:02}", exponent.abs())
}

/// At most `count` significant digits, positional when at most three zeros are needed, else with an exponent.
fn significant_digits(value: f64, count: usize) -> String {
    let Decimal { digits, exponent } = Decimal::cut(value, count);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    // The exponent of the last digit kept.
    let last = exponent - (digits.len() as i32 - 1);
    if last >= 0 {
        if last > 3 || digits.len() + last as usize > count {
            return format!("{sign}{}", scientific(&digits, exponent));
        }
        return format!("{sign}{digits}{}", "0".repeat(last as usize));
    }
    if exponent >= 0 {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        return format!("{sign}{whole}.{fraction}");
    }
    if -exponent > 3 {
        return format!("{sign}{}", scientific(&digits, exponent));
    }
    format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))
}

fn scientific(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let rest = if rest.is_empty() { "0" } else { rest };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}.{rest}E{sign}{}", exponent.abs())
}

/// Significant decimal digits without trailing zeros, and the exponent of the first.
struct Decimal {
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// The first `count` digits of a number that is not zero.
    ///
    /// The exact digits form a whole number. As many of its last digits as its excess of bits is worth are cut off, and
    /// what is then still too long is rounded half up.
    fn cut(value: f64, count: usize) -> Self {
        let Self { mut digits, mut exponent } = Self::exact(value);
        // Bits of the whole number: log2(value) moved by the decimal places behind the point.
        let places = (digits.len() as i32 - 1 - exponent).max(0);
        let bits = (value.abs().log2() + f64::from(places) * std::f64::consts::LOG2_10).floor() as i64 + 1;
        let needed = (count as i64 * 196 + 58) / 59;
        if bits > needed {
            let removable = ((bits - needed) * 59 / 196) as usize;
            digits.truncate(digits.len().saturating_sub(removable).max(1));
        }
        if digits.len() > count {
            let round_up = digits.as_bytes()[count] >= b'5';
            digits.truncate(count);
            if round_up {
                let kept = digits.trim_end_matches('9').len();
                digits.truncate(kept);
                match digits.pop() {
                    Some(last) => digits.push((last as u8 + 1) as char),
                    None => {
                        digits.push('1');
                        exponent += 1;
                    }
                }
            }
        }
        let kept = digits.trim_end_matches('0').len().max(1);
        digits.truncate(kept);
        Self { digits, exponent }
    }

    /// All digits of a number that is not zero.
    fn exact(value: f64) -> Self {
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7FF) as i32;
        let mantissa = bits & ((1 << 52) - 1);
        let (mantissa, power) =
            if field == 0 { (mantissa, -1074) } else { (mantissa | 1 << 52, field - 1075) };
        let power = power + mantissa.trailing_zeros() as i32;
        let magnitude = value.abs();
        // A number that is a multiple of 2^power has -power decimal places, and no fewer.
        let places = (-power).max(0);
        let leading = magnitude.log10().floor() as i32 + 1;
        let text = format!("{magnitude:.*e}", (leading + places + 1).max(1) as usize);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: String = digits.chars().filter(|c| *c != '.').collect();
        let kept = digits.trim_end_matches('0').len().max(1);
        let exponent: i32 = exponent.parse().unwrap_or(0);
        // The zeros of a whole number are digits that can be cut.
        let whole = if power >= 0 { (exponent + 1) as usize } else { 0 };
        Self { digits: digits[..kept.max(whole).min(digits.len())].to_owned(), exponent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_text(value: f32) -> String {
        float_code_text(FloatType::F32, u64::from(value.to_bits()))
    }

    #[test]
    fn numbers_print_as_mlir_prints_them() {
        assert_eq!(f32_text(1.0), "1.000000e+00");
        assert_eq!(f32_text(-0.0), "-0.000000e+00");
        assert_eq!(f32_text(1e10), "1.000000e+10");
        assert_eq!(f32_text(1e-10), "1.000000e-10");
        assert_eq!(f32_text(std::f32::consts::PI), "3.14159274");
        assert_eq!(f32_text(1_234_567.0), "0x4996B438");
        assert_eq!(f32_text(f32::INFINITY), "0x7F800000");
        assert_eq!(f32_text(f32::NAN), "0x7FC00000");
        assert_eq!(float_text(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(f32_text(0.7), "0.699999988");
        assert_eq!(f32_text(0.1), "1.000000e-01");
        assert_eq!(float_code_text(FloatType::F16, 0x3A18), "7.617180e-01");
    }

    #[test]
    fn every_small_code_reads_back() {
        for format in [FloatType::F16, FloatType::Bf16] {
            for code in 0..=0xFFFFu64 {
                let text = float_code_text(format, code);
                let back = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                    None => format.format().encode(text.parse().unwrap()),
                };
                assert_eq!(back, code, "{text}");
            }
        }
    }
}
