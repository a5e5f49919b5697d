//! Numbers as people read them: a few significant digits, with the unit.

pub use warpforge_diag::bytes;

/// A number to so many significant digits, without an exponent where that stays short.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    let digits = digits.max(1);
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    // Let the formatter round first: 9.996 to three digits is 10.0, with one decimal fewer than 9.99.
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent = scientific.rsplit('e').next().and_then(|text| text.parse::<i32>().ok()).unwrap_or(0);
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if !(-5..15).contains(&exponent) {
        return scientific;
    }
    let decimals = usize::try_from(most - 1 - exponent).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// A value and its unit to four significant digits.
#[must_use]
pub fn with_unit(value: f64, unit: &str) -> String {
    let number = significant(value, 4);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A change in percent, always with its sign.
#[must_use]
pub fn percent(change: f64) -> String {
    format!("{} %", signed(change))
}

/// A change's interval in percent.
#[must_use]
pub fn percent_interval(low: f64, high: f64) -> String {
    format!("{} to {} %", signed(low), signed(high))
}

fn signed(change: f64) -> String {
    if !change.is_finite() || change.abs() >= 1e6 {
        return format!("{change:+.1e}");
    }
    let decimals = if change.abs() < 100.0 { 1 } else { 0 };
    let text = format!("{change:+.decimals$}");
    // Less than half a tenth is zero, whatever its sign.
    if text == "-0.0" { "+0.0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_kept_at_any_size() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (104.123, "104.1"),
            (9.9996, "10.00"),
            (99_999.6, "100000"),
            (1_234_567.0, "1234567"),
            (0.001_234_56, "0.001235"),
            (-3.5, "-3.500"),
            (1.5e-9, "1.500e-9"),
            (2.5e20, "2.500e20"),
        ] {
            assert_eq!(significant(value, 4), expected);
        }
        assert_eq!(significant(f64::NAN, 4), "NaN");
        assert_eq!(with_unit(12.3456, "GB/s"), "12.35 GB/s");
        assert_eq!(with_unit(7.0, ""), "7.000");
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(percent(9.96), "+10.0 %");
        assert_eq!(percent(-0.01), "+0.0 %");
        assert_eq!(percent(-250.4), "-250 %");
        assert_eq!(percent(f64::INFINITY), "+inf %");
        assert_eq!(percent_interval(-1.25, 3.0), "-1.2 to +3.0 %");
    }
}
