//! A validation as JUnit XML, which build servers show: a test suite a class, a test case a tensor.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use warpforge_golden::report::{Operation, Status, TensorReport};
use warpforge_golden::{Class, Validation};

use super::{first_operation, kinds, max_abs, non_finite, number, operation_label, share, tolerance};
use crate::RenderError;

/// Renders a validation as JUnit XML. What is missing, extra or ignored without being a mismatch is skipped, since it
/// is no pass.
///
/// # Errors
/// If the XML writer fails.
pub fn junit(validation: &Validation) -> Result<String, RenderError> {
    let mut suites: BTreeMap<Class, TestSuite> = BTreeMap::new();
    for report in &validation.tensors {
        let operation = validation.operations.iter().find(|operation| shows(operation, report));
        let mut case = TestCase::new(report.label(), status(report, operation));
        case.set_classname(report.class.name());
        suites.entry(report.class).or_insert_with(|| TestSuite::new(report.class.name())).add_test_case(case);
    }
    let mut xml = Report::new("warpt validate");
    xml.add_test_suites(suites.into_values());
    Ok(xml.to_string()?)
}

/// Whether an operation was found by this tensor.
fn shows(operation: &Operation, report: &TensorReport) -> bool {
    operation.tensor == report.name && operation.class == report.class && operation.step == report.step
}

fn status(report: &TensorReport, operation: Option<&Operation>) -> TestCaseStatus {
    if report.failed {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type(report.status.to_string()).set_message(message(report));
        if let Some(operation) = operation {
            let lines = [vec![operation_label(operation)], first_operation(operation)].concat();
            status.set_description(lines.join("\n"));
        }
        return status;
    }
    match report.status {
        Status::Missing | Status::Extra | Status::Ignored | Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(report.reason.clone().unwrap_or_else(|| report.status.to_string()));
            status
        }
        _ => TestCaseStatus::success(),
    }
}

fn message(report: &TensorReport) -> String {
    let mut message = format!("{}: {}", report.status, kinds(report));
    if let Some(figures) = &report.figures {
        message += &format!(
            "; {} elements out of tolerance ({}), max abs {}, max rel {}, {} ULP",
            share(figures),
            tolerance(report),
            max_abs(figures),
            number(figures.max_rel),
            figures.max_ulp
        );
        if let Some(odd) = non_finite(figures) {
            message += &format!("; {odd}");
        } else if let Some(worst) = &figures.worst {
            message += &format!(
                "; worst at {:?}: golden {}, candidate {}",
                worst.index, worst.golden, worst.candidate
            );
        }
    }
    message
}
