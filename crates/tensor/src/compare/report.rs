//! The comparison of two tensors and what it found.

use serde::Serialize;

use super::scale::{Scale, magnitude, scale_of};
use super::tolerance::parts;
use super::{Criterion, DecadeHistogram, UlpHistogram};
use crate::{ElementType, Error, Scalar, Tensor};

/// What a comparison found. Errors are over finite parts; complex numbers are judged by parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Number of elements compared.
    pub count: usize,
    /// Number of elements outside the tolerance.
    pub mismatches: usize,
    /// The first element outside the tolerance.
    pub first: Option<Mismatch>,
    /// The element with the largest absolute difference, where anything differs; one that is not finite where the other
    /// is, or not the same infinity, is worse than every difference.
    pub worst: Option<Mismatch>,
    /// Largest absolute difference.
    pub max_absolute: f64,
    /// Largest difference divided by the expected magnitude, where that is not zero.
    pub max_relative: f64,
    /// Largest number of representable values apart.
    pub max_ulp: u64,
    /// Mean absolute difference.
    pub mean_absolute: f64,
    /// Root of the mean squared difference.
    pub rms: f64,
    /// Largest finite magnitude that is expected and no outlier: far above the rest, and few or all the same.
    pub scale: f64,
    /// Largest finite magnitude that is expected.
    pub largest: f64,
    /// Number of outliers among the expected values; each is judged by its own magnitude.
    pub outliers: usize,
    /// Whether a single value, far above the rest, sets the scale.
    pub scale_of_one: bool,
    /// Largest difference divided by the scale, or by the expected magnitude of an outlier.
    pub max_scaled: f64,
    /// Root of the mean squared difference, each divided likewise.
    pub rms_scaled: f64,
    /// Cosine of the angle between the two as vectors; unknown when one of them is zero everywhere.
    pub cosine: Option<f64>,
    /// Number of NaNs found.
    pub actual_nan: usize,
    /// Number of NaNs expected.
    pub expected_nan: usize,
    /// Number of infinities found.
    pub actual_infinite: usize,
    /// Number of infinities expected.
    pub expected_infinite: usize,
    /// The first element that is not finite in one of the two, and not the same in both.
    pub first_non_finite: Option<Mismatch>,
    /// Spread of the distances.
    pub ulps: UlpHistogram,
    /// Spread of the absolute differences.
    pub decades: DecadeHistogram,
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
    if actual.element_type() != expected.element_type() {
        return Err(different(actual, expected));
    }
    compare_values(actual, expected, criterion)
}

/// Compares the values of every element, whatever types they are stored as. Distances are counted in the type with
/// fewer values; numbers of different kinds have none.
///
/// # Errors
///
/// When the shapes differ.
pub fn compare_values(actual: &Tensor, expected: &Tensor, criterion: Criterion) -> Result<Report, Error> {
    if actual.shape() != expected.shape() {
        return Err(different(actual, expected));
    }
    let element = common(actual.element_type(), expected.element_type());
    let mut sums = Sums::new(scale_of(expected), criterion);
    for (position, (a, b)) in actual.iter().zip(expected.iter()).enumerate() {
        sums.add(element, position, a, b);
    }
    let at = |position: usize| {
        let index = actual.shape().index(position);
        let (found, wanted) = (actual.get(position), expected.get(position));
        Mismatch { index, actual: found.to_string(), expected: wanted.to_string() }
    };
    Ok(sums.report(actual.len(), at))
}

fn different(actual: &Tensor, expected: &Tensor) -> Error {
    let describe = |tensor: &Tensor| format!("{:?} {}", tensor.dims(), tensor.element_type());
    Error::TypeMismatch { expected: describe(expected), found: describe(actual) }
}

/// The type that distances between elements of two types are counted in.
fn common(a: ElementType, b: ElementType) -> ElementType {
    match (a.float_part(), b.float_part()) {
        (Some(left), Some(right)) if left.format().mantissa_bits <= right.format().mantissa_bits => a,
        (Some(_), None) => a,
        _ => b,
    }
}

/// What is added up over the elements.
struct Sums {
    criterion: Criterion,
    report: Report,
    compared: usize,
    first: Option<usize>,
    worst: Option<usize>,
    /// The first that is not finite in one of the two only; it is the worst too, since nothing beats it.
    non_finite: Option<usize>,
    /// The reciprocal of the largest magnitude, or 1 where it has none.
    per_unit: f64,
    /// The squares of differences, each divided by its scale, added up.
    scaled: f64,
    /// Sums, in units of the largest magnitude: of differences, of their squares, of what is found squared, of what is found times
    /// what is expected, of what is expected squared.
    sums: [f64; 5],
}

impl Sums {
    fn new(scale: Scale, criterion: Criterion) -> Self {
        let report = Report {
            count: 0,
            mismatches: 0,
            first: None,
            worst: None,
            max_absolute: 0.0,
            max_relative: 0.0,
            max_ulp: 0,
            mean_absolute: 0.0,
            rms: 0.0,
            scale: scale.value,
            largest: scale.largest,
            outliers: scale.outliers as usize,
            scale_of_one: scale.of_one,
            max_scaled: 0.0,
            rms_scaled: 0.0,
            cosine: None,
            actual_nan: 0,
            expected_nan: 0,
            actual_infinite: 0,
            expected_infinite: 0,
            first_non_finite: None,
            ulps: UlpHistogram::new(),
            decades: DecadeHistogram::new(),
        };
        let per_unit = Some(scale.largest.recip()).filter(|unit| unit.is_normal()).unwrap_or(1.0);
        let (first, worst) = (None, None);
        let (non_finite, sums) = (None, [0.0; 5]);
        Self { criterion, report, compared: 0, first, worst, non_finite, per_unit, scaled: 0.0, sums }
    }

    fn add(&mut self, element: ElementType, position: usize, actual: Scalar, expected: Scalar) {
        self.report.actual_nan += usize::from(actual.is_nan());
        self.report.expected_nan += usize::from(expected.is_nan());
        self.report.actual_infinite += usize::from(magnitude(actual).is_infinite());
        self.report.expected_infinite += usize::from(magnitude(expected).is_infinite());
        let mut accepted = true;
        for (a, b, ulps) in parts(element, actual, expected).into_iter().flatten() {
            accepted &= self.criterion.accepts(a, b, ulps, self.report.scale);
            let difference = (a - b).abs();
            if difference.is_finite() {
                self.finite(position, a, b, ulps, difference);
            } else if a != b && !(a.is_nan() && b.is_nan()) {
                self.non_finite = self.non_finite.or(Some(position));
            }
        }
        if !accepted {
            self.report.mismatches += 1;
            self.first = self.first.or(Some(position));
        }
    }

    fn finite(&mut self, position: usize, a: f64, b: f64, ulps: Option<u64>, difference: f64) {
        let report = &mut self.report;
        self.compared += 1;
        // In units of the scale, sums and squares cannot overflow.
        let (left, right, apart) = (a * self.per_unit, b * self.per_unit, difference * self.per_unit);
        let terms = [apart, apart * apart, left * left, left * right, right * right];
        for (sum, term) in self.sums.iter_mut().zip(terms) {
            *sum += term;
        }
        if difference > report.max_absolute {
            report.max_absolute = difference;
            self.worst = Some(position);
        }
        if b != 0.0 && difference > report.max_relative * b.abs() {
            report.max_relative = difference / b.abs();
        }
        let scaled = if difference > 0.0 { difference / report.scale.max(b.abs()) } else { 0.0 };
        report.max_scaled = report.max_scaled.max(scaled);
        self.scaled += scaled * scaled;
        if let Some(ulps) = ulps {
            report.max_ulp = report.max_ulp.max(ulps);
            report.ulps.add(ulps);
        }
        report.decades.add(difference);
    }

    fn report(self, count: usize, at: impl Fn(usize) -> Mismatch) -> Report {
        let [apart, squared, actual, mixed, expected] = self.sums;
        let norms = actual.sqrt() * expected.sqrt();
        let compared = self.compared.max(1) as f64;
        Report {
            count,
            first: self.first.map(&at),
            worst: self.non_finite.or(self.worst).map(&at),
            first_non_finite: self.non_finite.map(&at),
            rms_scaled: (self.scaled / compared).sqrt(),
            mean_absolute: apart / compared / self.per_unit,
            rms: (squared / compared).sqrt() / self.per_unit,
            cosine: (norms > 0.0 && norms.is_finite()).then(|| (mixed / norms).clamp(-1.0, 1.0)),
            ..self.report
        }
    }
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
    fn the_whole_is_described_too() {
        let report = judge(&[3.0, 4.0, f32::NAN], &[4.0, 3.0, f32::NAN], Criterion::new(Tolerance::Exact));
        assert_eq!((report.scale, report.rms), (4.0, 1.0));
        assert!((report.cosine.expect("known") - 0.96).abs() < 1e-12);
        assert_eq!((report.actual_nan, report.expected_nan), (1, 1));
        assert_eq!(report.decades.occupied().collect::<Vec<_>>(), [(Some(0), 2)]);
        assert_eq!(judge(&[0.0], &[1.0], Criterion::new(Tolerance::Exact)).cosine, None);
        let huge = judge(&[3e38, 3e38], &[3e38, -3e38], Criterion::new(Tolerance::Exact));
        assert_eq!(huge.cosine, Some(0.0));
    }

    #[test]
    fn a_mask_allows_nothing_for_the_values_beside_it() {
        let scaled = Criterion::new(Tolerance::Scaled { rtol: 1e-5 });
        let report = judge(&[9.0, 9.0, 9.0, f32::MIN], &[1.0, 2.0, 3.0, f32::MIN], scaled);
        assert_eq!((report.mismatches, report.scale, report.outliers), (3, 3.0, 1));
        assert!(judge(&[1.0, 2.0, 3.0, f32::MIN * 0.999_999], &[1.0, 2.0, 3.0, f32::MIN], scaled).passed());
        assert!(!judge(&[1.0, 2.0, 3.0, f32::MIN * 0.99], &[1.0, 2.0, 3.0, f32::MIN], scaled).passed());
        assert_eq!(report.max_scaled, 8.0 / 3.0);
    }

    #[test]
    fn what_is_not_finite_is_the_worst() {
        let report = judge(&[9.0, f32::NAN, 1.0], &[1.0, 2.0, 100.0], Criterion::new(Tolerance::Exact));
        assert_eq!(report.first_non_finite, report.worst);
        let infinite =
            judge(&[1.0, f32::INFINITY], &[1.0, f32::NEG_INFINITY], Criterion::new(Tolerance::Exact));
        assert_eq!((infinite.actual_infinite, infinite.expected_infinite), (1, 1));
        assert_eq!(infinite.first_non_finite.map(|first| first.index), Some(vec![1]));
        assert_eq!(report.worst.map(|worst| worst.index), Some(vec![1]));
        assert_eq!(report.max_absolute, 99.0);
    }

    #[test]
    fn terms_add_up_and_steps_are_enough() {
        let within = |atol, rtol, scaled, ulp| Tolerance::Within { rtol, atol, scaled, ulp };
        let passes = |actual, expected, tolerance| passes(actual, expected, tolerance);
        assert!(passes(10.0, 8.0, within(0.5, 0.125, 0.0625, 0)));
        assert!(!passes(10.1, 8.0, within(0.5, 0.125, 0.0625, 0)));
        let next = f32::from_bits(1e30f32.to_bits() + 2);
        assert!(
            passes(next, 1e30, within(0.0, 0.0, 0.0, 2)) && !passes(next, 1e30, within(0.0, 0.0, 0.0, 1))
        );
        let wide = |value: i64| Tensor::from_slice(&[1], &[value]).expect("fits");
        let exact = Criterion::new(within(0.0, 0.0, 0.0, 0));
        assert!(!compare(&wide(i64::MAX), &wide(i64::MAX - 1), exact).expect("same types").passed());
    }

    #[test]
    fn values_of_two_types_are_compared_in_steps_of_the_coarser() {
        let wide = Tensor::from_slice(&[2], &[1.0f32, 1.01]).expect("fits");
        let narrow = Tensor::from_slice(&[2], &[half::bf16::ONE, half::bf16::ONE]).expect("fits");
        let criterion = Criterion::new(Tolerance::Absolute { atol: 0.1 });
        let report = compare_values(&wide, &narrow, criterion).expect("same shapes");
        assert_eq!((report.mismatches, report.max_ulp), (0, 1));
        assert!(compare(&wide, &narrow, criterion).is_err());
        let whole = Tensor::from_slice(&[2], &[1i32, 1]).expect("fits");
        assert!(compare_values(&whole, &wide, criterion).expect("same shapes").passed());
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
