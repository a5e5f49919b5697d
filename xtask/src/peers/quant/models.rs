//! Whole models with their real weights by each recipe, ours beside torchao's.
//!
//! Both quantize all linear layers. Outputs are held to PyTorch's in f32.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::Stage;
use super::tables::Judged;
use crate::command::output;
use crate::peers::cpu::ours::Ours;
use crate::peers::cpu::program;
use crate::peers::cpu::stats::figure;
use crate::served::Served;

/// A model, and what is measured of its outputs.
struct Model {
    workload: &'static str,
    title: &'static str,
    measures: &'static [Measure],
}

/// A figure of both sides.
struct Measure {
    /// The field in the answers of `quant_models.py`.
    key: &'static str,
    head: &'static str,
    show: fn(f64) -> String,
    /// The most that ours may be beside torchao's, where that is bounded.
    most: Option<fn(f64) -> f64>,
}

const DISTANCE: Measure = Measure { key: "distance", head: "distance", show: small, most: None };
/// Positions, or sentences, whose best one is another than in f32.
const FLIPS: Measure = Measure {
    key: "flips",
    head: "flips, %",
    show: |percent| format!("{percent:.2}"),
    most: Some(|theirs| 1.1 * theirs + 0.5),
};

const MODELS: [Model; 2] = [
    Model {
        workload: "smollm2_135m_text",
        title: "SmolLM2-135M",
        measures: &[
            Measure {
                key: "perplexity",
                head: "perplexity",
                show: |value| format!("{value:.2}"),
                most: Some(|theirs| 1.01 * theirs),
            },
            Measure { key: "divergence", head: "KL divergence", show: small, most: None },
            FLIPS,
            DISTANCE,
        ],
    },
    Model {
        workload: "minilm_l6_text",
        title: "MiniLM-L6",
        measures: &[
            DISTANCE,
            Measure { key: "cosine", head: "cosine", show: |value| format!("{value:.5}"), most: None },
            FLIPS,
        ],
    },
];

/// Groups of 64: 128 does not divide the 576 inputs of SmolLM2's layers.
const RECIPES: [&str; 8] = [
    BASELINE,
    "int8wo",
    "int8dq",
    "int4wo-64",
    "int4wo-64-hqq",
    "float8wo",
    "float8dq-tensor",
    "float8dq-row",
];
const BASELINE: &str = "baseline";

/// The measures of a side by a recipe, or why there are none.
type Measured = Result<Value, String>;

/// torchao's and our measures by a recipe.
struct Pair {
    recipe: &'static str,
    theirs: Measured,
    ours: Measured,
}

/// Measures all models.
pub(super) fn models(stage: &Stage) -> anyhow::Result<Judged> {
    let mut judged = Judged { text: String::new(), missed: Vec::new() };
    for model in &MODELS {
        if !stage.wants(model.workload) {
            continue;
        }
        stage.export(&[model.workload.to_owned()])?;
        let mut command = program(&stage.python, "quant_models.py");
        command.arg(&stage.work).arg(model.workload).arg(stage.threads.to_string());
        let mut peer = Served::start(&mut command, "torchao")?;
        let pairs = RECIPES.map(|recipe| measured(stage, model.workload, recipe, &mut peer));
        let pairs = pairs.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        judge(model, &pairs, &mut judged);
    }
    Ok(judged)
}

/// Runs ours, and asks for the measures of both sides.
fn measured(stage: &Stage, workload: &str, recipe: &'static str, peer: &mut Served) -> anyhow::Result<Pair> {
    eprintln!("{workload}: {recipe}");
    let folder = tempfile::tempdir_in(&stage.work)?;
    let outputs = folder.path().join("outputs.safetensors");
    let precision = if recipe == BASELINE { "model" } else { recipe };
    let ran = run_once(&stage.ours(workload, precision), &outputs);
    let answer = peer.ask(&json!({ "recipe": recipe, "ours": ran.is_ok().then_some(&outputs) }))?;
    Ok(Pair { recipe, theirs: side(&answer, "torchao"), ours: ran.and_then(|()| side(&answer, "ours")) })
}

fn run_once(ours: &Ours<'_>, outputs: &Path) -> Result<(), String> {
    let ran = output(ours.command(1).arg("--outputs").arg(outputs));
    ran.map(drop).map_err(|error| format!("{error:#}"))
}

/// The measures of one side in an answer.
fn side(answer: &Value, name: &str) -> Measured {
    let failed = [answer, &answer[name]].into_iter().find_map(|part| part["failed"].as_str());
    match failed {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(answer[name].clone()),
    }
}

/// Appends a model's table, and what is out of bounds.
fn judge(model: &Model, pairs: &[Pair], judged: &mut Judged) {
    let heads = model.measures.iter().map(|measure| format!(" | {}: torchao | ours", measure.head));
    let rule = " | ---: | ---:".repeat(model.measures.len());
    let text = &mut judged.text;
    let _ = writeln!(text, "| {}{} |\n| ---{rule} |", model.title, heads.collect::<String>());
    let mut reasons = Vec::new();
    for Pair { recipe, theirs, ours } in pairs {
        let name = format!("{} {recipe}", model.title);
        let mut cells = vec![(*recipe).to_owned()];
        for measure in model.measures {
            let [theirs, ours] = [theirs, ours].map(|side| number(side, measure.key));
            let most = measure.most.zip(theirs).map(|(most, theirs)| most(theirs));
            cells.push(theirs.map_or_else(|| "failed".to_owned(), measure.show));
            cells.push(match (ours, most) {
                (Some(ours), Some(most)) if ours > most => {
                    let (ours, most) = ((measure.show)(ours), (measure.show)(most));
                    judged.missed.push(format!("{name}: {} {ours}, must be at most {most}", measure.head));
                    format!("**{ours}**")
                }
                (Some(ours), _) => (measure.show)(ours),
                (None, _) => "failed".to_owned(),
            });
        }
        let _ = writeln!(judged.text, "| {} |", cells.join(" | "));
        for (who, side) in [("torchao", theirs), ("ours", ours)] {
            if let Err(reason) = side {
                reasons.push(format!("{name}: {who} failed: {}", reason.lines().next().unwrap_or_default()));
            }
        }
        if let Err(reason) = ours {
            judged.missed.push(format!("{name}: {reason}"));
        }
    }
    for reason in reasons {
        let _ = writeln!(judged.text, "\n{reason}");
    }
    judged.text.push('\n');
}

fn number(side: &Measured, key: &str) -> Option<f64> {
    side.as_ref().ok().and_then(|measures| measures[key].as_f64())
}

/// A figure that may be close to zero.
fn small(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value.abs() < 1e-4 => format!("{value:.0e}"),
        value => figure(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoder(recipe: &'static str, flips: [f64; 2]) -> Pair {
        let side = |flips: f64| Ok(json!({ "distance": 1e-6, "cosine": 0.999_76, "flips": flips }));
        Pair { recipe, theirs: side(flips[0]), ours: side(flips[1]) }
    }

    fn judged(pairs: &[Pair]) -> Judged {
        let mut judged = Judged { text: String::new(), missed: Vec::new() };
        judge(&MODELS[1], pairs, &mut judged);
        judged
    }

    #[test]
    fn flips_are_bounded_by_torchaos() {
        let judged = judged(&[encoder("int8wo", [10.0, 11.5]), encoder("int8dq", [10.0, 11.6])]);
        let head =
            "| MiniLM-L6 | distance: torchao | ours | cosine: torchao | ours | flips, %: torchao | ours |\n";
        assert!(judged.text.starts_with(head), "{}", judged.text);
        let row = "| int8wo | 1e-6 | 1e-6 | 0.99976 | 0.99976 | 10.00 | 11.50 |\n";
        assert!(judged.text.contains(row), "{}", judged.text);
        assert!(judged.text.contains("| 10.00 | **11.60** |"), "{}", judged.text);
        assert_eq!(judged.missed, ["MiniLM-L6 int8dq: flips, % 11.60, must be at most 11.50"]);
    }

    #[test]
    fn a_side_that_failed_is_told_with_its_reason() {
        let answer = json!({ "torchao": { "failed": "RuntimeError: no kernel\nmore" }, "ours": { "flips": f64::NAN } });
        let pair = Pair { recipe: "int8wo", theirs: side(&answer, "torchao"), ours: side(&answer, "ours") };
        let told = judged(&[pair]);
        assert!(
            told.text.contains("\nMiniLM-L6 int8wo: torchao failed: RuntimeError: no kernel\n"),
            "{}",
            told.text
        );
        assert!(side(&json!({ "failed": "no memory" }), "ours").is_err());
        let mut pair = encoder("int8wo", [1.0, 1.0]);
        pair.ours = Err("no kernel".to_owned());
        assert_eq!(judged(&[pair]).missed, ["MiniLM-L6 int8wo: no kernel"]);
    }
}
