//! Totals: what all tensors of a validation, or of a class, came to.

use crate::Class;
use crate::report::{ClassSummary, Counts, Figures, Status, TensorReport, Verdict};

/// How many tensors fared how.
pub(crate) fn counts<'a>(tensors: impl Iterator<Item = &'a TensorReport>) -> Counts {
    let mut counts = Counts::default();
    for report in tensors {
        counts.failed += usize::from(report.failed);
        match report.status {
            Status::Missing => counts.missing += 1,
            Status::Extra => counts.extra += 1,
            Status::Ignored => counts.ignored += 1,
            Status::Skipped => counts.skipped += 1,
            _ => {}
        }
        if let Some(figures) = &report.figures {
            counts.compared += 1;
            counts.identical += usize::from(report.identical);
            counts.passed += usize::from(!report.failed);
            counts.elements += figures.elements;
            counts.elements_out_of_tolerance += figures.out_of_tolerance;
        }
    }
    counts
}

/// A candidate that shares nothing with the golden run but its inputs has not been judged.
pub(crate) fn verdict<'a>(tensors: impl Iterator<Item = &'a TensorReport>) -> Verdict {
    let (mut compared, mut failed) = (false, false);
    for report in tensors {
        let both = report.golden.is_some() && report.candidate.is_some() && report.status != Status::Ignored;
        compared |= both && report.class != Class::Inputs;
        failed |= report.failed;
    }
    match (compared, failed) {
        (false, _) => Verdict::Inconclusive,
        (true, true) => Verdict::Fail,
        (true, false) => Verdict::Pass,
    }
}

/// What each class that occurs came to.
pub(crate) fn classes(tensors: &[TensorReport]) -> Vec<ClassSummary> {
    let summary = |class: Class| {
        let own = || tensors.iter().filter(|report| report.class == class);
        own().next()?;
        let measured = || own().filter_map(|report| Some((report, report.figures.as_ref()?)));
        let largest =
            |value: fn(&Figures) -> f64| measured().map(|(_, figures)| value(figures)).reduce(f64::max);
        let counts = counts(own());
        let verdict = match counts {
            Counts { failed: 1.., .. } => Verdict::Fail,
            Counts { compared: 0, .. } => Verdict::Inconclusive,
            _ => Verdict::Pass,
        };
        let worst = measured()
            .filter(|(_, figures)| figures.max_abs > 0.0)
            .max_by(|left, right| left.1.max_abs.total_cmp(&right.1.max_abs));
        Some(ClassSummary {
            class,
            verdict,
            counts,
            max_abs: largest(|figures| figures.max_abs),
            max_rel: largest(|figures| figures.max_rel),
            max_ulp: measured().map(|(_, figures)| figures.max_ulp).max(),
            min_cosine: measured().filter_map(|(_, figures)| figures.cosine).reduce(f64::min),
            worst_tensor: worst.map(|(report, _)| report.label()),
            non_finite: measured().filter(|(_, figures)| figures.first_non_finite.is_some()).count(),
        })
    };
    Class::ALL.into_iter().filter_map(summary).collect()
}
