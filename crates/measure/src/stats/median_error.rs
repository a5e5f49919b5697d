//! How far a median of a few samples is from the true one.

use statrs::function::beta::checked_beta_reg;

use super::quantile::sorted;

/// The standard error of the median, by Maritz and Jarrett: the limit of a bootstrap with endless resampling,
/// without the resampling. Zero for a single value, which has no information on its error.
#[must_use]
pub fn median_standard_error(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let count = sorted.len() as f64;
    // The chance that the middle of `count` uniform draws lies below `share`; for an even count, the parameters lie
    // between those of the two middle draws.
    let middle = f64::midpoint(count, 1.0);
    let below = |rank: usize| checked_beta_reg(middle, middle, (rank as f64 / count).min(1.0)).ok();
    // Distances from the median, so that large values with small differences keep their digits.
    let centre = sorted[sorted.len() / 2];
    let (mut first, mut second, mut last) = (0.0, 0.0, 0.0);
    for (rank, value) in sorted.iter().enumerate() {
        let next = below(rank + 1)?;
        let weight = next - last;
        first += weight * (value - centre);
        second += weight * (value - centre).powi(2);
        last = next;
    }
    Some((second - first * first).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::simulation::normal;
    use super::*;

    #[test]
    fn it_is_the_spread_of_medians() {
        let mut random = fastrand::Rng::with_seed(3);
        for count in [9, 30, 31, 100] {
            let mut draw = || (0..count).map(|_| 7.0 + normal(&mut random)).collect::<Vec<_>>();
            let estimates: Vec<f64> = (0..300).map(|_| median_standard_error(&draw()).unwrap()).collect();
            let estimated = super::super::mean(&estimates).unwrap();
            let medians: Vec<f64> = (0..1000).map(|_| super::super::median(&draw()).unwrap()).collect();
            let spread = (medians.iter().map(|m| (m - 7.0).powi(2)).sum::<f64>() / 1000.0).sqrt();
            assert!((estimated / spread - 1.0).abs() < 0.15, "{count}: {estimated} {spread}");
        }
    }

    #[test]
    fn odd_data_is_none_or_nothing() {
        assert_eq!(median_standard_error(&[]), None);
        assert_eq!(median_standard_error(&[f64::NAN]), None);
        assert_eq!(median_standard_error(&[4.0]), Some(0.0));
        assert_eq!(median_standard_error(&[4.0; 50]), Some(0.0));
    }
}
