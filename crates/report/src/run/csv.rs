//! A run as comma-separated values.

use warpforge_bench::record::{BenchmarkSuiteRun, Spread};

use super::verdict;
use crate::RenderError;
use crate::table::{Align, Style, Table};

const HEADER: [&str; 16] = [
    "suite",
    "benchmark",
    "metric",
    "tags",
    "value",
    "unit",
    "higher_is_better",
    "ci_low",
    "ci_high",
    "confidence",
    "mad",
    "min",
    "max",
    "samples",
    "rounds",
    "verdict",
];

/// Renders a run as CSV, a row a metric; tags are `name=value` joined by semicolons, what is unknown is empty. The metrics
/// of a peer have the tag `beside`.
///
/// # Errors
/// If the CSV writer fails.
pub fn csv(run: &BenchmarkSuiteRun) -> Result<String, RenderError> {
    let mut table = Table::new(&HEADER.map(|name| (name, Align::Left)));
    for result in &run.benchmarks {
        let own = result.metrics.iter().map(|metric| (None, metric, verdict(result)));
        let peers = result.beside.iter().flat_map(|peer| {
            let row = move |metric| (Some(&peer.peer), metric, peer.verdict.to_string());
            peer.metrics.iter().map(row)
        });
        for (peer, metric, verdict) in own.chain(peers) {
            let spread = metric.statistics.as_ref().map(|statistics| statistics.spread);
            let number = |get: fn(Spread) -> f64| spread.map(|s| get(s).to_string()).unwrap_or_default();
            let tags = metric.tags.iter().flatten().map(|(name, value)| format!("{name}={value}"));
            let tags = tags.chain(peer.map(|peer| format!("beside={peer}")));
            let cells: [String; HEADER.len()] = [
                result.spec.id.suite.clone(),
                result.spec.id.name.clone(),
                metric.name.clone(),
                tags.collect::<Vec<_>>().join(";"),
                metric.value.to_string(),
                metric.unit.clone(),
                metric.higher_is_better.to_string(),
                number(|s| s.ci_low),
                number(|s| s.ci_high),
                number(|s| s.confidence),
                number(|s| s.mad),
                number(|s| s.min),
                number(|s| s.max),
                spread.map(|s| s.sample_count.to_string()).unwrap_or_default(),
                spread.map(|s| s.round_count.to_string()).unwrap_or_default(),
                verdict,
            ];
            table.row(Style::Plain, cells);
        }
    }
    table.to_csv()
}
