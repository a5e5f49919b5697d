//! `warpt run` as a stopwatch: warm-up, spread, several models, and times that are kept.

use serde_json::{Value, json};

use crate::warpt::Warpt;

fn model(add: usize) -> String {
    let mut text =
        "func.func @main(%v0: tensor<64xf32> {warpforge.name = \"x\"}) -> tensor<64xf32> {\n".to_owned();
    for at in 0..add {
        text += &format!("  %v{} = stablehlo.add %v{at}, %v{at} : tensor<64xf32>\n", at + 1);
    }
    text + &format!("  func.return %v{add} : tensor<64xf32>\n}}\n")
}

fn home() -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("one.mlir"), model(1)).unwrap();
    std::fs::write(warpt.path("two.mlir"), model(2)).unwrap();
    warpt
}

#[test]
fn repeated_runs_have_a_spread_and_one_has_none() {
    let warpt = home();
    let run = ["run", "one.mlir", "--seed", "1", "--warmup", "2", "--repeat", "9"];
    let record = warpt.json(&[&run[..], &["--json"]].concat());
    assert_eq!((&record["runs"], &record["warmup_runs"]), (&json!(9), &json!(2)));
    assert_eq!(record["times_ms"].as_array().map(Vec::len), Some(9));
    let number = |name: &str| record[name].as_f64().unwrap_or_else(|| panic!("{name} in {record}"));
    assert!(number("ci_low_ms") <= number("median_ms") && number("median_ms") <= number("ci_high_ms"));
    assert!(number("mad_ms") >= 0.0 && record["outliers"]["high_severe"].is_number());
    let text = warpt.run(&run).stdout;
    assert!(text.contains("95 % interval") && text.contains("deviation"), "{text}");

    // All of five runs lie on one side of the median with a probability of 6 %.
    let few = ["run", "one.mlir", "--seed", "1", "--repeat", "5"];
    let record = warpt.json(&[&few[..], &["--json"]].concat());
    assert!(record["ci_low_ms"].is_null() && record["mad_ms"].is_number(), "{record}");
    let text = warpt.run(&few).stdout;
    assert!(text.contains("range ") && text.contains("a 95 % interval takes 6 runs"), "{text}");

    let single = warpt.json(&["run", "one.mlir", "--seed", "1", "--json"]);
    assert_eq!((&single["ci_low_ms"], &single["mad_ms"]), (&Value::Null, &Value::Null));
    assert!(single["median_ms"].is_number());
}

#[test]
fn several_models_are_compared_in_one_command() {
    let warpt = home();
    let run = ["run", "one.mlir", "two.mlir", "--seed", "1", "--repeat", "3"];
    let records = warpt.json(&[&run[..], &["--json"]].concat());
    let models: Vec<&Value> = records.as_array().unwrap().iter().map(|record| &record["model"]).collect();
    assert_eq!(models, ["one.mlir", "two.mlir"]);
    let text = warpt.run(&run).stdout;
    for expected in ["one.mlir", "two.mlir", "1.00x", "of the fastest"] {
        assert!(text.contains(expected), "no {expected} in {text}");
    }
    for option in
        [&["--outputs", "o.safetensors"][..], &["--profile", "p.json"], &["--save", "s"], &["--compare"]]
    {
        let done = warpt.run(&[&run[..], option].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{option:?}: {}", done.stderr);
        assert!(done.stderr.contains(option[0]) && done.stderr.contains("one model"), "{}", done.stderr);
    }
}

#[test]
fn kept_times_are_in_the_history_and_compared() {
    let warpt = home();
    let run = ["run", "one.mlir", "two.mlir", "--seed", "1", "--warmup", "1", "--repeat", "5"];
    assert_eq!(warpt.run(&run).code, 0);
    assert_eq!(warpt.json(&["benchmark", "history", "--json"]), json!([]), "kept without being asked");
    for _ in 0..2 {
        let done = warpt.run(&[&run[..], &["--keep"]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stderr.contains("kept in the history as "), "{}", done.stderr);
    }
    let entries = warpt.json(&["benchmark", "history", "--json"]);
    assert_eq!((entries.as_array().map(Vec::len), &entries[0]["suite"]), (Some(2), &json!("run")));
    let compared = warpt.json(&["benchmark", "compare", "latest~1", "latest", "--json"]);
    let names: Vec<&Value> =
        compared["metrics"].as_array().unwrap().iter().map(|metric| &metric["benchmark"]["name"]).collect();
    assert_eq!(names, ["one.mlir", "two.mlir"]);
    assert_eq!(
        (&compared["metrics"][0]["name"], &compared["metrics"][0]["unit"]),
        (&json!("latency"), &json!("ms"))
    );

    assert_eq!(warpt.run(&[&run[..], &["--export-file", "times.json"]].concat()).code, 0);
    let compared = warpt.run(&["benchmark", "compare", "latest", "times.json"]);
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    assert!(compared.stdout.contains("run/one.mlir"), "{}", compared.stdout);
}
