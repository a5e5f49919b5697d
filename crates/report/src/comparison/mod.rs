//! How two runs compare: for a terminal, a Markdown page, and tools that read JUnit.

mod junit;
mod markdown;
mod text;

pub use junit::junit;
pub use markdown::markdown;
pub use text::text;

use warpforge_bench::compare::{Change, Comparison, MetricComparison, RunLabel, Side, Unmatched};
use warpforge_bench::record::BenchmarkId;

use crate::number::{percent, percent_interval, significant, with_unit};
use crate::table::{Align, Style, Table};

/// One row a metric, the changed ones first.
fn table(comparison: &Comparison) -> Table {
    let mut table = Table::new(&[
        ("benchmark", Align::Left),
        ("metric", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("95 % interval", Align::Right),
        ("verdict", Align::Left),
    ]);
    for metric in in_order(comparison) {
        let verdict = match &metric.note {
            Some(note) => format!("{}: {note}", metric.verdict),
            None => metric.verdict.to_string(),
        };
        let cells = [
            metric.benchmark.to_string(),
            metric.label(),
            significant(metric.before, 4),
            with_unit(metric.after, &metric.unit),
            change(metric),
            interval(metric),
            verdict,
        ];
        table.row(style(metric.verdict), cells);
    }
    table
}

fn in_order(comparison: &Comparison) -> impl Iterator<Item = &MetricComparison> {
    const ORDER: [Change; 4] = [Change::Regressed, Change::Improved, Change::Inconclusive, Change::Unchanged];
    ORDER.into_iter().flat_map(|verdict| comparison.metrics.iter().filter(move |m| m.verdict == verdict))
}

/// The change from one value to the other, and the one that was judged where that is another.
pub(super) fn change(metric: &MetricComparison) -> String {
    /// Changes that are the same to so many points look the same.
    const SAME: f64 = 0.1;
    match (metric.values_change_percent, metric.change_percent) {
        (Some(values), Some(judged)) if (values - judged).abs() > SAME => {
            let why = if metric.speed_adjusted { "at equal core speed" } else { "by the rounds" };
            format!("{}, {why} {}", percent(values), percent(judged))
        }
        (_, judged) => judged.map(percent).unwrap_or_default(),
    }
}

fn interval(metric: &MetricComparison) -> String {
    match (metric.ci_low_percent, metric.ci_high_percent) {
        (Some(low), Some(high)) => percent_interval(low, high),
        _ => "unknown".to_owned(),
    }
}

fn style(verdict: Change) -> Style {
    match verdict {
        Change::Improved => Style::Good,
        Change::Regressed => Style::Bad,
        Change::Unchanged => Style::Plain,
        Change::Inconclusive => Style::Faint,
    }
}

/// What the whole came to, in a line.
fn summary(comparison: &Comparison) -> String {
    if comparison.metrics.is_empty() && comparison.broken.is_empty() {
        return "the runs have no metric in common".to_owned();
    }
    let counts = comparison.counts;
    let mut parts = vec![
        format!("{} regressed", counts.regressed),
        format!("{} improved", counts.improved),
        format!("{} unchanged", counts.unchanged),
        format!("{} inconclusive", counts.inconclusive),
    ];
    if !comparison.broken.is_empty() {
        parts.insert(0, format!("{} benchmarks fail now", comparison.broken.len()));
    }
    format!("{} (changes up to {} % do not count)", parts.join(", "), comparison.noise_threshold_percent)
}

fn run_label(label: &RunLabel) -> String {
    let id = if label.run_id.is_empty() { "no id" } else { &label.run_id };
    let tool = match label.tool_version.as_str() {
        "" => "another tool".to_owned(),
        version => format!("warpt {version}"),
    };
    let time = label.start_time.map(|time| format!(", {time:.0}")).unwrap_or_default();
    format!("{} {id} ({tool}{time})", label.suite)
}

/// What has no counterpart, a line for all metrics of a benchmark that lack theirs for the same reason.
fn not_compared(comparison: &Comparison) -> Vec<String> {
    /// Metrics of a benchmark that are named.
    const NAMED: usize = 3;
    let mut groups: Vec<(&BenchmarkId, String, Vec<String>)> = Vec::new();
    for metric in &comparison.unmatched {
        let reason = missing(metric);
        let known = groups.iter_mut().find(|(id, known, _)| **id == metric.benchmark && *known == reason);
        match known {
            Some((_, _, labels)) => labels.push(metric.label()),
            None => groups.push((&metric.benchmark, reason, vec![metric.label()])),
        }
    }
    let line = |(id, reason, labels): &(&BenchmarkId, String, Vec<String>)| match labels.len() {
        count if count > NAMED => format!("{id}: {count} metrics {reason}"),
        _ => format!("{id} {}: {reason}", labels.join(", ")),
    };
    groups.iter().map(line).collect()
}

fn missing(metric: &Unmatched) -> String {
    let place = match metric.only_in {
        Side::Before => "only in the earlier run",
        Side::After => "only in the later run, so without a baseline",
    };
    let reason = metric.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{place}{reason}")
}

#[cfg(test)]
mod tests;
