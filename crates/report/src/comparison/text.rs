//! A comparison for the terminal.

use std::fmt::Write as _;

use warpforge_bench::compare::Comparison;

use super::{missing, run_label, style, summary, table};
use crate::table::Style;

/// Renders a comparison for a terminal.
#[must_use]
pub fn text(comparison: &Comparison, colour: bool) -> String {
    let mut out =
        format!("before  {}\nafter   {}\n\n", run_label(&comparison.before), run_label(&comparison.after));
    let table = table(comparison);
    if !table.is_empty() {
        out += &table.to_text(colour);
        out.push('\n');
    }
    let mut line = |style: Style, text: String| {
        let text = text.replace(|c: char| c.is_control(), " ");
        let painted = if colour { style.paint(&text) } else { text };
        writeln!(out, "{painted}").expect("writing to a string cannot fail");
    };
    for broken in &comparison.broken {
        let message = broken.error_message.as_deref().unwrap_or("no reason given");
        line(Style::Bad, format!("fails now: {}: {message}", broken.benchmark));
    }
    for metric in &comparison.unmatched {
        line(Style::Faint, format!("{} {}: {}", metric.benchmark, metric.label(), missing(metric)));
    }
    for warning in &comparison.warnings {
        line(Style::Plain, format!("warning: {warning}"));
    }
    let verdict = comparison.verdict.name().to_uppercase();
    line(style(comparison.verdict), format!("{verdict}: {}", summary(comparison)));
    out
}
