//! Tables of quantized layers: times and ratios, signal to noise, and what misses its bound.

use std::fmt::Write as _;

use warpforge_measure::stats::geometric_mean;

use crate::peers::cpu::contest::{Outcome, Row};
use crate::peers::cpu::stats::figure;

/// A layer by a recipe.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) recipe: &'a str,
    pub(super) row: &'a Row,
    pub(super) extra: Option<Extra>,
}

/// What else is asked of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Extra {
    /// Our time in bf16 over our time.
    TimesBf16(f64),
    /// The rate of reading the weights, as a part of the machine's.
    OfBandwidth(f64),
}

/// The least ratios: of each layer, of their geometric mean, and of what else is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) each: f64,
    pub(super) mean: f64,
    pub(super) extra: f64,
}

/// A table, and what is out of bounds.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) text: String,
    pub(super) missed: Vec<String>,
}

/// How far below torchao's a signal may be, in dB.
const APART_DB: f64 = 0.1;

/// Rows, columns and depth, as a workload's name has them.
fn sizes(workload: &str) -> Option<[usize; 3]> {
    let numbers = workload.trim_start_matches("outlier_linear_").split('x').map(|size| size.parse().ok());
    numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// m × k × n, as `warpt microbench` has it.
fn shape(workload: &str) -> String {
    sizes(workload).map_or_else(|| workload.to_owned(), |[m, n, k]| format!("{m}×{k}×{n}"))
}

/// Bytes of weights, scales and offsets by a recipe.
pub(super) fn weight_bytes(recipe: &str, workload: &str) -> Option<f64> {
    let [_, n, k] = sizes(workload)?.map(|size| size as f64);
    match recipe.strip_prefix("int4wo-") {
        Some(group) => Some(n * k * (0.5 + 4.0 / group.trim_end_matches("-hqq").parse::<f64>().ok()?)),
        None => Some(n * (k + 4.0)),
    }
}

/// Times of everybody, ratios to the best peer, and what else is asked.
pub(super) fn speed(lines: &[Line<'_>], bounds: Bounds) -> Judged {
    let mut judged = Judged { text: String::new(), missed: Vec::new() };
    let Some(first) = lines.first() else { return judged };
    let engines: Vec<&str> = first.row.peers.iter().map(|(engine, _)| engine.as_str()).collect();
    let extra = lines.iter().find_map(|line| line.extra).map(|extra| match extra {
        Extra::TimesBf16(_) => "bf16 / ours",
        Extra::OfBandwidth(_) => "of read bandwidth",
    });
    let mut heads = vec!["recipe", "m×k×n, ms"];
    heads.extend(&engines);
    heads.extend(["ours", "ratio"]);
    heads.extend(extra);
    judged.text = format!("| {} |\n| --- | ---{} |\n", heads.join(" | "), " | ---:".repeat(heads.len() - 2));
    for line in lines {
        let mut cells = vec![line.recipe.to_owned(), shape(&line.row.workload)];
        let best = line.row.best().map(|(engine, _)| engine);
        cells.extend(line.row.peers.iter().map(|(engine, outcome)| time(outcome, best == Some(engine))));
        cells.push(time(&line.row.ours, false));
        let name = format!("{} {}", line.recipe, shape(&line.row.workload));
        let ratio = line.row.ratio();
        cells.push(judged.cell(ratio, bounds.each, &format!("{name}: ratio")));
        if extra.is_some() {
            cells.push(match line.extra {
                Some(Extra::TimesBf16(times)) => {
                    judged.cell(Some(times), bounds.extra, &format!("{name}: bf16 over ours"))
                }
                Some(Extra::OfBandwidth(part)) => {
                    judged.cell(Some(part), bounds.extra, &format!("{name}: part of read bandwidth"))
                }
                None => String::new(),
            });
        }
        let _ = writeln!(judged.text, "| {} |", cells.join(" | "));
        if let Outcome::Failed(reason) = &line.row.ours {
            judged.missed.push(format!("{name}: {reason}"));
        }
    }
    let ratios: Vec<f64> = lines.iter().filter_map(|line| line.row.ratio()).collect();
    let mean = judged.cell(geometric_mean(&ratios), bounds.mean, "geometric mean");
    let _ = writeln!(judged.text, "\nRatio: best peer's median / ours. Geometric mean: {mean}.");
    for line in lines {
        for (engine, outcome) in &line.row.peers {
            if let Outcome::Failed(reason) = outcome {
                let reason = reason.lines().next().unwrap_or_default();
                let name = shape(&line.row.workload);
                let _ = writeln!(judged.text, "\n{} {name}: {engine} failed: {reason}", line.recipe);
            }
        }
    }
    judged
}

/// Signal to noise of ours and torchao's, both against f64.
pub(super) fn accuracy(lines: &[Line<'_>]) -> Judged {
    let mut judged = Judged {
        text: "| recipe | m×k×n | torchao, dB | ours, dB | ours − torchao |\n| --- | --- | ---: | ---: | ---: |\n"
            .to_owned(),
        missed: Vec::new(),
    };
    for line in lines {
        let (theirs, ours) = (line.row.peer_sqnr_db("torchao"), line.row.ours.sqnr_db());
        let name = format!("{} {}", line.recipe, shape(&line.row.workload));
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |db| format!("{db:.2}"));
        let apart = match (theirs, ours) {
            (Some(theirs), Some(ours)) if ours - theirs < -APART_DB => {
                judged.missed.push(format!("{name}: {:.2} dB below torchao's", theirs - ours));
                format!("**{:+.2}**", ours - theirs)
            }
            (Some(theirs), Some(ours)) => format!("{:+.2}", ours - theirs),
            _ => {
                judged.missed.push(format!("{name}: no signal to noise of both sides"));
                "-".to_owned()
            }
        };
        let (theirs, ours, shape) = (cell(theirs), cell(ours), shape(&line.row.workload));
        let _ = writeln!(judged.text, "| {} | {shape} | {theirs} | {ours} | {apart} |", line.recipe);
    }
    judged
}

impl Judged {
    /// A ratio, marked where it is less than it must be.
    fn cell(&mut self, ratio: Option<f64>, least: f64, what: &str) -> String {
        match ratio {
            Some(ratio) if ratio < least => {
                self.missed.push(format!("{what} {ratio:.2}, must be {least:.2}"));
                format!("**{ratio:.2}**")
            }
            Some(ratio) => format!("{ratio:.2}"),
            None => "-".to_owned(),
        }
    }
}

fn time(outcome: &Outcome, best: bool) -> String {
    match outcome {
        Outcome::Ran(figures) if best => format!("**{}**", figure(figures.median())),
        Outcome::Ran(figures) => figure(figures.median()),
        Outcome::Absent => String::new(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::cpu::contest::Figures;

    fn ran(ms: f64, sqnr_db: f64) -> Outcome {
        let (distance, sqnr_db) = (1e-2, Some(sqnr_db));
        Outcome::Ran(Figures { rounds: vec![ms], distance, sqnr_db, prepare_s: 0.1, fallbacks: Vec::new() })
    }

    fn row(peer: f64, ours: f64, ours_db: f64) -> Row {
        let peers = vec![
            ("torchao".to_owned(), ran(peer, 30.0)),
            ("ort".to_owned(), Outcome::Failed("no kernel\nmore".to_owned())),
        ];
        Row { workload: "outlier_linear_128x3072x768".to_owned(), peers, ours: ran(ours, ours_db) }
    }

    #[test]
    fn ratios_and_what_else_is_asked_are_judged() {
        let (fast, slow) = (row(4.0, 2.0, 30.0), row(4.0, 5.0, 30.0));
        let line = |row, extra| Line { recipe: "int8dq", row, extra };
        let lines = [line(&fast, Some(Extra::TimesBf16(1.5))), line(&slow, Some(Extra::TimesBf16(1.0)))];
        let judged = speed(&lines, Bounds { each: 0.9, mean: 1.1, extra: 1.4 });
        let text = &judged.text;
        assert!(text.starts_with("| recipe | m×k×n, ms | torchao | ort | ours | ratio | bf16 / ours |\n"));
        assert!(
            text.contains("| int8dq | 128×768×3072 | **4.00** | failed | 2.00 | 2.00 | 1.50 |"),
            "{text}"
        );
        assert!(text.contains("| 5.00 | **0.80** | **1.00** |"), "{text}");
        assert!(text.contains("ort failed: no kernel\n"), "{text}");
        assert_eq!(judged.missed.len(), 2, "{:?}", judged.missed);
        assert!(speed(&[], Bounds { each: 1.0, mean: 1.0, extra: 1.0 }).text.is_empty());
    }

    #[test]
    fn a_signal_below_torchaos_is_told() {
        let (good, bad) = (row(1.0, 1.0, 29.95), row(1.0, 1.0, 29.8));
        let line = |row| Line { recipe: "int8wo", row, extra: None };
        let judged = accuracy(&[line(&good), line(&bad)]);
        assert!(judged.text.contains("| 30.00 | 29.95 | -0.05 |"), "{}", judged.text);
        assert!(judged.text.contains("| 30.00 | 29.80 | **-0.20** |"), "{}", judged.text);
        assert_eq!(judged.missed, ["int8wo 128×768×3072: 0.20 dB below torchao's"]);
    }

    #[test]
    fn weights_have_the_bytes_of_their_recipe() {
        assert_eq!(weight_bytes("int8wo", "outlier_linear_1x16x32"), Some(16.0 * 36.0));
        assert_eq!(weight_bytes("int4wo-32-hqq", "outlier_linear_1x16x32"), Some(16.0 * 20.0));
        assert_eq!(weight_bytes("int8wo", "other"), None);
    }
}
