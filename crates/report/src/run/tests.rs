use warpforge_bench::record::read_str;

use super::*;
use crate::Screen;

/// A record with a measured benchmark, one made by another tool without statistics, and a skipped one.
fn run() -> BenchmarkSuiteRun {
    let text = r#"{
      "schema_version": 1, "run_id": "a_1", "tool_version": "0.1.0", "suite": "micro", "components": ["cpu"],
      "metadata": null,
      "benchmarks": [
        {"spec": {"id": {"suite": "micro", "name": "cpu_flops"}, "components": ["cpu"], "kind": "synthetic",
          "description": null, "default_duration_seconds": null, "external_tool": null, "params": null},
         "metrics": [
          {"name": "gflops", "value": 104.25, "unit": "GFLOP/s", "higher_is_better": true,
           "tags": {"dtype": "f32", "note": "a,b"},
           "statistics": {"sample_count": 20, "round_count": 5, "mean": 104.0, "mad": 0.5, "min": 99.0, "max": 106.0,
            "ci_low": 104.0, "ci_high": 104.5, "confidence": 0.95,
            "outliers": {"low_severe": 0, "low_mild": 0, "high_mild": 0, "high_severe": 0}, "rounds": []}},
          {"name": "seconds", "value": 2.0, "unit": "s", "higher_is_better": false, "tags": null}],
         "success": true, "error_message": null, "start_time": "2026-01-01T00:00:00Z",
         "end_time": "2026-01-01T00:00:01Z", "system": null, "warnings": ["throttled | hot"]},
        {"spec": {"id": {"suite": "micro", "name": "gpu_flops"}, "components": ["gpu"], "kind": "synthetic",
          "description": null, "default_duration_seconds": null, "external_tool": null, "params": null},
         "metrics": [], "success": false, "error_message": "no GPU found", "start_time": "2026-01-01T00:00:00Z",
         "end_time": "2026-01-01T00:00:01Z", "system": null, "verdict": "SKIPPED"}]}"#;
    read_str(text, "test").unwrap()
}

#[test]
fn the_table_has_a_row_a_metric_and_a_reason_for_none() {
    let text = table(&run()).to_text(Screen::PLAIN);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("gflops f32 a,b  104.2 GFLOP/s  104.0 to 104.5  20 in 5  PASS"), "{text}");
    assert!(lines[2].contains("2.000 s") && lines[2].ends_with("PASS"), "{text}");
    assert!(lines[3].starts_with("micro/gpu_flops") && lines[3].ends_with("SKIPPED: no GPU found"), "{text}");
}

#[test]
fn markdown_is_escaped_and_has_the_warnings() {
    let page = markdown(&run());
    assert!(page.contains("Run a\\_1, warpt 0.1.0"), "{page}");
    assert!(page.contains("| micro/cpu\\_flops | gflops f32 a,b |"), "{page}");
    assert!(page.ends_with("### Warnings\n\n- micro/cpu\\_flops: throttled \\| hot\n"), "{page}");
}

#[test]
fn csv_quotes_what_needs_it_and_leaves_the_unknown_empty() {
    let text = csv(&run()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let first = "micro,cpu_flops,gflops,\"dtype=f32;note=a,b\",104.25,GFLOP/s,true,104,104.5,0.95,0.5,99,106,20,5,PASS";
    assert_eq!(lines[1], first);
    assert_eq!(lines[2], "micro,cpu_flops,seconds,,2,s,false,,,,,,,,,PASS");
}

#[test]
fn peers_stand_below_their_benchmark() {
    let mut run = run();
    let text = r#"[
        {"peer": "hpcc", "version": "1.5.0", "verdict": "PASS", "error_message": null,
         "metrics": [{"name": "gflops", "value": 52.0, "unit": "GFLOP/s", "higher_is_better": true, "tags": null}],
         "ratios": [{"name": "gflops", "tags": {"dtype": "f32"}, "ratio": 2.0048, "ci_low": 1.9, "ci_high": 2.1,
                     "confidence": 0.95}]},
        {"peer": "xhpl", "version": null, "verdict": "SKIPPED", "error_message": "not here", "metrics": [],
         "ratios": []}]"#;
    run.benchmarks[0].beside = serde_json::from_str(text).unwrap();
    let text = super::text(&run, Screen::PLAIN);
    assert!(text.contains("hpcc 1.5.0  gflops  52.00 GFLOP/s          2.00  1.900 to 2.100  PASS"), "{text}");
    assert!(text.contains("xhpl") && text.contains("SKIPPED: not here"), "{text}");
    assert!(markdown(&run).contains("### Beside other programs"), "{}", markdown(&run));
    assert!(csv(&run).unwrap().contains("micro,cpu_flops,gflops,beside=hpcc,52,GFLOP/s"));
}

#[test]
fn scopes_stand_side_by_side_and_sizes_are_readable() {
    let mut run = run();
    let metric = |scope: &str, value: f64| BenchmarkMetric {
        name: "bandwidth".to_owned(),
        value,
        unit: "GB/s".to_owned(),
        higher_is_better: true,
        tags: Some(
            [("scope", scope), ("size_bytes", "4096"), ("threads", "9")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .into(),
        ),
        statistics: None,
    };
    run.benchmarks[1].metrics = vec![metric("all_cores", 2.0), metric("one_core", 1.0)];
    let text = text(&run, Screen::PLAIN);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert!(lines[0].starts_with("micro/cpu_flops  PASS"), "{text}");
    assert!(text.contains("dtype  note       GFLOP/s\n  f32    a,b   104.2 ±0.2 %\n"), "{text}");
    assert!(text.contains("! throttled | hot"), "{text}");
    assert!(text.contains("micro/gpu_flops  SKIPPED: no GPU found"), "{text}");
    assert!(text.contains("metric          size bytes  one core  all cores\n"), "{text}");
    assert!(text.contains("bandwidth GB/s  4 KiB          1.000      2.000\n"), "{text}");
}
