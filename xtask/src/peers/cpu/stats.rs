//! Figures of a table.

use warpforge_measure::stats;

/// The median of some values; of none, NaN.
pub(in crate::peers) fn median(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(f64::NAN)
}

/// A number with three digits that count.
pub(in crate::peers) fn figure(value: f64) -> String {
    let digits = (2 - value.abs().log10().floor().clamp(-9.0, 9.0) as i64).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([124.49, 3.004, 0.0512, 1234.5].map(figure), ["124", "3.00", "0.0512", "1234"]);
    }
}
