//! One tensor of two runs.

use std::borrow::Cow;

use warpforge_tensor::compare::{DecadeHistogram, Mismatch, Report, UlpHistogram, compare_values};
use warpforge_tensor::{ElementType, Tensor};

use crate::Class;
use crate::folder::{Folder, Item, Key, Noise};
use crate::report::{Bin, Figures, Point, Status, TensorKind, TensorReport};
use crate::three_way::three_way;
use crate::tolerance::{Nan, OneSided, Rule, Tolerances, Types};

/// What the two runs have under one key.
pub(crate) struct Pair<'a> {
    pub(crate) key: &'a Key,
    pub(crate) golden: Option<&'a Item>,
    pub(crate) candidate: Option<&'a Item>,
    pub(crate) reference: Option<&'a Item>,
}

impl Pair<'_> {
    /// Judges the pair. The node is filled in by whoever knows the graph.
    pub(crate) fn judge(&self, golden: &Folder, candidate: &Folder, tolerances: &Tolerances) -> TensorReport {
        let elements = [self.golden, self.candidate].map(|item| item.map(|item| item.tensor.element_type()));
        let rule = tolerances.rule(self.key, coarser(elements));
        let kind = |item: Option<&Item>| item.map(|item| kind_of(&item.tensor));
        let mut report = TensorReport {
            name: self.key.name.clone(),
            class: self.key.class,
            step: Some(self.key.step.clone()).filter(|step| !step.is_empty()),
            node: None,
            status: Status::Ignored,
            reason: None,
            failed: false,
            identical: false,
            golden: kind(self.golden),
            candidate: kind(self.candidate),
            rule,
            figures: None,
            three_way: None,
        };
        if report.rule.ignore {
            return report;
        }
        if self.golden.is_some() && self.candidate.is_none() {
            report.reason = self.skipped(candidate).cloned();
        }
        (report.status, report.failed) = match (self.golden, self.candidate) {
            (Some(_), None) if report.reason.is_some() => (Status::Skipped, false),
            (Some(_), None) => (Status::Missing, report.rule.missing == OneSided::Fail),
            (None, _) => (Status::Extra, report.rule.extra == OneSided::Fail),
            (Some(left), Some(right)) => {
                let same_file =
                    same_hash(golden.file_of(left).sha256.as_ref(), candidate.file_of(right).sha256.as_ref());
                report.identical = same_file || left.tensor.identical(&right.tensor);
                let reference = self.reference.map(|item| &item.tensor);
                let judged = compared(&mut report, &left.tensor, &right.tensor, reference);
                match golden.noise(self.key).filter(|_| judged.0 == Status::OutOfTolerance) {
                    Some(noise) => within_noise(&mut report, noise, &left.tensor, &right.tensor),
                    None => judged,
                }
            }
        };
        report
    }

    /// Why the candidate does not have it, where its manifest says so.
    fn skipped<'c>(&self, candidate: &'c Folder) -> Option<&'c String> {
        let manifest = candidate.manifest().filter(|_| self.key.class == Class::Activations)?;
        manifest.skipped.get(&self.key.name)
    }
}

fn same_hash(left: Option<&String>, right: Option<&String>) -> bool {
    left.is_some() && left == right
}

/// The type that decides how close is close: of two float types the one with the larger steps.
fn coarser(elements: [Option<ElementType>; 2]) -> ElementType {
    let steps = |element: &ElementType| element.float_part().map(|float| float.format().mantissa_bits);
    let known = elements.into_iter().flatten();
    known.min_by_key(|element| steps(element).unwrap_or(u32::MAX)).unwrap_or(ElementType::F32)
}

pub(crate) fn kind_of(tensor: &Tensor) -> TensorKind {
    TensorKind { element_type: tensor.element_type().to_string(), shape: tensor.dims().to_vec() }
}

/// Compares two tensors that are both there: the status, and whether it is a mismatch.
fn compared(
    report: &mut TensorReport,
    golden: &Tensor,
    candidate: &Tensor,
    reference: Option<&Tensor>,
) -> (Status, bool) {
    let elements = (golden.element_type(), candidate.element_type());
    let other_type = elements.0 != elements.1 && report.rule.types == Types::Same;
    if golden.shape() != candidate.shape() {
        return (Status::ShapeMismatch, true);
    }
    // Nothing can be said about complex numbers beside real ones.
    if elements.0.is_complex() != elements.1.is_complex() {
        return (Status::TypeMismatch, true);
    }
    let mut figures = if report.identical && report.rule.nan == Nan::Equal {
        Some(identical_figures(golden))
    } else {
        let (golden, candidate) = single_precision(report.class, golden, candidate);
        figures(&golden, &candidate, &report.rule)
    };
    if let (Some(reference), Some(figures), false) = (reference, &mut figures, report.identical) {
        report.three_way = three_way(golden, candidate, reference, &report.rule);
        if let Some(three_way) = &report.three_way {
            figures.out_of_tolerance = three_way.candidate.out_of_tolerance;
            figures.first = None;
        }
    }
    let out_of_tolerance = figures.as_ref().is_none_or(|figures| figures.out_of_tolerance > 0);
    report.figures = figures;
    if other_type {
        (Status::TypeMismatch, true)
    } else if out_of_tolerance {
        (Status::OutOfTolerance, true)
    } else {
        (Status::Passed, false)
    }
}

/// How many times the noise floor a candidate may be from the golden run.
const NOISE_FACTOR: f64 = 4.0;

/// Judges a tensor that is out of its tolerance by how far two golden runs are apart in it.
fn within_noise(
    report: &mut TensorReport,
    noise: &Noise,
    golden: &Tensor,
    candidate: &Tensor,
) -> (Status, bool) {
    let rule = widened(&report.rule, noise.max_abs);
    let out = match &noise.each {
        Some(each) => !each_within(&report.rule, each, golden, candidate),
        None => figures(golden, candidate, &rule).is_none_or(|figures| figures.out_of_tolerance > 0),
    };
    if out {
        let found = report.figures.as_ref().map_or(f64::NAN, |figures| figures.max_abs);
        report.reason = Some(format!(
            "{found:.2e} is more than {NOISE_FACTOR} times the noise floor, {:.2e}{}",
            noise.max_abs,
            if noise.each.is_some() { ", or an element than its own" } else { "" }
        ));
        return (Status::OutOfTolerance, true);
    }
    report.reason =
        Some(format!("within {NOISE_FACTOR} times the noise floor, {:.2e}: {}", noise.max_abs, noise.reason));
    report.rule = Rule { origin: format!("noise floor of the golden run, {NOISE_FACTOR} times"), ..rule };
    if let Some(figures) = &mut report.figures {
        figures.out_of_tolerance = 0;
    }
    (Status::WithinNoise, false)
}

/// A rule that allows the noise floor too.
fn widened(rule: &Rule, noise: f64) -> Rule {
    let mut rule = rule.clone();
    rule.limits.atol = rule.limits.atol.max(NOISE_FACTOR * noise);
    rule
}

/// Whether each element of a curve is within the tolerance or its own noise floor.
fn each_within(rule: &Rule, each: &[f64], golden: &Tensor, candidate: &Tensor) -> bool {
    let one = |tensor: &Tensor, at| Tensor::from_slice(&[1], &[tensor.get(at).to_f64()]);
    let within = |(at, &noise): (usize, &f64)| {
        let (Ok(golden), Ok(candidate)) = (one(golden, at), one(candidate, at)) else { return false };
        let judged = figures(&golden, &candidate, &widened(rule, noise));
        judged.is_some_and(|figures| figures.out_of_tolerance == 0)
    };
    each.len() == golden.len() && golden.len() == candidate.len() && each.iter().enumerate().all(within)
}

/// Numbers in JSON have no type: losses and metrics that are all values of binary32 are taken as such, since that is what
/// a step between two of them is counted in.
fn single_precision<'a>(
    class: Class,
    golden: &'a Tensor,
    candidate: &'a Tensor,
) -> (Cow<'a, Tensor>, Cow<'a, Tensor>) {
    let narrow = |tensor: &Tensor| {
        let values =
            tensor.as_slice::<f64>().ok().filter(|_| matches!(class, Class::Losses | Class::Metrics))?;
        let fits = |value: &f64| value.is_nan() || f64::from(*value as f32) == *value;
        let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        values.iter().all(fits).then(|| Tensor::from_slice(tensor.dims(), &narrow).ok())?
    };
    match (narrow(golden), narrow(candidate)) {
        (Some(golden), Some(candidate)) => (Cow::Owned(golden), Cow::Owned(candidate)),
        _ => (Cow::Borrowed(golden), Cow::Borrowed(candidate)),
    }
}

/// What a comparison by a rule measures; `None` when the shapes differ.
pub(crate) fn figures(golden: &Tensor, candidate: &Tensor, rule: &Rule) -> Option<Figures> {
    compare_values(candidate, golden, rule.criterion()).ok().map(from_report)
}

fn from_report(report: Report) -> Figures {
    let point = |mismatch: Mismatch| Point {
        index: mismatch.index,
        golden: mismatch.expected,
        candidate: mismatch.actual,
    };
    Figures {
        elements: report.count as u64,
        out_of_tolerance: report.mismatches as u64,
        max_abs: report.max_absolute,
        max_rel: report.max_relative,
        max_ulp: report.max_ulp,
        mean_abs: report.mean_absolute,
        rms: report.rms,
        cosine: report.cosine.filter(|_| report.first_non_finite.is_none()),
        scale: Some(report.scale),
        largest: Some(report.largest),
        outliers: Some(report.outliers as u64),
        scale_of_one: report.scale_of_one,
        golden_nan: Some(report.expected_nan as u64),
        candidate_nan: Some(report.actual_nan as u64),
        golden_infinite: Some(report.expected_infinite as u64),
        candidate_infinite: Some(report.actual_infinite as u64),
        first_non_finite: report.first_non_finite.map(point),
        histogram: decades(&report.decades),
        ulp_histogram: distances(&report.ulps),
        worst: report.worst.map(point),
        first: report.first.map(point),
    }
}

fn identical_figures(tensor: &Tensor) -> Figures {
    let count = tensor.len() as u64;
    let same = if count > 0 { vec![Bin { from: 0.0, to: Some(0.0), count }] } else { Vec::new() };
    Figures {
        elements: count,
        out_of_tolerance: 0,
        max_abs: 0.0,
        max_rel: 0.0,
        max_ulp: 0,
        mean_abs: 0.0,
        rms: 0.0,
        cosine: (count > 0).then_some(1.0),
        scale: None,
        largest: None,
        outliers: None,
        scale_of_one: false,
        golden_nan: None,
        candidate_nan: None,
        golden_infinite: None,
        candidate_infinite: None,
        first_non_finite: None,
        worst: None,
        first: None,
        histogram: same.clone(),
        ulp_histogram: same,
    }
}

fn decades(histogram: &DecadeHistogram) -> Vec<Bin> {
    let exact = Some(histogram.exact()).filter(|&count| count > 0);
    let exact = exact.map(|count| Bin { from: 0.0, to: Some(0.0), count });
    let power = |exponent: i32| 10f64.powi(exponent);
    let bins = histogram.occupied().map(|(exponent, count)| match exponent {
        None => Bin { from: 0.0, to: Some(power(DecadeHistogram::LOWEST)), count },
        Some(exponent) => {
            let to = (exponent < DecadeHistogram::HIGHEST).then(|| power(exponent + 1));
            Bin { from: power(exponent), to, count }
        }
    });
    exact.into_iter().chain(bins).collect()
}

fn distances(histogram: &UlpHistogram) -> Vec<Bin> {
    let bins = histogram.occupied();
    bins.map(|(low, high, count)| {
        let to = if low == 0 { Some(0.0) } else { high.checked_add(1).map(|end| end as f64) };
        Bin { from: low as f64, to, count }
    })
    .collect()
}
