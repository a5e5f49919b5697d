//! The result of one run: for a terminal, a Markdown page and a spreadsheet.

mod beside;
mod csv;
mod text;

pub use csv::csv;
pub use text::text;

use warpforge_bench::record::{BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun, Spread, Verdict};

use crate::number::{significant, with_unit};
use crate::table::{Align, Style, Table, escape};

/// The metrics of a run, a row each; benchmarks without any have a row that says why.
#[must_use]
pub fn table(run: &BenchmarkSuiteRun) -> Table {
    let mut table = Table::new(&[
        ("benchmark", Align::Left),
        ("metric", Align::Left),
        ("value", Align::Right),
        ("95 % interval", Align::Right),
        ("samples", Align::Right),
        ("verdict", Align::Left),
    ]);
    for result in &run.benchmarks {
        let id = result.spec.id.to_string();
        for metric in &result.metrics {
            let statistics = metric.statistics.as_ref();
            let cells = [
                id.clone(),
                label(metric),
                with_unit(metric.value, &metric.unit),
                statistics.map(|statistics| spread(&statistics.spread)).unwrap_or_default(),
                statistics
                    .map(|s| format!("{} in {}", s.spread.sample_count, s.spread.round_count))
                    .unwrap_or_default(),
                verdict(result),
            ];
            table.row(style(result), cells);
        }
        if result.metrics.is_empty() {
            let reason = result.error_message.as_deref().unwrap_or("no metrics");
            let empty = String::new;
            table.row(
                style(result),
                [id, empty(), empty(), empty(), empty(), format!("{}: {reason}", verdict(result))],
            );
        }
    }
    table
}

/// Renders a run as Markdown.
#[must_use]
pub fn markdown(run: &BenchmarkSuiteRun) -> String {
    let mut page = format!("## Benchmark run: {}\n\n", escape(&run.suite));
    if !run.run_id.is_empty() {
        page += &format!("Run {}, warpt {}\n\n", escape(&run.run_id), escape(&run.tool_version));
    }
    page += &table(run).to_markdown();
    if let Some(beside) = beside::table(run.benchmarks.iter()) {
        page += &format!("\n### Beside other programs\n\n{}", beside.to_markdown());
    }
    let warnings: Vec<String> = run
        .benchmarks
        .iter()
        .flat_map(|result| result.warnings.iter().map(|text| format!("- {}: {text}\n", result.spec.id)))
        .map(|line| escape(line.trim_end()) + "\n")
        .collect();
    if !warnings.is_empty() {
        page += &format!("\n### Warnings\n\n{}", warnings.concat());
    }
    page
}

fn label(metric: &BenchmarkMetric) -> String {
    let tags = metric.tags.iter().flat_map(|tags| tags.values());
    std::iter::once(&metric.name).chain(tags).cloned().collect::<Vec<_>>().join(" ")
}

/// The interval of the value, or the range of samples that are too few for one.
fn spread(spread: &Spread) -> String {
    match spread.interval() {
        Some(found) => interval(found.low, found.high),
        None if spread.sample_count < 2 => "?".to_owned(),
        None => format!("range {}", interval(spread.min, spread.max)),
    }
}

fn interval(low: f64, high: f64) -> String {
    format!("{} to {}", significant(low, 4), significant(high, 4))
}

/// The verdict of the record, or what its `success` says where another tool made it.
fn verdict(result: &BenchmarkRunResult) -> String {
    let fallback = if result.success { Verdict::Pass } else { Verdict::Fail };
    result.verdict.unwrap_or(fallback).to_string()
}

fn style(result: &BenchmarkRunResult) -> Style {
    match result.verdict {
        Some(Verdict::Fail) => Style::Bad,
        Some(Verdict::Skipped | Verdict::Inconclusive) => Style::Faint,
        _ if !result.success => Style::Bad,
        _ => Style::Plain,
    }
}

#[cfg(test)]
mod tests;
