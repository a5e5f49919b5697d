use warpforge_bench::compare::{Broken, Counts};
use warpforge_bench::record::{BenchmarkId, Tags};

use super::*;
use crate::Screen;

fn metric(name: &str, verdict: Change, note: Option<&str>) -> MetricComparison {
    MetricComparison {
        benchmark: BenchmarkId::new("micro", "cpu_flops"),
        name: name.to_owned(),
        unit: "GFLOP/s".to_owned(),
        higher_is_better: true,
        tags: Tags::from([("dtype".to_owned(), "f32".to_owned())]),
        before: 104.25,
        after: 94.1,
        change_percent: Some(-9.74),
        values_change_percent: Some(-9.74),
        speed_adjusted: false,
        ci_low_percent: Some(-10.5),
        ci_high_percent: Some(-9.0),
        family_ci_low_percent: Some(-11.0),
        family_ci_high_percent: Some(-8.5),
        verdict,
        note: note.map(str::to_owned),
    }
}

fn comparison() -> Comparison {
    let label = |id: &str| RunLabel {
        run_id: id.to_owned(),
        suite: "micro".to_owned(),
        tool_version: "0.1.0".to_owned(),
        start_time: Some(jiff::Timestamp::UNIX_EPOCH),
    };
    Comparison {
        verdict: Change::Regressed,
        before: label("a1"),
        after: label("b2"),
        noise_threshold_percent: 3.0,
        confidence: 0.95,
        counts: Counts { improved: 0, regressed: 1, unchanged: 1, inconclusive: 1 },
        metrics: vec![
            metric("same", Change::Unchanged, None),
            metric("noisy", Change::Inconclusive, Some("noise <of> 5 points")),
            metric("gflops", Change::Regressed, None),
        ],
        unmatched: vec![Unmatched {
            benchmark: BenchmarkId::new("micro", "disk_io"),
            name: "iops".to_owned(),
            tags: Tags::new(),
            only_in: Side::Before,
            reason: Some("no space".to_owned()),
        }],
        broken: vec![Broken {
            benchmark: BenchmarkId::new("micro", "mem_latency"),
            error_message: Some("crashed & gone".to_owned()),
        }],
        warnings: vec!["other programs took 9 % of the CPU".to_owned()],
    }
}

#[test]
fn the_terminal_shows_the_worst_first_and_the_sum_last() {
    let text = text(&comparison(), Screen::PLAIN);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "before  micro a1 (warpt 0.1.0, 1970-01-01T00:00:00Z)");
    assert!(lines[3].starts_with("benchmark") && lines[4].contains("gflops f32"), "{text}");
    assert!(lines[4].contains("104.2  94.10 GFLOP/s  -9.7 %  -10.5 to -9.0 %  regressed"), "{text}");
    assert!(text.contains("fails now: micro/mem_latency: crashed & gone\n"), "{text}");
    assert!(text.contains("micro/disk_io iops: only in the earlier run: no space\n"), "{text}");
    assert!(lines.last().unwrap().starts_with("REGRESSED: 1 benchmarks fail now, 1 regressed"), "{text}");
    assert!(!text.contains('\u{1b}'));
    assert!(super::text(&comparison(), Screen { colour: true, columns: None }).contains("\u{1b}[31m"));
}

#[test]
fn runs_with_nothing_in_common_take_a_line_a_benchmark() {
    let mut disjoint = comparison();
    let one = disjoint.unmatched[0].clone();
    let named = |name: usize| Unmatched { name: format!("iops{name}"), ..one.clone() };
    disjoint.unmatched = (0..40).map(named).collect();
    (disjoint.metrics, disjoint.broken, disjoint.verdict) = (Vec::new(), Vec::new(), Change::Inconclusive);
    let text = text(&disjoint, Screen::PLAIN);
    assert!(text.contains("micro/disk_io: 40 metrics only in the earlier run: no space\n"), "{text}");
    assert!(text.ends_with("INCONCLUSIVE: the runs have no metric in common\n"), "{text}");
    assert!(text.lines().count() < 8, "{text}");
}

#[test]
fn markdown_has_the_table_and_the_rest() {
    let page = markdown(&comparison());
    assert!(page.starts_with("## Benchmark comparison: regressed\n"), "{page}");
    assert!(page.contains("| micro/cpu\\_flops | gflops f32 | 104.2 | 94.10 GFLOP/s | -9.7 % |"), "{page}");
    for part in
        ["### Failing now\n\n- micro/mem", "### Not compared\n\n- micro/disk", "### Warnings\n\n- other"]
    {
        assert!(page.contains(part), "{page}");
    }
    assert!(page.ends_with("CPU\n"), "{page}");
}

#[test]
fn junit_counts_failures_errors_and_skipped_ones() {
    let xml = junit(&comparison()).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (5, 1, 1));
    assert_eq!(xml.matches("<skipped").count(), 2, "{xml}");
    assert!(xml.contains("inconclusive: noise &lt;of> 5 points") || xml.contains("&lt;of&gt;"), "{xml}");
    assert!(xml.contains("crashed &amp; gone"), "{xml}");
    assert!(xml.contains("-9.7 % (95 % interval -10.5 to -9.0 %)"), "{xml}");
}

#[test]
fn nothing_compared_is_shown_as_that() {
    let empty = Comparison {
        verdict: Change::Inconclusive,
        counts: Counts::default(),
        metrics: vec![],
        unmatched: vec![],
        broken: vec![],
        warnings: vec![],
        ..comparison()
    };
    assert!(text(&empty, Screen::PLAIN).ends_with("\n\nINCONCLUSIVE: the runs have no metric in common\n"));
    assert!(!markdown(&empty).contains("###"));
    assert!(junit(&empty).unwrap().contains("tests=\"0\""));
}
