//! The result of a run for people.

use std::fmt::Write as _;

use warpforge_bench::record::{BenchmarkMetric, BenchmarkRunResult, BenchmarkSuiteRun, Verdict};
use warpforge_bench::selection::Selection;

/// What would run.
pub(super) fn plan(selection: &Selection, rounds: u32, duration: Option<f64>) -> String {
    let mut out = String::new();
    for chosen in &selection.chosen {
        let spec = &chosen.spec;
        let seconds = duration.or(spec.default_duration_seconds.map(f64::from));
        let how_long = match (chosen.benchmark, seconds) {
            (None, _) => "not part of this version".to_owned(),
            (_, Some(seconds)) => format!("{seconds} s in {rounds} rounds"),
            (_, None) => format!("{rounds} rounds"),
        };
        let _ = writeln!(out, "{:<24} {how_long}", spec.id.to_string());
        for (name, value) in spec.params.iter().flatten() {
            let _ = writeln!(out, "    {name} = {value}");
        }
    }
    out
}

/// What a run gave.
pub(super) fn text(run: &BenchmarkSuiteRun) -> String {
    let mut out = String::new();
    for result in &run.benchmarks {
        let _ = writeln!(out, "{}  {}", result.spec.id, verdict(result));
        let width = result.metrics.iter().map(|metric| label(metric).chars().count()).max().unwrap_or(0);
        for metric in &result.metrics {
            let _ = writeln!(out, "  {:<width$}  {}", label(metric), value(metric));
        }
        for warning in &result.warnings {
            let _ = writeln!(out, "  ! {warning}");
        }
        out.push('\n');
    }
    out
}

fn verdict(result: &BenchmarkRunResult) -> String {
    let verdict = result.verdict.unwrap_or(if result.success { Verdict::Pass } else { Verdict::Fail });
    match &result.error_message {
        Some(message) => format!("{verdict}: {message}"),
        None => verdict.to_string(),
    }
}

fn label(metric: &BenchmarkMetric) -> String {
    let tags = metric.tags.iter().flatten().map(|(_, value)| value.as_str());
    std::iter::once(metric.name.as_str()).chain(tags).collect::<Vec<_>>().join(" ")
}

fn value(metric: &BenchmarkMetric) -> String {
    let mut text = format!("{:>10.2} {}", metric.value, metric.unit);
    if let Some(statistics) = &metric.statistics {
        let _ = write!(text, "  [{:.2}, {:.2}]", statistics.ci_low, statistics.ci_high);
    }
    text
}
