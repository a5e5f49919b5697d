//! A run as comma-separated values.

use warpforge_bench::record::{BenchmarkSuiteRun, Spread};

use super::verdict;
use crate::RenderError;

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

/// Renders a run as CSV, a row a metric; tags are `name=value` joined by semicolons, what is unknown is empty.
///
/// # Errors
/// If the CSV writer fails.
pub fn csv(run: &BenchmarkSuiteRun) -> Result<String, RenderError> {
    let failed = |error: csv::Error| RenderError::Csv(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).map_err(failed)?;
    for result in &run.benchmarks {
        for metric in &result.metrics {
            let spread = metric.statistics.as_ref().map(|statistics| statistics.spread);
            let number = |get: fn(Spread) -> f64| spread.map(|s| get(s).to_string()).unwrap_or_default();
            let tags = metric.tags.iter().flatten().map(|(name, value)| format!("{name}={value}"));
            let record: [String; HEADER.len()] = [
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
                verdict(result),
            ];
            writer.write_record(record).map_err(failed)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| RenderError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| RenderError::Csv(error.to_string()))
}
