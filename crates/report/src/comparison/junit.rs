//! A comparison as JUnit XML, which build servers show: a test suite a benchmark, a test case a metric.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use warpforge_bench::compare::{Change, Comparison, MetricComparison};

use super::{interval, missing};
use crate::RenderError;
use crate::number::{percent, significant, with_unit};

/// Renders a comparison as JUnit XML. A regression is a failure, a benchmark that fails now an error; what is
/// inconclusive or has no counterpart is skipped, since it is no pass.
///
/// # Errors
/// If the XML writer fails.
pub fn junit(comparison: &Comparison) -> Result<String, RenderError> {
    let mut suites: BTreeMap<String, Vec<TestCase>> = BTreeMap::new();
    let mut add = |benchmark: String, name: String, status: TestCaseStatus| {
        let mut case = TestCase::new(name, status);
        case.set_classname(benchmark.clone());
        suites.entry(benchmark).or_default().push(case);
    };
    for metric in &comparison.metrics {
        add(metric.benchmark.to_string(), metric.label(), status(metric));
    }
    for metric in &comparison.unmatched {
        add(metric.benchmark.to_string(), metric.label(), skipped(missing(metric)));
    }
    for broken in &comparison.broken {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(broken.error_message.clone().unwrap_or_else(|| "no reason given".to_owned()));
        add(broken.benchmark.to_string(), "runs".to_owned(), status);
    }
    let mut report = Report::new("warpt benchmark compare");
    for (name, cases) in suites {
        let mut suite = TestSuite::new(name);
        suite.add_test_cases(cases);
        report.add_test_suite(suite);
    }
    Ok(report.to_string()?)
}

fn status(metric: &MetricComparison) -> TestCaseStatus {
    let note = metric.note.as_deref().unwrap_or("the samples do not tell");
    match metric.verdict {
        Change::Improved | Change::Unchanged => TestCaseStatus::success(),
        Change::Inconclusive => skipped(format!("inconclusive: {note}")),
        Change::Regressed => {
            let change = metric.change_percent.map(percent).unwrap_or_default();
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("regressed").set_message(format!(
                "{} to {}, {change} (95 % interval {})",
                significant(metric.before, 4),
                with_unit(metric.after, &metric.unit),
                interval(metric)
            ));
            status
        }
    }
}

fn skipped(message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}
