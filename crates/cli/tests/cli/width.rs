//! Tables fit the terminal, and numbers are whole.

use crate::terminal::Terminal;
use crate::warpt::{Finished, Warpt, finished};

/// A model with names and values that take room.
const MODEL: &str = "func.func @main(%a: tensor<16x1024x4xf32> {warpforge.name = \"encoder_hidden_states\"},
    %b: tensor<16x1024x4xf32> {warpforge.name = \"attention_mask_of_the_decoder\"}) -> tensor<16x1024x4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<16x1024x4xf32>
  func.return %0 : tensor<16x1024x4xf32>
}
";

/// A result of `disk_io`, as wide as they come.
fn disk_record(id: &str, scale: f64) -> String {
    let metrics: Vec<String> = ["sequential_read", "random_read", "random_write_sync"]
        .iter()
        .flat_map(|workload| {
            ["iops", "bandwidth", "latency_p50", "latency_p99", "latency_p99_9"].map(|name| (workload, name))
        })
        .enumerate()
        .map(|(at, (workload, name))| {
            let value = 1234.5678 * scale * 7f64.powi(i32::try_from(at % 5).unwrap());
            format!(
                r#"{{"name": "{name}", "value": {value}, "unit": "MiB/s", "higher_is_better": true,
                    "tags": {{"workload": "{workload}", "queue_depth": "32", "block_bytes": "1048576"}},
                    "statistics": {{"sample_count": 20, "round_count": 5, "mean": {value}, "mad": 0.5,
                     "min": {0}, "max": {1}, "ci_low": {0}, "ci_high": {1}, "confidence": 0.95,
                     "outliers": {{"low_severe": 0, "low_mild": 0, "high_mild": 0, "high_severe": 0}},
                     "rounds": []}}}}"#,
                value * 0.9,
                value * 1.1
            )
        })
        .collect();
    format!(
        r#"{{"schema_version": 1, "run_id": "{id}", "tool_version": "0.1.0", "suite": "micro",
            "components": ["storage"], "metadata": null, "benchmarks": [{{
            "spec": {{"id": {{"suite": "micro", "name": "disk_io"}}, "components": ["storage"],
             "kind": "synthetic", "description": null, "default_duration_seconds": null,
             "external_tool": null, "params": null}},
            "metrics": [{}], "success": true, "error_message": null,
            "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "system": null,
            "warnings": ["other programs took 12.5 % of the processor, which is more than the 5 % that are fine"]}}]}}"#,
        metrics.join(", ")
    )
}

fn home() -> Warpt {
    let warpt = Warpt::new();
    for (name, text) in [
        ("encoder_decoder_with_attention.mlir", MODEL.to_owned()),
        ("second.mlir", MODEL.to_owned()),
        ("before.json", disk_record("before_1", 1.0)),
        ("after.json", disk_record("after_1", 1.5)),
    ] {
        std::fs::write(warpt.path(name), text).unwrap();
    }
    for (seed, folder) in [("1", "golden"), ("2", "candidate")] {
        let done = warpt.run(&["run", "second.mlir", "--seed", seed, "--save", folder]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    warpt
}

fn at(warpt: &Warpt, columns: usize, arguments: &[&str]) -> Finished {
    finished(warpt.command(arguments).env("COLUMNS", columns.to_string()).output().unwrap())
}

/// The words that have digits.
fn numbers(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn every_line_fits_80_and_60_columns() {
    let warpt = home();
    crate::power::machine(&warpt);
    for _ in 0..2 {
        let done = warpt.run(&["run", "second.mlir", "--seed", "1", "--repeat", "6", "--keep"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    let model = "encoder_decoder_with_attention.mlir";
    for arguments in [
        &["list"][..],
        &["benchmark", "list"],
        &["benchmark", "describe", "--benchmark", "disk_io"],
        &["benchmark", "history", "show", "before.json"],
        &["benchmark", "compare", "before.json", "after.json"],
        &["benchmark", "history"],
        &["benchmark", "history", "trend", "second.mlir", "latency"],
        &["run", model, "--seed", "1", "--repeat", "3"],
        &["run", model, "--seed", "1", "--tier", "observable"],
        &["run", model, "second.mlir", "--seed", "1", "--repeat", "3"],
        &["run", model, "--seed", "1", "--threads", "1,2", "--precision", "model,bf16"],
        &["validate", "--golden", "golden", "--candidate", "candidate"],
        &["stress", "--list"],
        &["stress", "cpu", "--test", "hashing", "--duration", "0.01", "--threads", "1"],
        &["power", "--root", "machine", "--sources"],
        &["power", "--root", "machine", "--no-processes", "--", "true"],
        &["power", "--root", "."],
        &["carbon", "grids"],
        &["carbon", "run", "--root", ".", "--grid", "FRA", "--watts", "1", "--keep", "--", "true"],
        &["carbon", "run", "--root", "machine", "--", "true"],
        &["carbon", "history"],
        &["carbon", "summary"],
    ] {
        for columns in [80, 60] {
            let done = at(&warpt, columns, arguments);
            assert!(!done.stdout.is_empty(), "{arguments:?}: {}", done.stderr);
            for line in done.stdout.lines() {
                assert!(
                    line.chars().count() <= columns,
                    "{arguments:?} at {columns}: {line:?}\n{}",
                    done.stdout
                );
            }
        }
    }
}

#[test]
fn every_stress_test_of_a_narrow_list_has_its_name() {
    let listed = at(&Warpt::new(), 60, &["stress", "--list"]).stdout;
    assert_eq!(
        listed.matches("    verified: ").count(),
        listed.lines().filter(|line| !line.starts_with(' ')).count(),
        "{listed}"
    );
    assert!(
        listed.contains("gpu memory, in GB/s") && listed.contains("network bidirectional, in MB/s"),
        "{listed}"
    );
}

#[test]
fn no_number_is_cut() {
    let warpt = home();
    for arguments in [
        &["benchmark", "history", "show", "before.json"][..],
        &["benchmark", "compare", "before.json", "after.json"],
        &["validate", "--golden", "golden", "--candidate", "candidate"],
    ] {
        let whole = warpt.run(arguments).stdout;
        assert!(numbers(&whole).len() > 20, "{whole}");
        for columns in [80, 60] {
            let narrow = at(&warpt, columns, arguments).stdout;
            let found = numbers(&narrow);
            for number in numbers(&whole) {
                // A name in front of a number may be broken, the number is not.
                let is_whole = |word: &str| {
                    let before = number.strip_suffix(word).and_then(|rest| rest.chars().last());
                    number.ends_with(word) && before.is_none_or(|c| !c.is_ascii_digit() && c != '.')
                };
                let there = found.iter().any(|word| is_whole(word));
                assert!(there, "no {number} of {arguments:?} at {columns}:\n{narrow}");
            }
        }
    }
}

#[test]
fn the_terminal_sets_the_width_and_a_pipe_does_not() {
    let warpt = home();
    let arguments = ["benchmark", "compare", "before.json", "after.json"];
    let piped = warpt.run(&arguments).stdout;
    assert!(piped.lines().any(|line| line.chars().count() > 100), "{piped}");
    let mut terminal = Terminal::start(warpt.command(&arguments), 60, 18);
    terminal.wait_for("INCONCLUSIVE: ", 0);
    assert_eq!(terminal.end().code(), Some(0));
    let text = terminal.text();
    for line in text.lines() {
        let shown: String = without_colours(line);
        assert!(shown.chars().count() <= 60, "{shown:?}\n{text}");
    }
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}
