//! Keeping the times of a run where those of benchmarks are, for `warpt benchmark history` and `compare`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use warpforge_bench::history::History;
use warpforge_bench::record::{
    self, BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, BenchmarkSpec,
    BenchmarkSuiteRun, ParamValue, Params, SCHEMA_VERSION, Verdict,
};
use warpforge_bench::runner::new_run_id;

use super::record::Record;
use super::sweep::Axis;
use crate::exit::Failure;
use crate::term;

/// The suite that runs of models are kept under.
const SUITE: &str = "run";

/// The options that keep times.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// Keep the times in the history: `warpt benchmark history` lists them, `warpt benchmark compare` compares them
    #[arg(long)]
    keep: bool,
    /// Write the times to this file as a record that `warpt benchmark compare` takes; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_file: Option<PathBuf>,
}

impl KeepArgs {
    /// The file for the times.
    pub(super) fn file(&self) -> Option<&Path> {
        self.export_file.as_deref()
    }

    /// Keeps the times wherever they are wanted.
    pub(super) fn keep(&self, records: &[Record], axes: &[Axis]) -> Result<(), Failure> {
        if !self.keep && self.export_file.is_none() {
            return Ok(());
        }
        let run = suite_run(records, axes);
        if let Some(path) = &self.export_file {
            record::write(path, &run)
                .map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))?;
        }
        if self.keep {
            History::open_default()
                .and_then(|mut history| history.save(&run))
                .map_err(Failure::not_possible)?;
            term::remark(&format!("kept in the history as {}", run.run_id));
        }
        Ok(())
    }
}

/// The records as a run of benchmarks, one a model.
fn suite_run(records: &[Record], axes: &[Axis]) -> BenchmarkSuiteRun {
    let system = warpforge_inventory::list();
    let benchmarks = records.chunk_by(|a, b| a.model == b.model);
    let benchmarks = benchmarks.map(|records| result(records, axes, system.clone())).collect::<Vec<_>>();
    let mut components: Vec<BenchmarkComponent> =
        benchmarks.iter().flat_map(|result| result.spec.components.iter().copied()).collect();
    components.dedup();
    BenchmarkSuiteRun {
        schema_version: SCHEMA_VERSION,
        run_id: new_run_id(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: SUITE.to_owned(),
        components,
        benchmarks,
        metadata: None,
        timeline: Vec::new(),
    }
}

/// The records of one model as one benchmark with a metric each.
fn result(records: &[Record], axes: &[Axis], system: warpforge_inventory::ListOutput) -> BenchmarkRunResult {
    let record = &records[0];
    let component = if record.device == "cpu" { BenchmarkComponent::Cpu } else { BenchmarkComponent::Gpu };
    let mut params = params(record);
    params.retain(|name, value| records.iter().all(|other| self::params(other).get(name) == Some(value)));
    let metric = |record: &Record| {
        BenchmarkMetric::from_rounds(
            "latency",
            "ms",
            false,
            tags(record, axes),
            std::slice::from_ref(&record.times_ms),
        )
    };
    let metrics: Vec<BenchmarkMetric> = records.iter().filter_map(metric).collect();
    let name = Path::new(&record.model)
        .file_name()
        .map_or(record.model.as_str().into(), |name| name.to_string_lossy());
    let fallbacks: BTreeSet<&String> = records.iter().flat_map(|record| &record.fallbacks).collect();
    BenchmarkRunResult {
        spec: BenchmarkSpec {
            id: BenchmarkId::new(SUITE, name),
            components: vec![component],
            kind: BenchmarkKind::Application,
            description: Some(format!("{} run by `warpt run`", record.model)),
            default_duration_seconds: None,
            external_tool: None,
            params: Some(params),
        },
        success: !metrics.is_empty(),
        metrics,
        error_message: None,
        start_time: record.start_time,
        end_time: records.iter().map(|record| record.end_time).max().unwrap_or(record.end_time),
        system: Some(system),
        verdict: Some(Verdict::Pass),
        conditions: None,
        warnings: fallbacks.iter().map(|what| format!("computed by the reference: {what}")).collect(),
        beside: Vec::new(),
    }
}

/// How a record was made.
fn params(record: &Record) -> Params {
    let text = |value: &str| ParamValue::Text(value.to_owned());
    Params::from([
        ("device".to_owned(), text(&record.device)),
        ("tier".to_owned(), text(&record.tier)),
        ("precision".to_owned(), text(&record.precision)),
        ("threads".to_owned(), ParamValue::Int(i64::try_from(record.threads).unwrap_or(i64::MAX))),
        // Times of other shapes are of other work.
        ("inputs".to_owned(), ParamValue::Text(record.input_shapes())),
    ])
}

/// What distinguishes a metric is what makes two times comparable.
fn tags(record: &Record, axes: &[Axis]) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([
        ("device".to_owned(), record.device.clone()),
        ("tier".to_owned(), record.tier.clone()),
        ("precision".to_owned(), record.precision.clone()),
    ]);
    tags.extend(axes.iter().map(|axis| match axis {
        Axis::Threads => ("threads".to_owned(), record.threads.to_string()),
        Axis::Inputs => ("inputs".to_owned(), record.input_shapes()),
    }));
    tags
}
