//! The folder of a pass as a result of the benchmark suite, so that two of them can be compared as such.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use warpforge_bench::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, BenchmarkSpec,
    BenchmarkSuiteRun, Tags, Verdict,
};

use crate::Error;
use crate::run::StepNumbers;

/// Consecutive steps are cut into so many rounds.
const ROUNDS: usize = 4;
/// The first steps, of so many, are warm-up.
const WARMUP: usize = 10;

#[derive(Deserialize)]
struct Manifest {
    benchmark: Option<Block>,
    #[serde(default)]
    versions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Block {
    name: String,
    preset: Option<String>,
}

/// Reads the folder of either pass: the time of a step, the last loss and the metrics.
///
/// # Errors
///
/// When the folder has no whole golden run.
pub fn suite_run(folder: &Path) -> Result<BenchmarkSuiteRun, Error> {
    let wrong = |reason: String| Error::golden(folder, reason);
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(Error::io(&path))
    };
    let manifest: Manifest = serde_json::from_str(&read("manifest.json")?)
        .map_err(|error| wrong(format!("manifest.json: {error}")))?;
    let block = manifest.benchmark.ok_or_else(|| wrong("it is no run of a golden benchmark".to_owned()))?;
    let steps = read("progress.jsonl")?
        .lines()
        .map(serde_json::from_str::<StepNumbers>)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(format!("progress.jsonl: {error}")))?;
    let metrics: BTreeMap<String, f64> = serde_json::from_str(&read("metrics.json")?)
        .map_err(|error| wrong(format!("metrics.json: {error}")))?;
    let mut found = vec![BenchmarkMetric::from_rounds("step_time", "s", false, Tags::new(), &rounds(&steps))];
    // These have no noise: the same run gives the same value again.
    let exact = |name: &str, unit: &str, higher: bool, value: f64| {
        BenchmarkMetric::from_rounds(name, unit, higher, Tags::new(), &[vec![value; 2], vec![value; 2]])
    };
    found.extend(steps.last().map(|step| exact("last_loss", "nats", false, step.loss)));
    found.extend(metrics.iter().map(|(name, value)| match name.as_str() {
        "perplexity" => exact(name, "1", false, *value),
        _ => exact(name, "%", true, *value),
    }));
    let path = folder.join("manifest.json");
    let written = std::fs::metadata(&path).and_then(|file| file.modified()).map_err(Error::io(&path))?;
    let end = Timestamp::try_from(written).unwrap_or(Timestamp::UNIX_EPOCH);
    let total: f64 = steps.iter().map(|step| step.seconds).sum();
    let begin = end.checked_sub(SignedDuration::from_secs_f64(total)).unwrap_or(end);
    let name = block.preset.map_or_else(|| block.name.clone(), |preset| format!("{}/{preset}", block.name));
    let result = BenchmarkRunResult {
        spec: BenchmarkSpec {
            id: BenchmarkId::new("golden", name),
            components: vec![BenchmarkComponent::System],
            kind: BenchmarkKind::Application,
            description: None,
            default_duration_seconds: None,
            external_tool: None,
            params: None,
        },
        metrics: found.into_iter().flatten().collect(),
        success: true,
        error_message: None,
        start_time: begin,
        end_time: end,
        system: None,
        verdict: Some(Verdict::Pass),
        conditions: None,
        warnings: Vec::new(),
        beside: Vec::new(),
    };
    Ok(BenchmarkSuiteRun {
        schema_version: warpforge_bench::record::SCHEMA_VERSION,
        run_id: String::new(),
        tool_version: manifest.versions.get("warpt").cloned().unwrap_or_default(),
        suite: "golden".to_owned(),
        components: vec![BenchmarkComponent::System],
        benchmarks: vec![result],
        metadata: None,
        timeline: Vec::new(),
    })
}

/// The times of consecutive steps, cut into rounds.
fn rounds(steps: &[StepNumbers]) -> Vec<Vec<f64>> {
    let skipped = WARMUP.min(steps.len() / 2);
    let times: Vec<f64> = steps[skipped..].iter().map(|step| step.seconds).collect();
    times.chunks(times.len().div_ceil(ROUNDS).max(1)).map(<[f64]>::to_vec).collect()
}
