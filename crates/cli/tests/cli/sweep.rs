//! Sweeps of `warpt run`: every combination is a row.

use serde_json::{Value, json};

use crate::warpt::Warpt;

const MODEL: &str = "func.func @main(%x: tensor<?x16xf32> {warpforge.name = \"x\"}) -> tensor<?x16xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x16xf32>
  func.return %0 : tensor<?x16xf32>
}
";

fn home() -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("m.mlir"), MODEL).unwrap();
    warpt
}

const SWEEP: [&str; 12] = [
    "run",
    "m.mlir",
    "--seed",
    "1",
    "--threads",
    "1,2",
    "--precision",
    "model,bf16",
    "--shape",
    "x=1x16,8x16",
    "--tier",
    "production,correctness",
];

#[test]
fn every_combination_is_a_row() {
    let warpt = home();
    let rows = warpt.json(&[&SWEEP[..], &["--json"]].concat());
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 16);
    let key =
        |row: &Value| ["tier", "precision", "inputs", "threads"].map(|name| row[name].to_string()).join(" ");
    let mut keys: Vec<String> = rows.iter().map(key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 16, "{keys:?}");
    for row in rows.iter().filter(|row| row["error"].is_null()) {
        let (median, rate) = (row["median_ms"].as_f64().unwrap(), row["items_per_second"].as_f64().unwrap());
        let items = if row["inputs"] == "x=8x16" { 8.0 } else { 1.0 };
        assert_eq!(row["items"], json!(items as u64));
        assert!((rate * median / 1e3 / items - 1.0).abs() < 1e-9, "{row}");
        assert_eq!(row["runs"], json!(6), "{row}");
        assert!(row["mad_ms"].is_number() && row["ci_low_ms"].is_number(), "{row}");
    }
}

#[test]
fn one_table_in_every_form() {
    let warpt = home();
    let sweep = ["run", "m.mlir", "--seed", "1", "--threads", "1,2", "--shape", "x=4x16", "--repeat", "2"];
    let text = warpt.run(&sweep).stdout;
    let table = text.split_once("\n\n").expect("what does not differ stands above the table").1;
    assert_eq!(table.lines().count(), 3, "{text}");
    assert!(text.contains("median ms") && text.contains("items/s") && text.contains("x=4x16"), "{text}");
    assert!(text.contains("range ms") && !text.contains("95 %"), "two runs have no interval: {text}");
    let page = warpt.run(&[&sweep[..], &["--format", "markdown"]].concat()).stdout;
    assert!(page.starts_with("| model |") && page.lines().count() == 4, "{page}");
    let sheet = warpt.run(&[&sweep[..], &["--format", "csv"]].concat()).stdout;
    let lines: Vec<&str> = sheet.lines().collect();
    assert!(
        lines.len() == 3 && lines[0].starts_with("model,device,tier,precision,threads,inputs,"),
        "{sheet}"
    );
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{sheet}");
    let single = warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "x=4x16", "--format", "csv"]).stdout;
    assert_eq!(single.lines().count(), 2, "{single}");
}

#[test]
fn what_cannot_run_is_a_row_with_its_reason() {
    let warpt = home();
    let done = warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "x=4x16,4x17", "--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let rows: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(rows[0]["error"].is_null() && rows[0]["median_ms"].is_number(), "{rows}");
    assert!(rows[1]["error"].as_str().unwrap().contains("is not a shape of"), "{rows}");
    assert_eq!((&rows[1]["inputs"], &rows[1]["median_ms"]), (&json!("x=4x17"), &Value::Null));
    let text = warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "x=4x16,4x17"]).stdout;
    assert!(text.contains("cannot run") && text.contains("is not a shape of"), "{text}");
    let text = warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "x=4x16", "--precision", "model,f16"]);
    let heading = text.stdout.lines().next().unwrap_or_default();
    let alike = "model m.mlir, device cpu, tier production, inputs x=4x16, threads ";
    assert!(heading.starts_with(alike), "what could not run adds no columns: {}", text.stdout);

    let none = warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "y=4x16,8x16"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("the model has no such input"), "{}", none.stderr);
    let traced =
        warpt.run(&["run", "m.mlir", "--seed", "1", "--shape", "x=4x16,8x16", "--profile", "p.json"]);
    assert_eq!((traced.code, traced.stdout.as_str()), (2, ""));
    assert!(traced.stderr.contains("--profile is for one run"), "{}", traced.stderr);
}

#[test]
fn a_sweep_is_kept_and_compared_combination_by_combination() {
    let warpt = home();
    let sweep = ["run", "m.mlir", "--seed", "1", "--threads", "1,2", "--shape", "x=1x16,8x16", "--keep"];
    for _ in 0..2 {
        let done = warpt.run(&sweep);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stderr.contains("kept in the history as "), "{}", done.stderr);
    }
    let kept = warpt.json(&["benchmark", "history", "show", "latest", "--json"]);
    assert_eq!(kept["benchmarks"].as_array().map(Vec::len), Some(1), "{kept}");
    let compared = warpt.json(&["benchmark", "compare", "latest~1", "latest", "--json"]);
    let tags: Vec<(String, String)> = compared["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|metric| (metric["tags"]["threads"].to_string(), metric["tags"]["inputs"].to_string()))
        .collect();
    let expected = [("1", "x=1x16"), ("2", "x=1x16"), ("1", "x=8x16"), ("2", "x=8x16")];
    assert_eq!(tags, expected.map(|(threads, inputs)| (format!("\"{threads}\""), format!("\"{inputs}\""))));
}
