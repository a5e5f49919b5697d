//! One run for a terminal: a table a benchmark, with its tags as columns.

use std::collections::BTreeSet;

use warpforge_bench::record::{BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun};

use super::{style, verdict};
use crate::number::{bytes, significant};
use crate::table::{Align, Style, Table};

/// The tag that says how much of the machine took part; its values stand side by side.
const SCOPE: &str = "scope";

/// Says the same as the scope in another way.
const THREADS: &str = "threads";

/// Renders a run for a terminal.
#[must_use]
pub fn text(run: &BenchmarkSuiteRun, colour: bool) -> String {
    run.benchmarks.iter().map(|result| benchmark(result, colour)).collect::<Vec<_>>().join("\n")
}

fn benchmark(result: &BenchmarkRunResult, colour: bool) -> String {
    let mut heading = format!("{}  {}", result.spec.id, verdict(result));
    if let Some(message) = &result.error_message {
        heading += &format!(": {message}");
    }
    let mut out = if colour { style(result).paint(&heading) } else { heading } + "\n";
    if !result.metrics.is_empty() {
        for line in metrics_table(&result.metrics).to_text(colour).lines() {
            out += &format!("  {line}\n");
        }
    }
    for warning in &result.warnings {
        let line = format!("! {warning}");
        out += &format!("  {}\n", if colour { Style::Bad.paint(&line) } else { line });
    }
    out
}

/// A row for each metric and combination of tags, a column for each scope.
fn metrics_table(metrics: &[BenchmarkMetric]) -> Table {
    let tags: Vec<&str> =
        ordered(metrics.iter().flat_map(|m| m.tags.iter().flatten().map(|(name, _)| name.as_str())));
    let scopes: Vec<&str> = ordered(metrics.iter().map(|metric| tag(metric, SCOPE)));
    let tags: Vec<&str> = tags.into_iter().filter(|name| ![SCOPE, THREADS].contains(name)).collect();

    let mut columns: Vec<(String, Align)> = vec![("metric".to_owned(), Align::Left)];
    columns.extend(tags.iter().map(|name| (name.replace('_', " "), Align::Left)));
    columns.extend(scopes.iter().map(|scope| match *scope {
        "" => ("value".to_owned(), Align::Right),
        scope => (scope.replace('_', " "), Align::Right),
    }));
    columns.push(("unit".to_owned(), Align::Left));

    let mut table = Table::new(&columns);
    let row_of = |metric: &BenchmarkMetric| {
        let cells = tags.iter().map(|name| tag_text(name, tag(metric, name)));
        std::iter::once(metric.name.clone()).chain(cells).collect::<Vec<_>>()
    };
    let mut seen = BTreeSet::new();
    for metric in metrics {
        let row = row_of(metric);
        if !seen.insert(row.clone()) {
            continue;
        }
        let values = scopes.iter().map(|scope| {
            let same = metrics.iter().find(|other| tag(other, SCOPE) == *scope && row_of(other) == row);
            same.map(value).unwrap_or_default()
        });
        table.row(Style::Plain, row.iter().cloned().chain(values).chain([metric.unit.clone()]));
    }
    table
}

/// Each different one, in the order in which they first come.
fn ordered<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn tag<'a>(metric: &'a BenchmarkMetric, name: &str) -> &'a str {
    metric.tags.as_ref().and_then(|tags| tags.get(name)).map_or("", String::as_str)
}

fn tag_text(name: &str, value: &str) -> String {
    match value.parse() {
        Ok(count) if name.ends_with("_bytes") => bytes(count),
        _ => value.to_owned(),
    }
}

/// The value with half the width of its interval, as a share.
fn value(metric: &BenchmarkMetric) -> String {
    let number = significant(metric.value, 4);
    match &metric.statistics {
        Some(s) if metric.value != 0.0 => {
            format!("{number} ±{:.1} %", (s.ci_high - s.ci_low) / 2.0 / metric.value.abs() * 100.0)
        }
        _ => number,
    }
}
