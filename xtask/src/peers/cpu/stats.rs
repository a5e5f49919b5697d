//! Medians and means.

/// The middle of some values; the mean of the two in the middle of an even number. None gives NaN.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (Some(value), 1) => *value,
        (Some(value), _) => (values[middle - 1] + value) / 2.0,
        (None, _) => f64::NAN,
    }
}

/// The geometric mean of ratios, if there are any.
pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

/// A number with three digits that count.
pub(super) fn figure(value: f64) -> String {
    let digits = (2 - value.abs().log10().floor().clamp(-9.0, 9.0) as i64).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_mean() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert!((geometric_mean(&[0.5, 2.0, 8.0]).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([124.49, 3.004, 0.0512, 1234.5].map(figure), ["124", "3.00", "0.0512", "1234"]);
    }
}
