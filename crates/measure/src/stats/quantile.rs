//! Location and spread: mean, quantiles, median, median absolute deviation.

/// The values in ascending order; `None` if there are none or one is not finite.
pub(super) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// The quantile of values that are in ascending order and not empty (type 7: linear between order statistics).
pub(super) fn of_sorted(sorted: &[f64], share: f64) -> f64 {
    let position = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let weight = position - below as f64;
    if weight == 0.0 { sorted[below] } else { sorted[below] * (1.0 - weight) + sorted[above] * weight }
}

/// The median of values in any order, which are put into another; they are finite and not empty.
pub(super) fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower / 2.0 + upper / 2.0
}

/// The value below which the given share of the values lies, linear between order statistics (type 7, as in R and
/// NumPy). `None` if there are no values, one is not finite, or the share is not in 0 to 1.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    (0.0..=1.0).contains(&share).then_some(())?;
    Some(of_sorted(&sorted(values)?, share))
}

/// The middle value, or the mean of the two middle ones.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The median absolute deviation from the median, not scaled to a standard deviation.
#[must_use]
pub fn mad(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    median(&values.iter().map(|value| (value - middle).abs()).collect::<Vec<_>>())
}

/// The arithmetic mean.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let count = values.len() as f64;
    Some(values.iter().map(|value| value / count).sum())
}

/// The geometric mean, which is the one for ratios. `None` if there are no values or one is not positive.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|&value| value <= 0.0) {
        return None;
    }
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let values = [7.0, 1.0, 3.0, 10.0];
        assert_eq!(median(&values), Some(5.0));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.25), Some(2.5));
        assert!((quantile(&values, 0.9).unwrap() - 9.1).abs() < 1e-12);
        assert_eq!(quantile(&values, 1.0), Some(10.0));
        assert_eq!(mad(&values), Some(3.0));
        assert_eq!(mean(&values), Some(5.25));
        assert!((geometric_mean(&[0.5, 2.0, 8.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_median_by_selection_is_the_one_by_sorting() {
        let mut random = fastrand::Rng::with_seed(1);
        for length in 1..40 {
            let values: Vec<f64> = (0..length).map(|_| f64::from(random.u8(..20))).collect();
            let mut scratch = values.clone();
            assert_eq!(Some(median_in_place(&mut scratch)), median(&values), "{values:?}");
        }
    }

    #[test]
    fn odd_data_is_none_or_itself() {
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(mad(&[f64::INFINITY]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        assert_eq!((median(&[4.0]), mad(&[4.0]), mean(&[4.0])), (Some(4.0), Some(0.0), Some(4.0)));
        assert_eq!(mean(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}
