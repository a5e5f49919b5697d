//! A comparison as a Markdown page.

use std::fmt::Write as _;

use warpforge_bench::compare::Comparison;

use super::{not_compared, run_label, summary, table};
use crate::table::escape;

/// Renders a comparison as Markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = format!(
        "## Benchmark comparison: {}\n\n{}\n\n- before: {}\n- after: {}\n\n",
        comparison.verdict,
        escape(&summary(comparison)),
        escape(&run_label(&comparison.before)),
        escape(&run_label(&comparison.after)),
    );
    let table = table(comparison);
    if !table.is_empty() {
        out += &table.to_markdown();
        out.push('\n');
    }
    let mut section = |title: &str, items: Vec<String>| {
        if items.is_empty() {
            return;
        }
        let list: String = items.iter().map(|item| format!("- {}\n", escape(item))).collect();
        write!(out, "### {title}\n\n{list}\n").expect("writing to a string cannot fail");
    };
    section(
        "Failing now",
        comparison
            .broken
            .iter()
            .map(|b| format!("{}: {}", b.benchmark, b.error_message.as_deref().unwrap_or("no reason given")))
            .collect(),
    );
    section("Not compared", not_compared(comparison));
    section("Warnings", comparison.warnings.clone());
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
