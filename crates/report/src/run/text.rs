//! One run for a terminal: tables with the tags as columns.

use std::collections::BTreeSet;

use warpforge_bench::record::{BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun};

use super::{style, verdict};
use crate::number::{bytes, significant};
use crate::screen::Screen;
use crate::table::{Align, Style, Table};

/// The tag that says how much of the machine took part; its values stand side by side.
const SCOPE: &str = "scope";

/// Says the same as the scope in another way.
const THREADS: &str = "threads";

/// What is about a benchmark stands under its heading.
const INDENT: usize = 2;

/// Renders a run for a terminal.
#[must_use]
pub fn text(run: &BenchmarkSuiteRun, screen: Screen) -> String {
    run.benchmarks.iter().map(|result| benchmark(result, screen)).collect::<Vec<_>>().join("\n")
}

fn benchmark(result: &BenchmarkRunResult, screen: Screen) -> String {
    let mut heading = format!("{}  {}", result.spec.id, verdict(result));
    if let Some(message) = &result.error_message {
        heading += &format!(": {message}");
    }
    let mut out = screen.line(style(result), INDENT, &heading);
    let beside = super::beside::table(std::iter::once(result));
    let tables = groups(&result.metrics).into_iter().map(|group| table(&group)).chain(beside);
    for table in tables {
        for line in table.to_text(screen.indented(INDENT)).lines() {
            let indent = if line.is_empty() { 0 } else { INDENT };
            out += &format!("{:indent$}{line}\n", "");
        }
    }
    for warning in &result.warnings {
        out += &screen.line(Style::Bad, INDENT, &format!("  ! {warning}"));
    }
    out
}

/// Metrics that have the same tags, if not the same values of them, in the order in which they first come.
fn groups(metrics: &[BenchmarkMetric]) -> Vec<Vec<&BenchmarkMetric>> {
    let names =
        |metric: &BenchmarkMetric| metric.tags.iter().flat_map(|t| t.keys().cloned()).collect::<Vec<_>>();
    let mut groups: Vec<Vec<&BenchmarkMetric>> = Vec::new();
    for metric in metrics {
        match groups.iter_mut().find(|group| names(group[0]) == names(metric)) {
            Some(group) => group.push(metric),
            None => groups.push(vec![metric]),
        }
    }
    groups
}

/// A row for each combination of tags. What stands side by side is the scopes, or else the metrics.
fn table(metrics: &[&BenchmarkMetric]) -> Table {
    let by_scope = metrics.iter().any(|metric| !tag(metric, SCOPE).is_empty());
    let column =
        |metric: &BenchmarkMetric| if by_scope { tag(metric, SCOPE).to_owned() } else { quantity(metric) };
    let mut columns = ordered(metrics.iter().map(|metric| column(metric)));
    // One core before all of them, whichever was measured first.
    columns.sort_by_key(|name| by_scope && name.starts_with("all"));
    let tags: Vec<&str> = metrics[0]
        .tags
        .iter()
        .flat_map(|tags| tags.keys().map(String::as_str))
        .filter(|name| ![SCOPE, THREADS].contains(name))
        .collect();

    let label = |metric: &BenchmarkMetric| {
        let name = by_scope.then(|| quantity(metric));
        let cells = tags.iter().map(|name| tag_text(name, tag(metric, name)));
        name.into_iter().chain(cells).collect::<Vec<_>>()
    };
    let headings = by_scope.then_some("metric").into_iter().chain(tags.iter().copied());
    let headings = headings.map(|name| (name.replace('_', " "), Align::Left));
    let values = columns.iter().map(|name| (name.replace('_', " "), Align::Right));
    let mut table = Table::new(&headings.chain(values).collect::<Vec<_>>());
    for row in ordered(metrics.iter().map(|metric| label(metric))) {
        let cells = columns.iter().map(|name| {
            let here = metrics.iter().find(|metric| column(metric) == *name && label(metric) == row);
            here.map(|metric| value(metric)).unwrap_or_default()
        });
        table.row(Style::Plain, row.iter().cloned().chain(cells));
    }
    table
}

/// The metric with its unit.
fn quantity(metric: &BenchmarkMetric) -> String {
    let name = metric.name.replace("99_9", "99.9").replace('_', " ");
    // Where the name is the unit, the unit alone says it.
    let same = metric.unit.to_lowercase().replace("/s", "s") == metric.name;
    if same { metric.unit.clone() } else { format!("{name} {}", metric.unit) }
}

/// Each different one, in the order in which they first come.
fn ordered<T: Ord + Clone>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
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

/// The value with half the width of its interval, as a share; with its range where samples are too few for an interval.
fn value(metric: &BenchmarkMetric) -> String {
    let number = significant(metric.value, 4);
    let Some(spread) = metric.statistics.as_ref().map(|statistics| &statistics.spread) else { return number };
    match spread.interval() {
        // Nothing is known of the spread of one sample.
        None if spread.sample_count < 2 => format!("{number} ±?"),
        None => format!("{number} ({})", super::interval(spread.min, spread.max)),
        Some(interval) if metric.value != 0.0 => {
            format!("{number} ±{:.1} %", interval.width() / 2.0 / metric.value.abs() * 100.0)
        }
        Some(_) => number,
    }
}
