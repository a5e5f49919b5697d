//! A profile as a benchmark record for the history.

use std::collections::BTreeMap;

use jiff::Timestamp;
use warpforge_bench::record::{
    BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, BenchmarkSpec,
    BenchmarkSuiteRun, SCHEMA_VERSION, Tags, Verdict,
};
use warpforge_bench::runner::new_run_id;
use warpforge_measure::stats;

use crate::profile::{Mode, Profile};

/// The suite that calibrations are kept under.
const SUITE: &str = "calibrate";

/// One record of a calibration that ended at a time: its limits, the reference kernel, and the mean speedup of each pattern.
#[must_use]
pub fn suite_run(profile: &Profile, end_time: Timestamp) -> BenchmarkSuiteRun {
    let on_gpu = profile.machine.gpu.is_some();
    let component = if on_gpu { BenchmarkComponent::Gpu } else { BenchmarkComponent::Cpu };
    let check = &profile.self_check;
    let result = BenchmarkRunResult {
        spec: BenchmarkSpec {
            id: BenchmarkId::new(SUITE, if profile.quick { "quick" } else { "full" }),
            components: vec![component],
            kind: BenchmarkKind::Synthetic,
            description: Some(
                "limits of the machine and the worth of fusion, by `warpt calibrate`".to_owned(),
            ),
            default_duration_seconds: None,
            external_tool: None,
            params: None,
        },
        metrics: metrics(profile),
        success: profile.complete,
        error_message: (!profile.complete).then(|| "the calibration was interrupted".to_owned()),
        start_time: profile.created,
        end_time,
        system: Some(warpforge_inventory::list()),
        verdict: Some(match profile.complete && !check.is_inconclusive() {
            true => Verdict::Pass,
            false => Verdict::Inconclusive,
        }),
        conditions: Some(profile.conditions.clone()),
        warnings: check.disturbances.iter().chain(&check.skipped).cloned().collect(),
        beside: Vec::new(),
    };
    BenchmarkSuiteRun {
        schema_version: SCHEMA_VERSION,
        run_id: new_run_id(),
        tool_version: profile.tool_version.clone(),
        suite: SUITE.to_owned(),
        components: vec![component],
        benchmarks: vec![result],
        metadata: Some(BTreeMap::from([("fingerprint".to_owned(), profile.machine.fingerprint.clone())])),
        timeline: Vec::new(),
    }
}

fn metrics(profile: &Profile) -> Vec<BenchmarkMetric> {
    let peaks = profile.peaks.iter().filter_map(|peak| {
        let mode = if peak.mode == Mode::Burst { "burst" } else { "sustained" };
        let threads = peak.threads.to_string();
        let tags = [
            ("device", &*peak.device),
            ("dtype", &peak.dtype),
            ("isa", &peak.isa),
            ("threads", &threads),
            ("mode", mode),
        ];
        metric("peak", "GFLOP/s", true, &tags, peak.gops)
    });
    let bandwidth = profile.bandwidth.iter().filter_map(|found| {
        let threads = found.threads.to_string();
        let tags = [
            ("device", &*found.device),
            ("level", &found.level),
            ("access", &found.access),
            ("stores", &found.stores),
            ("threads", &threads),
        ];
        metric("bandwidth", "GB/s", true, &tags, found.gbps)
    });
    let overheads = profile.overheads.iter().filter_map(|known| {
        let threads = known.threads.to_string();
        metric(
            "overhead",
            "us",
            false,
            &[("device", &*known.device), ("what", &known.what), ("threads", &threads)],
            known.us,
        )
    });
    let reference = BenchmarkMetric::from_rounds(
        "reference",
        "ms",
        false,
        Tags::new(),
        std::slice::from_ref(&profile.self_check.reference_ms),
    );
    peaks.chain(bandwidth).chain(overheads).chain(reference).chain(speedups(profile)).collect()
}

/// The geometric mean over the sizes of each pattern in each type.
fn speedups(profile: &Profile) -> Vec<BenchmarkMetric> {
    let mut patterns: BTreeMap<[&str; 3], Vec<f64>> = BTreeMap::new();
    for fusion in &profile.fusion_profiles {
        let key = [&*fusion.fusion_pattern, &fusion.dtype, &fusion.device];
        patterns.entry(key).or_default().push(fusion.speedup_factor);
    }
    let mean = |([pattern, dtype, device], factors): ([&str; 3], Vec<f64>)| {
        let tags = [("pattern", pattern), ("dtype", dtype), ("device", device)];
        metric("fusion_speedup", "x", true, &tags, stats::geometric_mean(&factors)?)
    };
    patterns.into_iter().filter_map(mean).collect()
}

/// A figure that has no samples any more.
fn metric(
    name: &str,
    unit: &str,
    higher_is_better: bool,
    tags: &[(&str, &str)],
    value: f64,
) -> Option<BenchmarkMetric> {
    let tags: Tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    value.is_finite().then(|| BenchmarkMetric {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        higher_is_better,
        tags: Some(tags),
        statistics: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn a_record_has_the_limits_and_the_verdict_of_the_profile() {
        let end: Timestamp = "2026-11-16T12:01:00Z".parse().unwrap();
        let mut known = profile();
        known.self_check.reference_ms = vec![1.0, 3.0, 2.0];
        let run = suite_run(&known, end);
        let [result] = &run.benchmarks[..] else { panic!("one benchmark: {run:?}") };
        assert_eq!((result.start_time, result.end_time), (known.created, end));
        assert_eq!((result.verdict, result.success), (Some(Verdict::Pass), true));
        let value = |name: &str, tag: (&str, &str)| {
            let has = |metric: &&BenchmarkMetric| {
                metric.name == name
                    && (tag.0.is_empty()
                        || metric
                            .tags
                            .as_ref()
                            .is_some_and(|tags| tags.get(tag.0).is_some_and(|v| v == tag.1)))
            };
            result.metrics.iter().find(has).map(|metric| metric.value)
        };
        assert_eq!(value("peak", ("mode", "sustained")), Some(90.0));
        assert_eq!(value("bandwidth", ("access", "read")), Some(12.0));
        assert_eq!(value("overhead", ("what", "run")), Some(5.0));
        assert_eq!(value("reference", ("", "")), Some(2.0));
        let speedup = value("fusion_speedup", ("pattern", "Linear_Bias_ReLU")).unwrap();
        assert!((speedup - 1.2).abs() < 1e-9, "{speedup}");
        known.self_check.verdict = "INCONCLUSIVE".to_owned();
        assert_eq!(suite_run(&known, end).benchmarks[0].verdict, Some(Verdict::Inconclusive));
    }
}
