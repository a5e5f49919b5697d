//! `warpt golden` on a golden run that PyTorch left: `tests/data/rings.golden`, recorded from `examples/golden/rings.toml`.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::warpt::{Finished, Warpt, copy};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/golden/rings.toml");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/rings.golden");

fn arguments<'a>(golden: &'a str, out: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["golden", "run", EXAMPLE, "--compare-golden", golden, "--out", out], flags].concat()
}

fn run(warpt: &Warpt, flags: &[&str]) -> Finished {
    warpt.run(&arguments(GOLDEN, "candidate", flags))
}

fn validated(warpt: &Warpt, candidate: &str) -> (i32, Value) {
    let done = warpt.run(&["validate", "--golden", GOLDEN, "--candidate", candidate, "--json"]);
    (done.code, serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr)))
}

/// A copy of the golden run in the home folder.
fn copied(warpt: &Warpt) -> PathBuf {
    let to = warpt.path("golden");
    copy(Path::new(GOLDEN), &to);
    to
}

/// Changes the manifest of a copied golden run.
fn edit(golden: &Path, change: impl FnOnce(&mut Value)) {
    let path = golden.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut manifest);
    std::fs::write(path, manifest.to_string()).unwrap();
}

/// Runs on the copied golden folder, which must be refused, and gives the message.
#[track_caller]
fn refused(warpt: &Warpt, code: i32, flags: &[&str]) -> String {
    let done = warpt.run(&arguments("golden", "candidate", flags));
    assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{}", done.stderr);
    done.stderr
}

#[test]
fn benchmarks_are_listed_with_presets_and_licences() {
    let warpt = Warpt::new();
    let done = warpt.run(&["golden", "list"]);
    for expected in ["bert-squad: ", "tiny", "small", "full", "CC BY-SA 4.0", "Apache-2.0"] {
        assert!(done.stdout.contains(expected), "no {expected} in {}", done.stdout);
    }
    let list = warpt.json(&["golden", "list", "--json"]);
    assert_eq!(list[0]["presets"]["full"]["data_licence"], "CC BY-SA 4.0");
}

#[test]
fn the_second_pass_agrees_with_pytorch() {
    for tier in ["production", "correctness"] {
        let warpt = Warpt::new();
        let done = run(&warpt, &["--tier", tier, "--json"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let record: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(record["metrics"], record["golden_metrics"], "{tier}");
        let (code, report) = validated(&warpt, "candidate");
        assert_eq!((code, &report["verdict"]), (0, &json!("PASS")), "{tier}: {:#}", report["classes"]);
        for class in ["inputs", "weights", "activations", "gradients", "losses", "metrics"] {
            let classes = report["classes"].as_array().unwrap();
            let compared =
                classes.iter().find(|one| one["class"] == class).unwrap()["counts"]["compared"].as_u64();
            assert!(compared > Some(0), "{tier}: no {class} are compared");
        }
        assert_eq!(report["notes"], json!([]), "{tier}");
    }
}

#[test]
fn an_injected_error_is_named_with_its_step() {
    let warpt = Warpt::new();
    let done = run(&warpt, &["--inject", "gelu@7=1e-3", "--tier", "correctness"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (code, report) = validated(&warpt, "candidate");
    assert_eq!((code, &report["verdict"]), (1, &json!("FAIL")));
    // One part in a thousand is what the tolerance of an activation allows: the product after it is the first to fail.
    let cause = &report["cause"];
    assert_eq!((&cause["step"], &cause["node"]), (&json!("step_000008"), &json!("gelu")), "{cause}");
    let part = cause["part_of_largest"].as_f64().unwrap();
    assert!((part - 1e-3).abs() < 1e-5, "{cause}");
    let text = warpt.run(&["validate", "--golden", GOLDEN, "--candidate", "candidate"]).stdout;
    assert!(text.contains("the error arose in step_000008/gelu (aten.gelu.default)"), "{text}");
    // The loss shows it at the step itself, the activations at the next that is looked at.
    let losses = report["tensors"].as_array().unwrap().iter().find(|one| one["class"] == "losses").unwrap();
    assert_eq!(losses["figures"]["first"]["index"], json!([7]));
    let clean = report["tensors"].as_array().unwrap().iter().filter(|one| {
        matches!(one["step"].as_str(), Some("step_000000" | "step_000004")) && one["failed"] == true
    });
    assert_eq!(clean.count(), 0, "steps before it are right");
    let unknown = run(&warpt, &["--inject", "gelo@7"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("did you mean `gelu`?"), "{}", unknown.stderr);
}

/// Starts a run and kills it when so many steps are written, or later.
fn killed(warpt: &Warpt, out: &str, steps: usize) {
    let mut command = warpt.command(&arguments(GOLDEN, out, &["--save-every", "3", "--tier", "correctness"]));
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let progress = warpt.path(out).join("progress.jsonl");
    let written = || std::fs::read_to_string(&progress).unwrap_or_default().lines().count();
    while written() < steps && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_run_that_was_killed_goes_on_with_the_same_result() {
    let warpt = Warpt::new();
    let done = run(&warpt, &["--tier", "correctness"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for steps in [1, 5, 11] {
        let out = format!("killed{steps}");
        killed(&warpt, &out, steps);
        let flags = ["--save-every", "3", "--tier", "correctness"];
        let done = warpt.run(&arguments(GOLDEN, &out, &flags));
        assert_eq!(done.code, 0, "{}", done.stderr);
        for file in
            ["checkpoint.safetensors", "losses.json", "metrics.json", "step_000016/gradients.safetensors"]
        {
            let read = |folder: &str| std::fs::read(warpt.path(folder).join(file)).unwrap();
            assert!(read("candidate") == read(&out), "{file} after a kill at {steps}");
        }
        let files = crate::warpt::file_names(&warpt.path(&out));
        assert!(!files.iter().any(|name| name == "resume.state" || name == "run.json"), "{files:?}");
        assert_eq!(validated(&warpt, &out).0, 0);
    }
}

#[test]
fn an_unfinished_run_goes_on_from_its_checkpoint_and_only_as_itself() {
    let warpt = Warpt::new();
    killed(&warpt, "candidate", 7);
    let finished = warpt.path("candidate/manifest.json").is_file();
    if !finished && warpt.path("candidate/resume.state").is_file() {
        let other = warpt.run(&arguments(GOLDEN, "candidate", &["--save-every", "3"]));
        assert_eq!(other.code, 2, "{}", other.stderr);
        assert!(
            other.stderr.contains("the unfinished run of another golden folder, device, tier"),
            "{}",
            other.stderr
        );
        let done = warpt.run(&arguments(GOLDEN, "candidate", &["--tier", "correctness"]));
        assert!(
            done.code == 0 && done.stdout.contains("went on from step "),
            "{}{}",
            done.stdout,
            done.stderr
        );
    }
    std::fs::create_dir(warpt.path("thesis")).unwrap();
    std::fs::write(warpt.path("thesis/text"), "x").unwrap();
    let done = warpt.run(&arguments(GOLDEN, "thesis", &[]));
    assert!(done.code == 2 && done.stderr.contains("not empty"), "{}", done.stderr);
}

#[test]
fn a_golden_run_of_something_else_is_refused() {
    let warpt = Warpt::new();
    let golden = copied(&warpt);
    let other =
        warpt.run(&["golden", "run", "bert-squad", "--compare-golden", "golden", "--out", "candidate"]);
    assert!(
        other.code == 2 && other.stderr.contains("a run of `rings`, not of `bert-squad`"),
        "{}",
        other.stderr
    );
    for (flags, expected) in [
        (["--seed", "4"], "recorded with --seed 3, not 4"),
        (["--steps", "19"], "recorded with --steps 20, not 19"),
        (["--batch-size", "8"], "recorded with --batch-size 16, not 8"),
        (["--model", "elsewhere"], "not recorded with --model elsewhere"),
    ] {
        let said = refused(&warpt, 2, &flags);
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
    edit(&golden, |manifest| manifest["benchmark"]["schema_version"] = json!(9));
    assert!(refused(&warpt, 2, &[]).contains("recorded in form 9, known here is 1"));
    edit(&golden, |manifest| drop(manifest.as_object_mut().unwrap().remove("benchmark")));
    assert!(refused(&warpt, 2, &[]).contains("no golden run of a benchmark"));
    assert!(!warpt.path("candidate").exists(), "nothing is written for what is refused");
}

#[test]
fn another_order_or_other_data_are_refused() {
    let warpt = Warpt::new();
    let golden = copied(&warpt);
    let order = std::fs::read_to_string(golden.join("order.json")).unwrap();
    std::fs::write(golden.join("order.json"), order.replacen("[[", "[[0, ", 1)).unwrap();
    assert!(refused(&warpt, 2, &[]).contains("`order.json` is not the file that its manifest lists"));
    std::fs::write(golden.join("order.json"), &order).unwrap();
    edit(&golden, |manifest| manifest["benchmark"]["order"] = json!("0"));
    assert!(refused(&warpt, 2, &[]).contains("another order than the run had"));

    copied(&warpt);
    let data = golden.join("data/train.safetensors");
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..bytes.len() / 2]).unwrap();
    let said = refused(&warpt, 2, &[]);
    assert!(said.contains("not the file that the golden run had") && said.contains("cut off"), "{said}");

    copied(&warpt);
    edit(&golden, |manifest| manifest["benchmark"]["features"]["train"]["sha256"] = json!("0"));
    let lists = std::fs::read_to_string(golden.join("features.json")).unwrap();
    let mut lists: Value = serde_json::from_str(&lists).unwrap();
    lists["train"][5] = json!(0);
    std::fs::write(golden.join("features.json"), lists.to_string()).unwrap();
    assert!(refused(&warpt, 2, &[]).contains("feature 5 of train is not the one of the golden run"));
}

#[test]
fn a_loss_that_is_not_finite_stops_the_run_and_names_the_operation() {
    let warpt = Warpt::new();
    let golden = copied(&warpt);
    edit(&golden, |manifest| {
        manifest["benchmark"]["plan"]["optimizer"]["lr"] = json!(1e30);
        manifest["benchmark"]["plan"]["optimizer"]["clip"] = Value::Null;
    });
    let said = refused(&warpt, 1, &[]);
    assert!(said.contains("the loss of step ") && said.contains("is NaN"), "{said}");
    assert!(said.contains("the first NaN") || said.contains("was not finite before it"), "{said}");
}

#[test]
fn descriptions_are_refused_with_line_and_nearest_name() {
    let warpt = Warpt::new();
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let record = |text: &str, flags: &[&str]| {
        std::fs::write(warpt.path("mine.toml"), text).unwrap();
        let arguments = ["golden", "record", "mine.toml", "--out", "golden", "--python", "/nowhere/python"];
        warpt.run(&[&arguments, flags].concat())
    };
    let done = record(&text.replace("momentum", "momentun"), &[]);
    assert_eq!(done.code, 2);
    assert!(
        done.stderr.contains("mine.toml:30:1: ") && done.stderr.contains("did you mean `momentum`?"),
        "{}",
        done.stderr
    );
    let restricted = text.replace("licence = \"MIT OR Apache-2.0\"", "licence = \"CC BY-NC 4.0\"");
    let done = record(&restricted, &[]);
    assert!(done.code == 2 && done.stderr.contains("--accept-licence 'CC BY-NC 4.0'"), "{}", done.stderr);
    // With the licence accepted it goes on to the Python, which is not there.
    let done = record(&restricted, &["--accept-licence", "CC BY-NC 4.0"]);
    assert!(done.code == 3 && done.stderr.contains("cannot start /nowhere/python"), "{}", done.stderr);
    let done = warpt.run(&["golden", "record", "bert-squad", "--out", "golden"]);
    assert!(
        done.code == 2 && done.stderr.contains("choose a preset with --preset: full, small, tiny"),
        "{}",
        done.stderr
    );
    assert!(!warpt.path("golden").exists());
}

#[test]
fn benchmark_compare_reads_golden_runs() {
    let warpt = Warpt::new();
    let golden = copied(&warpt);
    let compare = |flags: &[&str]| {
        let arguments = ["benchmark", "compare", GOLDEN, "golden", "--json"];
        let done = warpt.run(&[&arguments, flags].concat());
        (done.code, serde_json::from_str::<Value>(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr)))
    };
    let verdicts = |report: &Value| -> std::collections::BTreeMap<String, String> {
        let metrics = report["metrics"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_lowercase();
        metrics.map(|metric| (text(&metric["name"]), text(&metric["verdict"]))).collect()
    };
    let (code, report) = compare(&["--fail-on-regression"]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(
        (&*verdicts(&report)["accuracy"], &*verdicts(&report)["last_loss"]),
        ("unchanged", "unchanged")
    );
    let path = golden.join("metrics.json");
    let metrics: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let worse = metrics["accuracy"].as_f64().unwrap() * 0.8;
    std::fs::write(&path, json!({"accuracy": worse}).to_string()).unwrap();
    let (code, report) = compare(&["--fail-on-regression"]);
    assert_eq!((code, &*verdicts(&report)["accuracy"]), (1, "regressed"), "{report:#}");
    std::fs::write(&path, metrics.to_string()).unwrap();
    let path = golden.join("progress.jsonl");
    let slower: String = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| {
            let mut step: Value = serde_json::from_str(line).unwrap();
            step["seconds"] = json!(step["seconds"].as_f64().unwrap() * 30.0);
            format!("{step}\n")
        })
        .collect();
    std::fs::write(&path, slower).unwrap();
    let (code, report) = compare(&["--fail-on-regression"]);
    assert_eq!((code, &*verdicts(&report)["step_time"]), (1, "regressed"), "{report:#}");
}
