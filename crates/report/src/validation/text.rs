//! A validation for the terminal.

use warpforge_golden::Validation;

use super::{
    classes, differences, distances, failed, failures, first_operation, more, notes, operation_label,
    operations, run_label, style, summary,
};
use crate::table::{Style, Table};

/// Renders a validation for a terminal.
#[must_use]
pub fn text(validation: &Validation, colour: bool) -> String {
    let mut page = Page { out: String::new(), colour };
    page.line(Style::Plain, &format!("golden     {}", run_label(&validation.golden)));
    page.line(Style::Plain, &format!("candidate  {}", run_label(&validation.candidate)));
    if let Some(reference) = &validation.reference {
        page.line(Style::Plain, &format!("reference  {}", run_label(reference)));
    }
    if let Some(model) = &validation.model {
        page.line(Style::Plain, &format!("model      {model}"));
    }
    page.table("", &classes(validation), None);
    if let Some(first) = &validation.first_operation {
        page.line(Style::Plain, "");
        page.line(Style::Bad, &format!("first operation out of tolerance: {}", operation_label(first)));
        for line in first_operation(first) {
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
    colour: bool,
}

impl Page {
    /// A line; what would command the terminal becomes a space.
    fn line(&mut self, style: Style, text: &str) {
        let clean = text.replace(|c: char| c.is_control(), " ");
        self.out += &if self.colour && !clean.is_empty() { style.paint(&clean) } else { clean };
        self.out.push('\n');
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
        self.out += &table.to_text(self.colour);
        if let Some(rest) = rest {
            self.line(Style::Faint, &rest);
        }
    }
}
