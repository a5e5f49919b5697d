//! The rules of a comparison, on small made-up runs.

use jiff::Timestamp;
use warpforge_inventory::ListOutput;
use warpforge_inventory::hardware::Gpu;
use warpforge_measure::stats;

use super::*;
use crate::record::{
    BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, Conditions, MetricStatistics,
    ParamValue, Spread, Tags, Verdict,
};

/// A metric of which less is better. Only its rounds are set: a comparison reads nothing else.
pub(super) fn metric(name: &str, rounds: Vec<Vec<f64>>) -> BenchmarkMetric {
    let medians: Vec<f64> = rounds.iter().filter_map(|round| stats::median(round)).collect();
    BenchmarkMetric {
        name: name.to_owned(),
        value: stats::median(&medians).unwrap(),
        unit: "ns".to_owned(),
        higher_is_better: false,
        tags: None,
        statistics: Some(MetricStatistics {
            spread: Spread {
                sample_count: rounds.iter().map(Vec::len).sum(),
                round_count: rounds.len(),
                mean: f64::NAN,
                mad: f64::NAN,
                min: f64::NAN,
                max: f64::NAN,
                ci_low: f64::NAN,
                ci_high: f64::NAN,
                confidence: 0.95,
                outliers: stats::Outliers::default(),
            },
            rounds,
            core_speeds: vec![],
        }),
    }
}

/// A run of one benchmark.
pub(super) fn run(metrics: Vec<BenchmarkMetric>) -> BenchmarkSuiteRun {
    let result = BenchmarkRunResult {
        spec: BenchmarkId::new("micro", "mem_latency").spec(BenchmarkKind::Synthetic),
        metrics,
        success: true,
        error_message: None,
        start_time: Timestamp::UNIX_EPOCH,
        end_time: Timestamp::UNIX_EPOCH,
        system: Some(machine("Some CPU", 16)),
        verdict: Some(Verdict::Pass),
        conditions: None,
        warnings: vec![],
        beside: vec![],
    };
    BenchmarkSuiteRun {
        schema_version: 1,
        run_id: "r".to_owned(),
        tool_version: "1".to_owned(),
        suite: "micro".to_owned(),
        components: vec![],
        benchmarks: vec![result],
        metadata: None,
        timeline: vec![],
    }
}

fn machine(cpu: &str, gib: u64) -> ListOutput {
    let mut system = ListOutput {
        hardware: warpforge_inventory::hardware::Hardware::default(),
        software: warpforge_inventory::software::Software::default(),
        warnings: vec![],
    };
    system.hardware.cpu.model = Some(cpu.to_owned());
    system.hardware.memory.total_bytes = Some(gib << 30);
    system
}

/// Five rounds around a value, 0.4 % apart.
fn around(value: f64) -> Vec<Vec<f64>> {
    (-2..=2).map(|i| vec![value * (1.0 + 0.004 * f64::from(i)); 3]).collect()
}

fn verdict(before: BenchmarkMetric, after: BenchmarkMetric) -> MetricComparison {
    let mut comparison = compare(&run(vec![before]), &run(vec![after]), &CompareOptions::default()).unwrap();
    comparison.metrics.remove(0)
}

#[test]
fn verdicts_follow_the_change_and_the_better_direction() {
    let slower = verdict(metric("t", around(100.0)), metric("t", around(110.0)));
    assert_eq!(slower.verdict, Change::Regressed);
    assert!((slower.change_percent.unwrap() - 10.0).abs() < 0.1, "{slower:?}");
    assert!(slower.ci_low_percent.unwrap() > 8.0 && slower.ci_high_percent.unwrap() < 12.0, "{slower:?}");
    let faster = verdict(metric("t", around(110.0)), metric("t", around(100.0)));
    assert_eq!(faster.verdict, Change::Improved);

    let rate = |value| BenchmarkMetric { higher_is_better: true, ..metric("rate", around(value)) };
    assert_eq!(verdict(rate(100.0), rate(90.0)).verdict, Change::Regressed);
    assert_eq!(verdict(rate(100.0), rate(112.0)).verdict, Change::Improved);
}

#[test]
fn small_changes_are_none_and_noise_is_no_verdict() {
    // Two percent is beyond doubt here, but below the threshold of interest.
    assert_eq!(verdict(metric("t", around(100.0)), metric("t", around(101.5))).verdict, Change::Unchanged);
    let noisy = |shift: f64| (0..5).map(|i| vec![90.0 + shift + 5.0 * f64::from(i); 3]).collect::<Vec<_>>();
    let result = verdict(metric("t", noisy(0.0)), metric("t", noisy(6.0)));
    assert_eq!(result.verdict, Change::Inconclusive);
    assert!(result.note.unwrap().contains("noise"), "{:?}", result.change_percent);
}

#[test]
fn the_threshold_is_the_user_s() {
    let (before, after) = (run(vec![metric("t", around(100.0))]), run(vec![metric("t", around(106.0))]));
    let with = |noise_threshold_percent| {
        let options = CompareOptions { noise_threshold_percent, force: false };
        compare(&before, &after, &options).map(|comparison| comparison.verdict)
    };
    assert_eq!(with(3.0), Ok(Change::Regressed));
    assert_eq!(with(10.0), Ok(Change::Unchanged));
    assert_eq!(with(-1.0), Err(CompareError::BadThreshold(-1.0)));
    assert!(with(f64::NAN).is_err());
}

#[test]
fn more_metrics_demand_more_evidence() {
    let rounds = |value: f64| vec![vec![value * 0.98], vec![value], vec![value * 1.02]];
    let (before, after) = (metric("t", rounds(100.0)), metric("t", rounds(106.0)));
    assert_eq!(verdict(before.clone(), after.clone()).verdict, Change::Regressed);
    let many = |first| {
        let others = (0..60).map(|i| metric(&format!("other{i}"), rounds(50.0)));
        run(std::iter::once(first).chain(others).collect())
    };
    let comparison = compare(&many(before), &many(after), &CompareOptions::default()).unwrap();
    let first = &comparison.metrics[0];
    assert_eq!(first.verdict, Change::Inconclusive);
    assert!(first.family_ci_low_percent < first.ci_low_percent);
    assert!(first.note.as_ref().unwrap().contains("among so many"), "{first:?}");
}

#[test]
fn without_samples_there_is_a_change_but_no_verdict() {
    let bare = |value| BenchmarkMetric { value, statistics: None, ..metric("t", around(1.0)) };
    let result = verdict(bare(100.0), bare(150.0));
    assert_eq!((result.verdict, result.change_percent), (Change::Inconclusive, Some(50.0)));
    assert!(result.note.unwrap().contains("no samples"));
    let zero = verdict(bare(0.0), bare(0.0));
    assert_eq!((zero.verdict, zero.change_percent), (Change::Inconclusive, None));
}

#[test]
fn one_round_is_compared_and_marked() {
    let one = |value: f64| metric("t", vec![(-5..=5).map(|i| value + 0.1 * f64::from(i)).collect()]);
    let result = verdict(one(100.0), one(120.0));
    assert_eq!(result.verdict, Change::Regressed);
    assert!(result.note.unwrap().contains("one round"));
}

#[test]
fn units_must_agree() {
    let other = BenchmarkMetric { unit: "ms".to_owned(), ..metric("t", around(1.0)) };
    let result = verdict(metric("t", around(100.0)), other);
    assert_eq!((result.verdict, result.change_percent), (Change::Inconclusive, None));
}

#[test]
fn metrics_are_matched_by_name_and_tags_and_the_rest_is_listed() {
    let tagged = |level: &str, value| BenchmarkMetric {
        tags: Some(Tags::from([("level".to_owned(), level.to_owned())])),
        ..metric("t", around(value))
    };
    let before = run(vec![tagged("L1", 1.0), tagged("L2", 4.0), tagged("L3", 20.0)]);
    let after = run(vec![tagged("L3", 20.0), tagged("L1", 2.0), tagged("DRAM", 90.0)]);
    let comparison = compare(&before, &after, &CompareOptions::default()).unwrap();
    let verdicts: Vec<_> = comparison.metrics.iter().map(|m| (m.label(), m.verdict)).collect();
    let expected = [("t L1".to_owned(), Change::Regressed), ("t L3".to_owned(), Change::Unchanged)];
    assert_eq!(verdicts, expected);
    let unmatched: Vec<_> = comparison.unmatched.iter().map(|m| (m.label(), m.only_in)).collect();
    assert_eq!(unmatched, [("t L2".to_owned(), Side::Before), ("t DRAM".to_owned(), Side::After)]);
}

#[test]
fn the_whole_is_as_bad_as_its_worst_part() {
    let whole = |before: &BenchmarkSuiteRun, after: &BenchmarkSuiteRun| {
        compare(before, after, &CompareOptions::default()).unwrap().verdict
    };
    let same = metric("same", around(5.0));
    let quick = run(vec![same.clone(), metric("t", around(100.0))]);
    let slow = run(vec![same.clone(), metric("t", around(120.0))]);
    assert_eq!(whole(&quick, &slow), Change::Regressed);
    assert_eq!(whole(&slow, &quick), Change::Improved);
    assert_eq!(whole(&quick, &quick), Change::Unchanged);
    assert_eq!(whole(&quick, &run(vec![same])), Change::Inconclusive);
    assert_eq!(whole(&run(vec![]), &run(vec![])), Change::Inconclusive);
}

#[test]
fn a_benchmark_that_fails_now_is_a_regression_and_a_skipped_one_is_missing() {
    let before = run(vec![metric("t", around(1.0))]);
    let mut after = run(vec![]);
    after.benchmarks[0].success = false;
    after.benchmarks[0].error_message = Some("no such device".to_owned());
    after.benchmarks[0].verdict = Some(Verdict::Fail);
    let comparison = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert_eq!((comparison.verdict, comparison.broken.len()), (Change::Regressed, 1));

    after.benchmarks[0].verdict = Some(Verdict::Skipped);
    let comparison = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert_eq!((comparison.verdict, comparison.broken.len()), (Change::Inconclusive, 0));
    assert_eq!(comparison.unmatched[0].reason.as_deref(), Some("no such device"));
}

#[test]
fn different_machines_are_refused_unless_forced() {
    let before = run(vec![metric("t", around(1.0))]);
    let mut after = before.clone();
    after.benchmarks[0].system = Some(machine("Some CPU", 64));
    let error = compare(&before, &after, &CompareOptions::default()).unwrap_err().to_string();
    assert!(error.contains("memory: 16.0 GiB and 64.0 GiB") && error.contains("--force"), "{error}");
    after.benchmarks[0].system = Some(machine("Other CPU", 16));
    assert_eq!(machine_differences(&before, &after), ["CPU: Some CPU and Other CPU"]);
    let mut gpu = machine("Some CPU", 16);
    gpu.hardware.gpus = vec![
        Gpu { model: Some("H200".to_owned()), ..Gpu::default() },
        Gpu { vendor: "AMD".to_owned(), ..Gpu::default() },
    ];
    after.benchmarks[0].system = Some(gpu);
    assert_eq!(machine_differences(&before, &after), ["GPUs: none and AMD, H200"]);
    // What the kernel keeps for itself differs from boot to boot; what is not known is no difference.
    let mut rebooted = machine("Some CPU", 16);
    rebooted.hardware.memory.total_bytes = Some((16 << 30) - (100 << 20));
    rebooted.hardware.cpu.threads = Some(8);
    after.benchmarks[0].system = Some(rebooted);
    assert_eq!(machine_differences(&before, &after), [""; 0]);
    after.benchmarks[0].system = Some(machine("Other CPU", 16));
    let forced = CompareOptions { force: true, ..CompareOptions::default() };
    let comparison = compare(&before, &after, &forced).unwrap();
    assert!(comparison.warnings[0].contains("different machines: CPU"), "{:?}", comparison.warnings);
    after.benchmarks[0].system = None;
    let comparison = compare(&before, &after, &CompareOptions::default()).unwrap();
    assert!(comparison.warnings[0].contains("later run does not say"), "{:?}", comparison.warnings);
}

#[test]
fn what_makes_it_unfair_is_said() {
    let before = run(vec![metric("t", around(1.0))]);
    let mut after = before.clone();
    after.tool_version = "2".to_owned();
    after.benchmarks[0].spec.params = Some([("threads".to_owned(), ParamValue::Int(4))].into());
    after.benchmarks[0].conditions = Some(Conditions {
        foreign_cpu_percent: Some(31.0),
        throttle_events: Some(2),
        ..Conditions::default()
    });
    let warnings = compare(&before, &after, &CompareOptions::default()).unwrap().warnings.join("\n");
    for part in ["versions of warpt: 1 and 2", "threads is unset and 4", "took 31 %", "throttled 2 times"] {
        assert!(warnings.contains(part), "{part} is not in:\n{warnings}");
    }
    assert_eq!(compare(&before, &before, &CompareOptions::default()).unwrap().warnings, [""; 0]);
}
