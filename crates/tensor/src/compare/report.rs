//! The comparison of two tensors and what it found.

use serde::Serialize;

use super::tolerance::parts;
use super::{Criterion, UlpHistogram};
use crate::{Error, Scalar, Tensor};

/// What a comparison found. Errors are over finite parts; complex numbers are judged by parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Number of elements compared.
    pub count: usize,
    /// Number of elements outside the tolerance.
    pub mismatches: usize,
    /// The first element outside the tolerance.
    pub first: Option<Mismatch>,
    /// The element with the largest absolute difference, where anything differs.
    pub worst: Option<Mismatch>,
    /// Largest absolute difference.
    pub max_absolute: f64,
    /// Largest difference divided by the expected magnitude, where that is not zero.
    pub max_relative: f64,
    /// Largest number of representable values apart.
    pub max_ulp: u64,
    /// Mean absolute difference.
    pub mean_absolute: f64,
    /// Spread of the distances.
    pub ulps: UlpHistogram,
}

/// One element that is not as expected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Its index.
    pub index: Vec<usize>,
    /// The value found, as text: JSON has no NaN.
    pub actual: String,
    /// The value expected.
    pub expected: String,
}

impl Report {
    /// Whether every element is within the tolerance.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.mismatches == 0
    }
}

/// Compares every element of `actual` with `expected`.
///
/// # Errors
///
/// When the element types or shapes differ: there is no element-wise answer then.
pub fn compare(actual: &Tensor, expected: &Tensor, criterion: Criterion) -> Result<Report, Error> {
    let describe = |tensor: &Tensor| format!("{:?} {}", tensor.dims(), tensor.element_type());
    if actual.element_type() != expected.element_type() || actual.shape() != expected.shape() {
        return Err(Error::TypeMismatch { expected: describe(expected), found: describe(actual) });
    }
    let element = actual.element_type();
    let scale = scale_of(expected);
    let mut report = Report {
        count: actual.len(),
        mismatches: 0,
        first: None,
        worst: None,
        max_absolute: 0.0,
        max_relative: 0.0,
        max_ulp: 0,
        mean_absolute: 0.0,
        ulps: UlpHistogram::new(),
    };
    let (mut compared, mut worst) = (0usize, None);
    for (position, (a, b)) in actual.iter().zip(expected.iter()).enumerate() {
        let mut accepted = true;
        for (a, b, ulps) in parts(element, a, b).into_iter().flatten() {
            accepted &= criterion.accepts(a, b, ulps, scale);
            let difference = (a - b).abs();
            if !difference.is_finite() {
                continue;
            }
            compared += 1;
            report.mean_absolute += (difference - report.mean_absolute) / compared as f64;
            if difference > report.max_absolute {
                report.max_absolute = difference;
                worst = Some(position);
            }
            if b != 0.0 {
                report.max_relative = report.max_relative.max(difference / b.abs());
            }
            if let Some(ulps) = ulps {
                report.max_ulp = report.max_ulp.max(ulps);
                report.ulps.add(ulps);
            }
        }
        if !accepted {
            report.mismatches += 1;
            if report.first.is_none() {
                report.first = Some(mismatch(actual, position, a, b));
            }
        }
    }
    report.worst = worst.map(|at| mismatch(actual, at, actual.get(at), expected.get(at)));
    Ok(report)
}

fn mismatch(tensor: &Tensor, position: usize, actual: Scalar, expected: Scalar) -> Mismatch {
    let index = tensor.shape().index(position);
    Mismatch { index, actual: actual.to_string(), expected: expected.to_string() }
}

/// The largest finite magnitude of a tensor.
fn scale_of(tensor: &Tensor) -> f64 {
    let magnitude = |scalar: Scalar| match scalar {
        Scalar::Complex(re, im) => re.hypot(im),
        other => other.to_f64().abs(),
    };
    tensor.iter().map(magnitude).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{NanPolicy, Tolerance};

    fn judge(actual: &[f32], expected: &[f32], criterion: Criterion) -> Report {
        let tensor = |values: &[f32]| Tensor::from_slice(&[values.len()], values).expect("fits");
        compare(&tensor(actual), &tensor(expected), criterion).expect("same types")
    }

    fn passes(actual: f32, expected: f32, tolerance: Tolerance) -> bool {
        judge(&[actual], &[expected], Criterion::new(tolerance)).passed()
    }

    #[test]
    fn each_tolerance_judges_by_its_own_measure() {
        let next = f32::from_bits(1.0f32.to_bits() + 3);
        assert!(passes(next, 1.0, Tolerance::Ulp { min: 0, max: 3 }));
        assert!(!passes(next, 1.0, Tolerance::Ulp { min: 0, max: 2 }));
        assert!(!passes(1.0, 1.0, Tolerance::Ulp { min: 1, max: 2 }));
        assert!(passes(0.0, -0.0, Tolerance::Exact));
        assert!(!passes(0.0, -0.0, Tolerance::Bitwise));
        assert!(passes(1.5, 1.0, Tolerance::Absolute { atol: 0.5 }));
        assert!(!passes(1.6, 1.0, Tolerance::Absolute { atol: 0.5 }));
        assert!(passes(101.0, 100.0, Tolerance::Relative { rtol: 0.011 }));
        assert!(!passes(101.0, 100.0, Tolerance::Relative { rtol: 0.009 }));
        assert!(passes(0.5, 0.0, Tolerance::Close { rtol: 0.1, atol: 0.5 }));
        let scaled = Criterion::new(Tolerance::Scaled { rtol: 1e-2 });
        assert!(judge(&[0.5, 100.0], &[0.0, 100.0], scaled).passed());
    }

    #[test]
    fn infinities_must_be_equal_and_nan_follows_the_policy() {
        let loose = Tolerance::Absolute { atol: 1e30 };
        assert!(passes(f32::INFINITY, f32::INFINITY, loose));
        assert!(!passes(f32::INFINITY, f32::MAX, loose));
        assert!(!passes(f32::INFINITY, f32::MAX, Tolerance::Ulp { min: 0, max: 9 }));
        assert!(passes(f32::NAN, -f32::NAN, Tolerance::Exact));
        assert!(!passes(f32::NAN, 1.0, loose));
        let strict = Criterion { tolerance: Tolerance::Exact, nan: NanPolicy::MatchesNothing };
        assert!(!judge(&[f32::NAN], &[f32::NAN], strict).passed());
    }

    #[test]
    fn the_report_says_where_and_how_much() {
        let criterion = Criterion::new(Tolerance::Absolute { atol: 0.1 });
        let report = judge(&[1.0, 2.5, 9.0], &[1.0, 2.0, 3.0], criterion);
        assert_eq!((report.count, report.mismatches), (3, 2));
        assert_eq!(report.first.map(|first| first.index), Some(vec![1]));
        assert_eq!(report.worst.map(|worst| worst.index), Some(vec![2]));
        assert_eq!((report.max_absolute, report.max_relative), (6.0, 2.0));
        assert_eq!(report.ulps.occupied().map(|bin| bin.2).sum::<u64>(), 3);
    }

    #[test]
    fn wide_integers_are_compared_exactly() {
        let tensor = |value: i64| Tensor::from_slice(&[1], &[value]).expect("fits");
        let exact = Criterion::new(Tolerance::Exact);
        assert!(!compare(&tensor(i64::MAX), &tensor(i64::MAX - 1), exact).expect("same types").passed());
    }

    #[test]
    fn different_shapes_are_an_error() {
        let tensor = |dims: &[usize]| Tensor::from_slice(dims, &[0.0f32; 4]).expect("fits");
        assert!(compare(&tensor(&[4]), &tensor(&[2, 2]), Criterion::new(Tolerance::Exact)).is_err());
    }
}
