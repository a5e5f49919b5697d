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

/// Runs a peer once.
type Measure<'a> = &'a dyn Fn() -> anyhow::Result<Figures>;

/// Lengths and divergences in per cent.
const SHAPES: [(&str, &str); 3] = [("150", "5"), ("1000", "10"), ("5000", "15")];

/// The smallest and the largest block of block-aligner, the fastest range first.
const BLOCKS: [(u16, u16); 8] =
    [(32, 32), (32, 64), (32, 128), (32, 256), (64, 256), (64, 512), (128, 1024), (256, 2048)];

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
        let label = |mode: &str| format!("{mode} {length} bases {divergence} %");
        let python = |peer: &str, modes: &[&str]| -> anyhow::Result<Figures> {
            let found = stage.python("bio_align.py", &[peer, &pairs, &threads])?;
            modes.iter().map(|mode| Ok((label(mode), number(&found, mode)?))).collect()
        };
        let blocks = |range: (u16, u16)| -> anyhow::Result<(usize, f64)> {
            let (least, most) = (range.0.to_string(), range.1.to_string());
            let text = output(Command::new(&block_aligner).args([&pairs, &threads, &least, &most]))?;
            judged(&serde_json::from_str(&text)?, &best)
        };
        // block-aligner follows a path without a proof: it runs with the smallest blocks that give every score.
        let mut exact = None;
        for range in BLOCKS {
            let (missed, gcups) = blocks(range)?;
            let (least, most) = range;
            let total = best.len();
            eprintln!(
                "block-aligner, blocks of {least} to {most}: {missed} of {total} scores missed, {gcups:.1} GCUPS"
            );
            if missed == 0 {
                exact = Some(range);
                break;
            }
        }
        let block_figures;
        let parasail = || python("parasail", &["global", "local"]);
        let edlib = || python("edlib", &["edit"]);
        let mut peers: Vec<(String, Vec<&str>, Measure<'_>)> = vec![
            ("parasail".to_owned(), vec!["global", "local"], &parasail),
            ("edlib".to_owned(), vec!["edit"], &edlib),
        ];
        match exact {
            Some(range) => {
                block_figures = move || Ok(Figures::from([(label("global"), blocks(range)?.1)]));
                let (least, most) = range;
                peers.push((
                    format!("block-aligner, blocks of {least} to {most}"),
                    vec!["global"],
                    &block_figures,
                ));
            }
            None => eprintln!("block-aligner gives no exact scores here, whatever its blocks"),
        }
        for (peer, modes, theirs) in peers {
            let ours = || {
                let metrics = stage.measure("align_pairs", &own)?;
                let rate = |mode: &&str| Ok((label(mode), find(&metrics, "gcups", &[("mode", mode)])?));
                modes.iter().map(rate).collect::<anyhow::Result<Figures>>()
            };
            let contest = Contest {
                name: "align_pairs",
                peer: &peer,
                unit: "GCUPS",
                bound: Bound::AtLeast(1.0),
                theirs,
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

/// How many scores block-aligner misses, and its rate.
fn judged(found: &Value, best: &[i32]) -> anyhow::Result<(usize, f64)> {
    let scores = found["scores"].as_array().context("block-aligner gave no scores")?;
    ensure!(scores.len() == best.len(), "block-aligner gave {} scores of {}", scores.len(), best.len());
    let missed =
        scores.iter().zip(best).filter(|(score, best)| score.as_i64() != Some((**best).into())).count();
    Ok((missed, number(found, "gcups")?))
}
