//! A comparison for the terminal.

use warpforge_bench::compare::Comparison;

use super::{not_compared, run_label, style, summary, table};
use crate::screen::Screen;
use crate::table::Style;

/// Renders a comparison for a terminal.
#[must_use]
pub fn text(comparison: &Comparison, screen: Screen) -> String {
    let mut out = String::new();
    for (name, run) in [("before  ", &comparison.before), ("after   ", &comparison.after)] {
        out += &screen.labelled(name, &run_label(run));
    }
    out.push('\n');
    let table = table(comparison);
    if !table.is_empty() {
        out += &table.to_text(screen);
        out.push('\n');
    }
    let mut line = |style: Style, text: String| out += &screen.line(style, 2, &text);
    for broken in &comparison.broken {
        let message = broken.error_message.as_deref().unwrap_or("no reason given");
        line(Style::Bad, format!("fails now: {}: {message}", broken.benchmark));
    }
    for text in not_compared(comparison) {
        line(Style::Faint, text);
    }
    for warning in &comparison.warnings {
        line(Style::Plain, format!("warning: {warning}"));
    }
    let verdict = comparison.verdict.name().to_uppercase();
    line(style(comparison.verdict), format!("{verdict}: {}", summary(comparison)));
    out
}
