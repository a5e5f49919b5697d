//! Rows as a benchmark record for the history.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::row::Row;
use crate::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, BenchmarkSpec,
    BenchmarkSuiteRun, SCHEMA_VERSION, Verdict,
};
use crate::runner::new_run_id;

/// The suite that rows are kept under.
const SUITE: &str = "microbench";

/// One record of all rows, with a metric for each that was measured.
#[must_use]
pub fn suite_run(rows: &[Row], start_time: Timestamp, end_time: Timestamp) -> BenchmarkSuiteRun {
    let metrics: Vec<BenchmarkMetric> = rows.iter().flat_map(metrics).collect();
    let skipped = rows.iter().filter(|row| row.verdict == "SKIPPED");
    let warnings = skipped.map(|row| {
        format!(
            "{} {}x{}x{} skipped: {}",
            row.quantization,
            row.m,
            row.k,
            row.n,
            row.reason.as_deref().unwrap_or("no reason")
        )
    });
    let on_cpu = rows.iter().all(|row| row.device == "cpu");
    let component = if on_cpu { BenchmarkComponent::Cpu } else { BenchmarkComponent::Gpu };
    let verdict = if metrics.is_empty() { Verdict::Skipped } else { Verdict::Pass };
    let result = BenchmarkRunResult {
        spec: BenchmarkSpec {
            id: BenchmarkId::new(SUITE, "quantization"),
            components: vec![component],
            kind: BenchmarkKind::Synthetic,
            description: Some("quantized layers run by `warpt microbench`".to_owned()),
            default_duration_seconds: None,
            external_tool: None,
            params: None,
        },
        success: !metrics.is_empty(),
        error_message: metrics.is_empty().then(|| "no row could be measured here".to_owned()),
        metrics,
        start_time,
        end_time,
        system: Some(warpforge_inventory::list()),
        verdict: Some(verdict),
        conditions: None,
        warnings: warnings.collect(),
        beside: Vec::new(),
    };
    BenchmarkSuiteRun {
        schema_version: SCHEMA_VERSION,
        run_id: new_run_id(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: SUITE.to_owned(),
        components: vec![component],
        benchmarks: vec![result],
        metadata: None,
        timeline: Vec::new(),
    }
}

/// The metrics of a row: in training of each pass, and of both together.
fn metrics(row: &Row) -> Vec<BenchmarkMetric> {
    let tags = BTreeMap::from([
        ("name".to_owned(), row.name.clone()),
        ("quantization".to_owned(), row.quantization.clone()),
        ("shape".to_owned(), format!("{}x{}x{}", row.m, row.k, row.n)),
        ("model_type".to_owned(), row.model_type.clone()),
        ("dtype".to_owned(), row.high_precision_dtype.clone()),
        ("device".to_owned(), row.device.clone()),
    ]);
    let metric = |name: &str, unit: &str, samples: Vec<f64>| {
        BenchmarkMetric::from_rounds(name, unit, false, tags.clone(), &[samples])
    };
    let both: Vec<f64> = row.times_ms.iter().zip(&row.backward_ms).map(|(a, b)| a + b).collect();
    let times = match row.backward_ms.is_empty() {
        true => vec![metric("latency", "ms", row.times_ms.clone())],
        false => vec![
            metric("forward", "ms", row.times_ms.clone()),
            metric("backward", "ms", row.backward_ms.clone()),
            metric("total", "ms", both),
        ],
    };
    let energy = row.joules.and_then(|joules| metric("energy", "J", vec![joules]));
    times.into_iter().flatten().chain(energy).collect()
}
