//! A validation as a Markdown page, such as the summary of a GitHub step.

use warpforge_golden::Validation;

use super::{
    bisection, cause, classes, differences, failed, failures, first_operation, first_title, more, notes,
    operation_label, operations, run_label, summary,
};
use crate::table::{Table, escape};

/// Renders a validation as Markdown.
#[must_use]
pub fn markdown(validation: &Validation) -> String {
    let mut out = format!(
        "## Validation: {}\n\n{}\n\n- golden: {}\n- candidate: {}\n",
        validation.verdict,
        escape(&summary(validation)),
        escape(&run_label(&validation.golden)),
        escape(&run_label(&validation.candidate)),
    );
    if let Some(reference) = &validation.reference {
        out += &format!("- reference: {}\n", escape(&run_label(reference)));
    }
    if let Some(model) = &validation.model {
        out += &format!("- model: {}\n", escape(model));
    }
    section(&mut out, "", &classes(validation), None);
    if let Some(first) = &validation.first_operation {
        out += &format!(
            "\n### {}\n\n**{}**\n\n",
            capitalised(first_title(first)),
            escape(&operation_label(first))
        );
        let found = validation.cause.iter().map(cause).chain(validation.bisection.iter().flat_map(bisection));
        for line in first_operation(first).into_iter().chain(found) {
            out += &format!("- {}\n", escape(&line));
        }
        if let Some(figures) = &first.figures {
            section(&mut out, "", &differences(figures), None);
        }
    }
    if let Some(reason) = &validation.first_operation_unknown {
        out += &format!("\nThe first operation out of tolerance is unknown: {}.\n", escape(reason));
    }
    let operations = if validation.operations.len() > 1 { Some(operations(validation)) } else { None };
    if let Some(table) = operations {
        section(
            &mut out,
            "Operations out of tolerance, in execution order",
            &table,
            more(validation.operations.len()),
        );
    }
    section(&mut out, "Tensors that do not match", &failures(validation), more(failed(validation).count()));
    let notes = notes(validation);
    if !notes.is_empty() {
        out += "\n### Remarks\n\n";
        out.extend(notes.iter().map(|note| format!("- {}\n", escape(note))));
    }
    out
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn section(out: &mut String, title: &str, table: &Table, rest: Option<String>) {
    if table.is_empty() {
        return;
    }
    if !title.is_empty() {
        *out += &format!("\n### {title}\n");
    }
    *out += &format!("\n{}", table.to_markdown());
    if let Some(rest) = rest {
        *out += &format!("\n{}\n", escape(&rest));
    }
}
