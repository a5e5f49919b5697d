//! A validation for the terminal.

use warpforge_golden::Validation;

use super::{
    bisection, cause, classes, differences, distances, failed, failures, first_operation, first_title, more,
    notes, operation_label, operations, run_label, style, summary,
};
use crate::screen::Screen;
use crate::table::{Style, Table};

/// Renders a validation for a terminal.
#[must_use]
pub fn text(validation: &Validation, screen: Screen) -> String {
    let mut page = Page { out: String::new(), screen };
    page.out += &screen.labelled("golden     ", &run_label(&validation.golden));
    page.out += &screen.labelled("candidate  ", &run_label(&validation.candidate));
    if let Some(reference) = &validation.reference {
        page.out += &screen.labelled("reference  ", &run_label(reference));
    }
    if let Some(model) = &validation.model {
        page.out += &screen.labelled("model      ", model);
    }
    page.table("", &classes(validation), None);
    if let Some(first) = &validation.first_operation {
        page.line(Style::Plain, "");
        page.line(Style::Bad, &format!("{}: {}", first_title(first), operation_label(first)));
        for line in first_operation(first).into_iter().chain(validation.cause.iter().map(cause)) {
            page.line(Style::Plain, &format!("  {line}"));
        }
        for line in validation.bisection.iter().flat_map(bisection) {
            page.line(Style::Plain, &format!("  {line}"));
        }
        if let Some(figures) = &first.figures {
            page.table("", &differences(figures), None);
            page.table("", &distances(figures), None);
        }
    }
    if let Some(reason) = &validation.first_operation_unknown {
        page.line(Style::Plain, "");
        page.line(Style::Plain, &format!("first operation out of tolerance: unknown, {reason}"));
    }
    if validation.operations.len() > 1 {
        let rest = more(validation.operations.len());
        page.table("operations out of tolerance, in execution order", &operations(validation), rest);
    }
    page.table("tensors that do not match", &failures(validation), more(failed(validation).count()));
    let notes = notes(validation);
    if !notes.is_empty() {
        page.line(Style::Plain, "");
    }
    for note in notes {
        page.line(Style::Faint, &note);
    }
    page.line(Style::Plain, "");
    page.line(style(validation.verdict), &format!("{}: {}", validation.verdict, summary(validation)));
    page.out
}

struct Page {
    out: String,
    screen: Screen,
}

impl Page {
    /// A line; what would command the terminal becomes a space.
    fn line(&mut self, style: Style, text: &str) {
        self.out += &self.screen.line(style, 2, text);
    }

    /// A table under its title, with an empty line before it; nothing where it has no rows.
    fn table(&mut self, title: &str, table: &Table, rest: Option<String>) {
        if table.is_empty() {
            return;
        }
        self.out.push('\n');
        if !title.is_empty() {
            self.line(Style::Plain, title);
        }
        self.out += &table.to_text(self.screen);
        if let Some(rest) = rest {
            self.line(Style::Faint, &rest);
        }
    }
}
