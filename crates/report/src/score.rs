//! The score of a run.

use warpforge_bench::score::Score;

use crate::number::significant;
use crate::screen::Screen;
use crate::table::{Align, Style, Table};

/// The ratio of each benchmark, as a table.
#[must_use]
pub fn table(score: &Score) -> Table {
    let mut table =
        Table::new(&[("benchmark", Align::Left), ("ratio", Align::Right), ("metrics", Align::Right)]);
    for each in &score.benchmarks {
        let cells = [each.benchmark.to_string(), significant(each.value, 4), each.metrics.to_string()];
        table.row(Style::Plain, cells);
    }
    table
}

/// Renders a score for a terminal.
#[must_use]
pub fn text(score: &Score, baseline: &str, screen: Screen) -> String {
    let mut out = table(score).to_text(screen);
    out.push('\n');
    out += &screen.line(Style::Plain, 2, &summary(score, baseline));
    out
}

/// Renders a score as Markdown.
#[must_use]
pub fn markdown(score: &Score, baseline: &str) -> String {
    format!("{}\n{}\n", table(score).to_markdown(), summary(score, baseline))
}

fn summary(score: &Score, baseline: &str) -> String {
    let left_out = match score.unmatched.len() {
        0 => String::new(),
        count => format!("; {count} metrics are in one of the runs only and do not count"),
    };
    let (value, count) = (significant(score.value, 4), score.benchmarks.len());
    format!("score {value}: geometric mean of {count} benchmarks' ratios to {baseline}{left_out}")
}
