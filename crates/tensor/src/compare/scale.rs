//! How large the values of a tensor are, whatever a few of them are.
//!
//! A tolerance that is a fraction of the largest value allows anything where one value is a mask of -3.4e38. So values that
//! stand far above all others and are few, or are all the same, are outliers: they do not set the scale.

use crate::{Scalar, Tensor};

/// Outliers are at least so many times as large as the rest.
const APART: f64 = 1024.0;
/// Outliers that differ among themselves are at most one of so many values.
const FEW: u64 = 100;
/// One value sets the scale where it is at least so many times as large as the next.
const ALONE: f64 = 16.0;

/// The scale of a tensor's finite values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The largest magnitude that is no outlier.
    pub(super) value: f64,
    /// The largest magnitude.
    pub(super) largest: f64,
    /// How many outliers there are.
    pub(super) outliers: u64,
    /// Whether the scale is that of a single value, far above the rest.
    pub(super) of_one: bool,
}

/// The magnitudes between two powers of two.
#[derive(Clone, Copy)]
struct Bin {
    count: u64,
    least: f64,
    most: f64,
    /// The largest but one; 0 where there is none.
    second: f64,
}

impl Bin {
    const EMPTY: Self = Self { count: 0, least: f64::INFINITY, most: 0.0, second: 0.0 };

    fn add(&mut self, magnitude: f64) {
        self.count += 1;
        self.least = self.least.min(magnitude);
        if magnitude > self.most {
            (self.most, self.second) = (magnitude, self.most);
        } else {
            self.second = self.second.max(magnitude);
        }
    }
}

/// Finds the scale in one pass over the values and one over their binary exponents.
pub(super) fn scale_of(tensor: &Tensor) -> Scale {
    let mut bins = vec![Bin::EMPTY; 1 << 11];
    for magnitude in tensor.iter().map(magnitude).filter(|value| value.is_finite() && *value > 0.0) {
        bins[(magnitude.to_bits() >> 52) as usize].add(magnitude);
    }
    // From the largest on.
    let bins: Vec<Bin> = bins.into_iter().rev().filter(|bin| bin.count > 0).collect();
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    let largest = bins.first().map_or(0.0, |bin| bin.most);
    let (mut rest, mut outliers) = (&bins[..], 0);
    while let Some(end) = group(rest) {
        let above = &rest[..end];
        let count: u64 = above.iter().map(|bin| bin.count).sum();
        let one_magnitude = above.len() == 1 && above[0].least == above[0].most;
        if !one_magnitude && (outliers + count) * FEW > total {
            break;
        }
        outliers += count;
        rest = &rest[end..];
    }
    let value = rest.first().map_or(0.0, |bin| bin.most);
    let next = match rest {
        [first, ..] if first.second > 0.0 => first.second,
        [_, second, ..] => second.most,
        _ => value,
    };
    Scale { value, largest, outliers, of_one: value >= ALONE * next && value > 0.0 }
}

/// How many bins stand far above the rest; `None` where none do.
fn group(bins: &[Bin]) -> Option<usize> {
    bins.windows(2).position(|pair| pair[0].least >= APART * pair[1].most).map(|at| at + 1)
}

pub(super) fn magnitude(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Complex(re, im) => re.hypot(im),
        other => other.to_f64().abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(values: &[f32]) -> Scale {
        scale_of(&Tensor::from_slice(&[values.len()], values).expect("fits"))
    }

    #[test]
    fn values_of_one_size_have_the_largest_as_their_scale() {
        let found = scale(&[0.0, 1.0, -4.0, 3.0, f32::NAN, f32::INFINITY]);
        assert_eq!(found, Scale { value: 4.0, largest: 4.0, outliers: 0, of_one: false });
        assert_eq!(scale(&[]), Scale { value: 0.0, largest: 0.0, outliers: 0, of_one: false });
        assert_eq!(scale(&[7.0]).value, 7.0);
    }

    #[test]
    fn masks_do_not_set_the_scale() {
        assert_eq!(scale(&[1.0, 2.0, 3.0, f32::MIN]).value, 3.0);
        let mut masked = vec![-1e9f32; 60];
        masked.extend((1..=40).map(|value| value as f32));
        let found = scale(&masked);
        assert_eq!((found.value, found.outliers), (40.0, 60));
        masked.push(f32::MIN);
        assert_eq!(scale(&masked).outliers, 61);
    }

    #[test]
    fn noise_below_many_values_is_judged_by_them() {
        let mut values = vec![1e-9f32; 50];
        values.extend((1..=50).map(|value| value as f32));
        assert_eq!((scale(&values).value, scale(&values).outliers), (50.0, 0));
    }

    #[test]
    fn one_value_that_sets_the_scale_is_known() {
        assert!(scale(&[1.0, 2.0, 100.0]).of_one);
        assert!(!scale(&[1.0, 2.0, 20.0]).of_one);
        assert!(!scale(&[1.0, 100.0, 100.0]).of_one);
    }
}
