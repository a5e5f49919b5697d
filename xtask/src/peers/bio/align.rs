//! `align_pairs` beside parasail, edlib and block-aligner.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use warpforge_bio::align::{Mode, Pair, Scoring, scores};
use warpforge_bio::formats::read_nucleotides;

use super::{Stage, find, number, output};
use crate::command::{cargo, root, run};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Lengths and divergences in per cent.
const SHAPES: [(&str, &str); 3] = [("150", "5"), ("1000", "10"), ("5000", "15")];

/// GCUPS of each mode; the scores of both sides are compared by the gate of ours and the check of theirs.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let block_aligner = build_block_aligner()?;
    for (length, divergence) in SHAPES {
        let own = [("length", length), ("divergence_percent", divergence)];
        let (folder, _) = stage.export("align_pairs", &own)?;
        let pairs = folder.join("pairs.fa").display().to_string();
        let threads = stage.threads.to_string();
        let best = best_scores(Path::new(&pairs))?;
        let peers =
            [("parasail", &["global", "local"][..]), ("edlib", &["edit"]), ("block-aligner", &["global"])];
        for (peer, modes) in peers {
            let label = |mode: &str| format!("{mode} {length} bases {divergence} %");
            let theirs = || {
                let found = if peer == "block-aligner" {
                    let text = output(Command::new(&block_aligner).args([&pairs, &threads]))?;
                    judged(&serde_json::from_str(&text)?, &best)?
                } else {
                    stage.python("bio_align.py", &[peer, &pairs, &threads])?
                };
                modes.iter().map(|mode| Ok((label(mode), number(&found, mode)?))).collect()
            };
            let ours = || {
                let metrics = stage.measure("align_pairs", &own)?;
                let rate = |mode: &&str| Ok((label(mode), find(&metrics, "gcups", &[("mode", mode)])?));
                modes.iter().map(rate).collect::<anyhow::Result<Figures>>()
            };
            let contest = Contest {
                name: "align_pairs",
                peer,
                unit: "GCUPS",
                bound: Bound::AtLeast(1.0),
                theirs: &theirs,
                ours: &ours,
            };
            rows.extend(contest.hold(stage.alternations)?);
        }
    }
    Ok(rows)
}

/// Compiles the program beside this one that times the crate block-aligner.
fn build_block_aligner() -> anyhow::Result<std::path::PathBuf> {
    let target = crate::python::target().join("peers");
    let manifest = root().join("xtask/peers/block_aligner/Cargo.toml");
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--manifest-path"]).arg(manifest);
    build.arg("--target-dir").arg(&target).env("RUSTFLAGS", "-Ctarget-cpu=native");
    run(&mut build)?;
    Ok(target.join("release/block-aligner-peer"))
}

/// The best global score of each pair in a file.
fn best_scores(path: &Path) -> anyhow::Result<Vec<i32>> {
    let records = read_nucleotides(path)?;
    let pairs: Vec<Pair<'_>> =
        records.chunks_exact(2).map(|two| (&two[0].codes[..], &two[1].codes[..])).collect();
    Ok(scores(&pairs, Mode::Global, &Scoring::READS, warpforge_bio::available_threads()))
}

/// The rate of block-aligner, which does not promise the best score: how often it misses it is printed.
fn judged(found: &Value, best: &[i32]) -> anyhow::Result<Value> {
    let scores = found["scores"].as_array().context("block-aligner gave no scores")?;
    ensure!(scores.len() == best.len(), "block-aligner gave {} scores of {}", scores.len(), best.len());
    let missed =
        scores.iter().zip(best).filter(|(score, best)| score.as_i64() != Some((**best).into())).count();
    eprintln!("block-aligner misses the best score of {missed} of {} pairs", best.len());
    Ok(serde_json::json!({ "global": number(found, "gcups")? }))
}
